// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

// Package endpointslicemirroring runs the endpointslice-mirroring-controller against a real API server.
package endpointslicemirroring

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/endpointslicemirroring"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/services"
)

const (
	serviceAccount = "endpointslicemirroring-controller"
	managedBy      = "endpointslicemirroring-controller.k8s.io"
)

func TestMain(m *testing.M) { framework.Main(m) }

type cluster struct {
	*services.World
}

// start runs the controller as the manager does.
func start(t *testing.T, maxPerSubset int32, batchPeriod time.Duration) *cluster {
	t.Helper()
	env := framework.New(t)
	run(t, env, maxPerSubset, batchPeriod)
	return &cluster{services.NewWorld(t, env)}
}

func run(t *testing.T, env *framework.Env, maxPerSubset int32, batchPeriod time.Duration) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, framework.ControllersOptions{})
	core := c.Informers.Core().V1()
	controller := endpointslicemirroring.NewController(c.Ctx, core.Endpoints(), c.Informers.Discovery().V1().EndpointSlices(), core.Services(),
		maxPerSubset, c.Client(serviceAccount), batchPeriod)
	c.Run("endpointslice-mirroring-controller", func(ctx context.Context) { controller.Run(ctx, 5) })
	return c
}

func manual(s *corev1.Service) { s.Spec.Selector = nil }

// subset returns a subset: a port, then addresses, and with a ! those that are not ready.
func subset(port int32, addresses ...string) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: fmt.Sprint("port-", port), Port: port}}}
	for _, address := range addresses {
		if ip, notReady := strings.CutPrefix(address, "!"); notReady {
			s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: ip})
			continue
		}
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: address})
	}
	return s
}

