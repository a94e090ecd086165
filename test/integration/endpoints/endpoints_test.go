// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

// Package endpoints runs the endpoints-controller against a real API server.
package endpoints

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kcm-dev/kcm/pkg/controller/endpoint"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/integration/framework/services"
)

const serviceAccount = "endpoint-controller"

func TestMain(m *testing.M) { framework.Main(m, services.DualStack()) }

type cluster struct {
	*services.World
}

// start runs the controller as the manager does.
func start(t *testing.T, batchPeriod time.Duration) *cluster {
	t.Helper()
	env := framework.New(t)
	run(t, env, framework.ControllersOptions{}, batchPeriod)
	return &cluster{services.NewWorld(t, env)}
}

func run(t *testing.T, env *framework.Env, opts framework.ControllersOptions, batchPeriod time.Duration) {
	t.Helper()
	c := env.Controllers(t, opts)
	core := c.Informers.Core().V1()
	controller := endpoint.NewEndpointController(c.Ctx, core.Pods(), core.Services(), core.Endpoints(), c.Client(serviceAccount), batchPeriod)
	c.Run("endpoints-controller", func(ctx context.Context) { controller.Run(ctx, 5) })
}

func (c *cluster) get(ctx context.Context, name string) (*corev1.Endpoints, error) {
	return c.Env.Client.CoreV1().Endpoints(c.NS).Get(ctx, name, metav1.GetOptions{})
}