func (c *cluster) create(name string, change func(*corev1.Endpoints), subsets ...corev1.EndpointSubset) {
	c.T.Helper()
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name}, Subsets: subsets}
	if change != nil {
		change(endpoints)
	}
	if _, err := c.Env.Client.CoreV1().Endpoints(c.NS).Create(c.T.Context(), endpoints, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) patch(name string, body any) {
	c.T.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.T.Fatal(err)
	}
	if _, err := c.Env.Client.CoreV1().Endpoints(c.NS).Patch(c.T.Context(), name, types.MergePatchType, data, metav1.PatchOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) patchService(name, patch string) {
	c.T.Helper()
	if _, err := c.Env.Client.CoreV1().Services(c.NS).Patch(c.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) slices(ctx context.Context, name string) ([]discovery.EndpointSlice, error) {
	list, err := c.Env.Client.DiscoveryV1().EndpointSlices(c.NS).List(ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + name + "," + discovery.LabelManagedBy + "=" + managedBy})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func text(found []discovery.EndpointSlice) string {
	var all []string
	for _, slice := range found {
		parts := []string{string(slice.AddressType)}
		for _, port := range slice.Ports {
			parts = append(parts, fmt.Sprintf(":%d", *port.Port))
		}
		slices.Sort(parts)
		for _, e := range slice.Endpoints {
			mark := ""
			if !*e.Conditions.Ready {
				mark = "!"
			}
			parts = append(parts, mark+e.Addresses[0])
		}
		all = append(all, strings.Join(parts, " "))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// want waits until the mirror of Endpoints is as described.
func (c *cluster) want(name, want string) []discovery.EndpointSlice {
	c.T.Helper()
	var found []discovery.EndpointSlice
	c.Env.WaitFor(c.T, name+"'s mirror to be "+want, services.Timeout, func(ctx context.Context) (bool, error) {
		var err error
		if found, err = c.slices(ctx, name); err != nil {
			return false, err
		}
		if got := text(found); got != want {
			return false, fmt.Errorf("it is %s", got)
		}
		return true, nil
	})
	return found
}

func (c *cluster) writes(mark audit.Mark) map[string]int {
	c.T.Helper()
	return c.Env.AuditSince(c.T, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.NS), audit.Writes(), audit.Not(audit.Resource("events"))).
		Count(func(e audit.Event) string { return e.Verb })
}

// With and without a Service, with a selector, and deleted: TestEndpointSliceMirroring.
func TestWhatIsMirrored(t *testing.T) {
	c := start(t, 1000, 0)
	c.create("early", nil, subset(80, "192.0.2.1"))
	c.Service("selecting")
	c.create("selecting", nil, subset(80, "192.0.2.1"))
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1"))
	slice := c.want("svc", ":80 IPv4 192.0.2.1")[0]
	if owner := metav1.GetControllerOf(&slice); owner == nil || owner.Kind != "Endpoints" || owner.Name != "svc" {
		t.Errorf("owner %+v, want the endpoints", owner)
	}
	c.want("early", "")
	c.want("selecting", "")
	c.Service("early", manual)
	c.want("early", ":80 IPv4 192.0.2.1")
	if err := c.Env.Client.CoreV1().Services(c.NS).Delete(t.Context(), "early", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("early", "")
	if err := c.Env.Client.CoreV1().Endpoints(c.NS).Delete(t.Context(), "svc", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("svc", "")
}

// Labels, annotations and addresses are followed: TestEndpointSliceMirroringUpdates.
func TestUpdates(t *testing.T) {
	c := start(t, 1000, 0)
	c.Service("svc", manual)
	c.create("svc", func(e *corev1.Endpoints) {
		e.Labels, e.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "x", corev1.LastAppliedConfigAnnotation: "{}", corev1.EndpointsLastChangeTriggerTime: "2020-01-01T00:00:00Z"}
	}, subset(80, "192.0.2.1"))
	want := func(when string, labels, annotations map[string]string) {
		t.Helper()
		labels[discovery.LabelServiceName], labels[discovery.LabelManagedBy] = "svc", managedBy
		c.Env.WaitFor(t, when, services.Timeout, func(ctx context.Context) (bool, error) {
			found, err := c.slices(ctx, "svc")
			if err != nil || len(found) != 1 || !maps.Equal(found[0].Labels, labels) || !maps.Equal(found[0].Annotations, annotations) {
				return false, fmt.Errorf("%+v (%w)", found, err)
			}
			return true, nil
		})
	}
	want("at first", map[string]string{"team": "a"}, map[string]string{"note": "x"})
	name := c.want("svc", ":80 IPv4 192.0.2.1")[0].Name
	c.patch("svc", map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": nil, "tier": "b"}, "annotations": map[string]any{"note": "y", "more": "z"}}})
	want("labels and annotations", map[string]string{"tier": "b"}, map[string]string{"note": "y", "more": "z"})
	mark := c.Env.AuditMark(t)
	c.patch("svc", map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1.LastAppliedConfigAnnotation: "{ }"}}})
	c.patch("svc", map[string]any{"subsets": []corev1.EndpointSubset{subset(81, "192.0.2.2")}})
	if got := c.want("svc", ":81 IPv4 192.0.2.2")[0].Name; got != name {
		t.Errorf("slice %s, want %s with other ports", got, name)
	}
	if got := c.writes(mark); got["update"] != 1 || len(got) != 1 {
		t.Errorf("writes %v, want one update", got)
	}
	c.patch("svc", map[string]any{"metadata": map[string]any{"labels": map[string]any{discovery.LabelSkipMirror: "true"}}})
	c.want("svc", "")
	c.patch("svc", map[string]any{"metadata": map[string]any{"labels": map[string]any{discovery.LabelSkipMirror: nil}}})
	c.want("svc", ":81 IPv4 192.0.2.2")
}

// A selector comes and goes: TestEndpointSliceMirroringSelectorTransition.
func TestSelectorTransition(t *testing.T) {
	c := start(t, 1000, 0)
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1"))
	c.want("svc", ":80 IPv4 192.0.2.1")
	c.patchService("svc", `{"spec":{"selector":{"app":"web"}}}`)
	c.want("svc", "")
	c.patchService("svc", `{"spec":{"selector":null}}`)
	c.want("svc", ":80 IPv4 192.0.2.1")
}

// BC078: what is not ready stays so, one slice for each family and ports, and edits are undone.
func TestNotReadyAndEdits(t *testing.T) {
	c := start(t, 1000, 0)
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1", "!192.0.2.2"), subset(80, "192.0.2.2", "192.0.2.3", "2001:db8::1"), subset(81, "192.0.2.1", "2001:db8::1"))
	const right = ":80 IPv4 192.0.2.1 192.0.2.3 !192.0.2.2; :80 IPv6 2001:db8::1; :81 IPv4 192.0.2.1; :81 IPv6 2001:db8::1"
	client := c.Env.Client.DiscoveryV1().EndpointSlices(c.NS)
	for _, patch := range []string{
		`[{"op":"replace","path":"/endpoints/0/addresses","value":["192.0.2.99"]}]`,
		`[{"op":"replace","path":"/ports","value":[]}]`,
		`[{"op":"replace","path":"/metadata/labels/endpointslice.kubernetes.io~1managed-by","value":"me"}]`,
	} {
		found := c.want("svc", right)
		i := slices.IndexFunc(found, func(s discovery.EndpointSlice) bool { return s.AddressType == discovery.AddressTypeIPv4 })
		if _, err := client.Patch(t.Context(), found[i].Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Env.WaitFor(t, "the mirror to be put right", services.Timeout, func(ctx context.Context) (bool, error) {
			after, err := c.slices(ctx, "svc")
			changed := slices.ContainsFunc(after, func(s discovery.EndpointSlice) bool {
				return !slices.ContainsFunc(found, func(old discovery.EndpointSlice) bool {
					return old.UID == s.UID && old.ResourceVersion == s.ResourceVersion
				})
			})
			return err == nil && changed && text(after) == right, err
		})
	}
	if err := client.Delete(t.Context(), c.want("svc", right)[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("svc", right)
}

func TestLimit(t *testing.T) {
	c := start(t, 3, 0)
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1", "!192.0.2.2", "192.0.2.3", "!192.0.2.4", "192.0.2.5"), subset(81, "192.0.2.1"))
	c.want("svc", ":80 IPv4 192.0.2.1 192.0.2.3 192.0.2.5; :81 IPv4 192.0.2.1")
	c.Env.WaitFor(t, "an event about what is left out", services.Timeout, func(ctx context.Context) (bool, error) {
		events, err := c.Env.Client.CoreV1().Events(c.NS).List(ctx, metav1.ListOptions{FieldSelector: "reason=TooManyAddressesToMirror"})
		return err == nil && len(events.Items) == 1 && events.Items[0].InvolvedObject.Kind == "Endpoints" &&
			events.Items[0].Message == "A max of 3 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped", err
	})
}

// What was left behind while no manager ran is put right.
func TestRestart(t *testing.T) {
	env := framework.New(t)
	c := &cluster{services.NewWorld(t, env)}
	first := run(t, env, 1000, 0)
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1"))
	c.Service("skipped", manual)
	c.create("skipped", nil, subset(80, "192.0.2.1"))
	c.want("svc", ":80 IPv4 192.0.2.1")
	c.want("skipped", ":80 IPv4 192.0.2.1")
	first.Stop()
	c.patch("svc", map[string]any{"subsets": []corev1.EndpointSubset{subset(80, "192.0.2.2")}})
	c.patch("skipped", map[string]any{"metadata": map[string]any{"labels": map[string]any{discovery.LabelSkipMirror: "true"}}})
	run(t, env, 1000, 0)
	c.want("svc", ":80 IPv4 192.0.2.2")
	c.want("skipped", "")
}

func TestBatching(t *testing.T) {
	c := start(t, 1000, 5*time.Second)
	c.Service("svc", manual)
	c.create("svc", nil, subset(80, "192.0.2.1"))
	c.want("svc", ":80 IPv4 192.0.2.1")
	mark := c.Env.AuditMark(t)
	began := time.Now()
	for i := range 5 {
		c.patch("svc", map[string]any{"subsets": []corev1.EndpointSubset{subset(80, fmt.Sprint("192.0.2.", 2+i))}})
	}
	c.want("svc", ":80 IPv4 192.0.2.6")
	if got, most := c.writes(mark)["update"], 2+int(time.Since(began)/(5*time.Second)); got > most {
		t.Errorf("%d updates within %v, want up to %d", got, time.Since(began), most)
	}
}