// text describes subsets: ports, addresses, and with a ! those that are not ready.
func text(endpoints *corev1.Endpoints) string {
	var all []string
	for _, subset := range endpoints.Subsets {
		var parts []string
		for _, port := range subset.Ports {
			parts = append(parts, fmt.Sprintf(":%d", port.Port))
		}
		for _, a := range subset.Addresses {
			parts = append(parts, a.IP)
		}
		for _, a := range subset.NotReadyAddresses {
			parts = append(parts, "!"+a.IP)
		}
		all = append(all, strings.Join(parts, " "))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// want waits until a Service's Endpoints are as described.
func (c *cluster) want(service, want string) *corev1.Endpoints {
	c.T.Helper()
	var endpoints *corev1.Endpoints
	c.Env.WaitFor(c.T, service+"'s endpoints to be "+want, services.Timeout, func(ctx context.Context) (bool, error) {
		var err error
		if endpoints, err = c.get(ctx, service); err != nil {
			return false, err
		}
		if got := text(endpoints); got != want {
			return false, fmt.Errorf("they are %s", got)
		}
		return true, nil
	})
	return endpoints
}

func (c *cluster) wantGone(service string) {
	c.T.Helper()
	c.Env.WaitFor(c.T, service+"'s endpoints to be gone", services.Timeout, func(ctx context.Context) (bool, error) {
		_, err := c.get(ctx, service)
		return apierrors.IsNotFound(err), nil
	})
}

func (c *cluster) writes(mark audit.Mark) map[string]int {
	c.T.Helper()
	return c.Env.AuditSince(c.T, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.NS), audit.Writes()).
		Count(func(e audit.Event) string { return e.Verb })
}

func (c *cluster) patchService(name, patch string) {
	c.T.Helper()
	if _, err := c.Env.Client.CoreV1().Services(c.NS).Patch(c.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// From the first Pod to the Service's end; labels and the trigger time: TestEndpointUpdates.
func TestLife(t *testing.T) {
	c := start(t, 0)
	service := c.Service("svc", func(s *corev1.Service) { s.Labels = map[string]string{"team": "a"} })
	endpoints := c.want("svc", "")
	if got, want := endpoints.Annotations[corev1.EndpointsLastChangeTriggerTime], service.CreationTimestamp.UTC().Format(time.RFC3339Nano); got != want {
		t.Errorf("trigger time %q, want the service's creation %q", got, want)
	}
	if endpoints.Labels["team"] != "a" || endpoints.Labels["endpoints.kubernetes.io/managed-by"] != "endpoint-controller" {
		t.Errorf("labels %v", endpoints.Labels)
	}
	c.Pod("a", "node")
	c.Status("a", corev1.PodRunning, false, services.Address(0))
	c.want("svc", ":8080 !10.100.0.1")
	c.Status("a", corev1.PodRunning, true, services.Address(0))
	c.want("svc", ":8080 10.100.0.1")
	c.Running("b", "node", services.Address(1))
	c.want("svc", ":8080 10.100.0.1 10.100.0.2")
	before := c.want("svc", ":8080 10.100.0.1 10.100.0.2").ResourceVersion
	for i := range 10 {
		c.Annotate("a", fmt.Sprint(i))
	}
	c.Service("probe")
	c.want("probe", ":8080 10.100.0.1 10.100.0.2")
	if after := c.want("svc", ":8080 10.100.0.1 10.100.0.2").ResourceVersion; after != before {
		t.Error("annotations of a pod had the endpoints written")
	}
	c.patchService("svc", `{"metadata":{"labels":{"team":null,"tier":"x"}}}`)
	c.Env.WaitFor(t, "the service's labels on its endpoints", services.Timeout, func(ctx context.Context) (bool, error) {
		endpoints, err := c.get(ctx, "svc")
		_, old := endpoints.Labels["team"]
		return err == nil && endpoints.Labels["tier"] == "x" && !old, err
	})
	c.Delete("a", 0)
	c.want("svc", ":8080 10.100.0.2")
	if err := c.Env.Client.CoreV1().Services(c.NS).Delete(t.Context(), "svc", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.wantGone("svc")
	// Deleted by hand: made anew.
	if err := c.Env.Client.CoreV1().Endpoints(c.NS).Delete(t.Context(), "probe", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("probe", ":8080 10.100.0.2")
}

func TestTerminatingPod(t *testing.T) {
	c := start(t, 0)
	c.Service("plain")
	c.Service("published", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
	c.Running("a", "node", services.Address(0))
	c.Pod("b", "node")
	c.Status("b", corev1.PodPending, false, services.Address(1))
	c.want("plain", ":8080 10.100.0.1 !10.100.0.2")
	c.want("published", ":8080 10.100.0.1 10.100.0.2")
	c.Delete("a", 300)
	c.want("plain", ":8080 !10.100.0.2")
	c.want("published", ":8080 10.100.0.1 10.100.0.2")
	c.Status("b", corev1.PodFailed, false, services.Address(1))
	c.want("plain", "")
	c.want("published", ":8080 10.100.0.1")
}

// A Pod that flaps quickly ends up as it ends: TestEndpointWithMultiplePodUpdates.
func TestPodFlaps(t *testing.T) {
	c := start(t, 0)
	c.Service("svc")
	c.Running("a", "node", services.Address(0))
	c.want("svc", ":8080 10.100.0.1")
	for range 10 {
		c.Status("a", corev1.PodRunning, false, services.Address(0))
		c.Status("a", corev1.PodRunning, true, services.Address(0))
	}
	c.want("svc", ":8080 10.100.0.1")
	c.Status("a", corev1.PodRunning, false, services.Address(0))
	c.want("svc", ":8080 !10.100.0.1")
}

func TestExternalNameToClusterIPTransition(t *testing.T) {
	c := start(t, 0)
	c.Running("a", "node", services.Address(0))
	c.Service("svc", func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	})
	c.Service("probe")
	c.want("probe", ":8080 10.100.0.1")
	if _, err := c.get(t.Context(), "svc"); !apierrors.IsNotFound(err) {
		t.Errorf("endpoints of an external name: %v, want none", err)
	}
	c.patchService("svc", `{"spec":{"type":"ClusterIP","externalName":null}}`)
	c.want("svc", ":8080 10.100.0.1")
}

// Families, headless Services, and named ports that differ from Pod to Pod.
func TestShapes(t *testing.T) {
	c := start(t, 0)
	six := corev1.IPFamilyPolicySingleStack
	c.Service("six", func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &six, []corev1.IPFamily{corev1.IPv6Protocol}
	})
	c.Service("no-ports", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.Ports = corev1.ClusterIPNone, nil })
	c.Service("named", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("web") })
	port := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: number}}
		}
	}
	c.Pod("a", "node", port(81))
	c.Status("a", corev1.PodRunning, true, services.Address(0), services.Address6(0))
	c.Pod("b", "node", port(82))
	c.Status("b", corev1.PodRunning, true, services.Address(1))
	c.want("six", ":8080 fd00:2::1")
	if endpoints := c.want("no-ports", "10.100.0.1 10.100.0.2"); endpoints.Labels[corev1.IsHeadlessService] != "" {
		t.Errorf("labels %v of a headless service", endpoints.Labels)
	} else if _, ok := endpoints.Labels[corev1.IsHeadlessService]; !ok {
		t.Errorf("labels %v do not say that the service is headless", endpoints.Labels)
	}
	c.want("named", ":81 10.100.0.1; :82 10.100.0.2")
}

// Beyond a thousand addresses: TestEndpointTruncate.
func TestTruncate(t *testing.T) {
	env := framework.New(t)
	c := &cluster{services.NewWorld(t, env)}
	for i := range 1010 {
		name := fmt.Sprint("pod-", i)
		c.Pod(name, "node")
		c.Status(name, corev1.PodRunning, i < 995, services.Address(i))
	}
	c.Service("svc")
	run(t, env, framework.ControllersOptions{}, 0)
	counts := func(ready, notReady int, truncated bool) {
		t.Helper()
		c.Env.WaitFor(t, fmt.Sprintf("%d addresses ready and %d not", ready, notReady), services.Timeout, func(ctx context.Context) (bool, error) {
			endpoints, err := c.get(ctx, "svc")
			if err != nil || len(endpoints.Subsets) != 1 {
				return false, err
			}
			subset := endpoints.Subsets[0]
			value, annotated := endpoints.Annotations[corev1.EndpointsOverCapacity]
			if len(subset.Addresses) != ready || len(subset.NotReadyAddresses) != notReady || annotated != truncated || annotated && value != "truncated" {
				return false, fmt.Errorf("%d and %d, annotation %q", len(subset.Addresses), len(subset.NotReadyAddresses), value)
			}
			return true, nil
		})
	}
	counts(995, 5, true)
	for i := 995; i < 1005; i++ {
		c.Status(fmt.Sprint("pod-", i), corev1.PodRunning, true, services.Address(i))
	}
	counts(1000, 0, true)
	mark := env.AuditMark(t)
	c.patchService("svc", `{"metadata":{"annotations":{"a":"b"}}}`)
	c.Service("probe", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "none"} })
	c.want("probe", "")
	if got := c.writes(mark); got["update"] != 0 {
		t.Errorf("writes %v while nothing has changed", got)
	}
	for i := range 20 {
		c.Delete(fmt.Sprint("pod-", i), 0)
	}
	counts(985, 5, false)
}

// Endpoints that a Service left behind while no manager ran are deleted, locks are not.
func TestLeftovers(t *testing.T) {
	env := framework.New(t)
	c := &cluster{services.NewWorld(t, env)}
	for name, annotations := range map[string]map[string]string{"left-behind": nil, "lock": {"control-plane.alpha.kubernetes.io/leader": "{}"}} {
		endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}}}}
		if _, err := env.Client.CoreV1().Endpoints(c.NS).Create(t.Context(), endpoints, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.Service("manual", func(s *corev1.Service) { s.Spec.Selector = nil })
	manual := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "manual"}, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.2"}}}}}
	if _, err := env.Client.CoreV1().Endpoints(c.NS).Create(t.Context(), manual, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, env, framework.ControllersOptions{}, 0)
	c.wantGone("left-behind")
	c.want("lock", "192.0.2.1")
	c.want("manual", "192.0.2.2")
}

func TestBatching(t *testing.T) {
	c := start(t, 5*time.Second)
	c.Service("svc")
	c.want("svc", "")
	mark := c.Env.AuditMark(t)
	began := time.Now()
	for i := range 5 {
		c.Running(fmt.Sprint("pod-", i), "node", services.Address(i))
	}
	c.want("svc", ":8080 10.100.0.1 10.100.0.2 10.100.0.3 10.100.0.4 10.100.0.5")
	if got, most := c.writes(mark)["update"], 2+int(time.Since(began)/(5*time.Second)); got > most {
		t.Errorf("%d updates within %v, want up to %d", got, time.Since(began), most)
	}
}

// While the watch of Endpoints stands still, nothing is written on what it shows.
func TestStaleCache(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	run(t, env, framework.ControllersOptions{Via: proxy.Config}, 0)
	c := &cluster{services.NewWorld(t, env)}
	c.Service("probe")
	c.want("probe", "")
	stop := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: regexp.MustCompile(`/endpoints(\?|$)`)}, WithholdEvents: true})
	mark := env.AuditMark(t)
	c.Service("svc")
	c.want("svc", "")
	c.Running("a", "node", services.Address(0))
	env.Never(t, "the endpoints were written by a stale cache", 3*time.Second, func(ctx context.Context) (bool, error) {
		endpoints, err := c.get(ctx, "svc")
		return err == nil && text(endpoints) != "", err
	})
	stop.Remove()
	c.want("svc", ":8080 10.100.0.1")
	events := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.NS), audit.Writes(), audit.Code(409))
	if len(events) != 0 {
		t.Errorf("conflicts:\n%s", events)
	}
}
