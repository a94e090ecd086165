// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package endpointslice runs the endpointslice-controller against a real API server.
package endpointslice

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller/endpointslice"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/integration/framework/services"
)

const serviceAccount = "endpointslice-controller"

func TestMain(m *testing.M) { framework.Main(m, services.DualStack()) }

type cluster struct {
	*services.World
}

type options struct {
	framework.ControllersOptions
	batchPeriod  time.Duration
	maxEndpoints int32
}

// start runs the controller as the manager does.
func start(t *testing.T, opts options) *cluster {
	t.Helper()
	env := framework.New(t)
	run(t, env, opts)
	return &cluster{World: services.NewWorld(t, env)}
}

func run(t *testing.T, env *framework.Env, opts options) *framework.Controllers {
	t.Helper()
	if opts.maxEndpoints == 0 {
		opts.maxEndpoints = 100
	}
	c := env.Controllers(t, opts.ControllersOptions)
	core := c.Informers.Core().V1()
	slices := endpointslice.NewController(c.Ctx, core.Pods(), core.Services(), core.Nodes(), c.Informers.Discovery().V1().EndpointSlices(),
		opts.maxEndpoints, c.Client(serviceAccount), opts.batchPeriod)
	c.Run("endpointslice-controller", func(ctx context.Context) { slices.Run(ctx, 5) })
	return c
}

// slices returns the slices of a Service, of whoever manages them.
func (c *cluster) slices(ctx context.Context, service string) ([]discovery.EndpointSlice, error) {
	list, err := c.Env.Client.DiscoveryV1().EndpointSlices(c.NS).List(ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// text describes slices: per slice its type and ports, then its endpoints and what holds of them.
func text(found []discovery.EndpointSlice) string {
	var all []string
	for _, slice := range found {
		var endpoints []string
		for _, e := range slice.Endpoints {
			state := ""
			for letter, holds := range map[string]*bool{"r": e.Conditions.Ready, "s": e.Conditions.Serving, "t": e.Conditions.Terminating} {
				if ptr.Deref(holds, false) {
					state += letter
				}
			}
			letters := strings.Split(state, "")
			slices.Sort(letters)
			endpoints = append(endpoints, e.Addresses[0]+"="+e.TargetRef.Name+":"+strings.Join(letters, ""))
		}
		slices.Sort(endpoints)
		ports := []string{}
		for _, port := range slice.Ports {
			ports = append(ports, fmt.Sprint(*port.Port))
		}
		slices.Sort(ports)
		all = append(all, fmt.Sprintf("%s %s %s", slice.AddressType, strings.Join(ports, ","), strings.Join(endpoints, " ")))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// want waits until a Service's slices are as described.
func (c *cluster) want(service, want string) []discovery.EndpointSlice {
	c.T.Helper()
	var found []discovery.EndpointSlice
	c.Env.WaitFor(c.T, service+"'s slices to be "+want, services.Timeout, func(ctx context.Context) (bool, error) {
		var err error
		if found, err = c.slices(ctx, service); err != nil {
			return false, err
		}
		if got := text(found); got != want {
			return false, fmt.Errorf("they are %s", got)
		}
		return true, nil
	})
	return found
}

// writes counts the controller's writes since the mark, by verb.
func (c *cluster) writes(mark audit.Mark) map[string]int {
	c.T.Helper()
	return c.Env.AuditSince(c.T, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.NS), audit.Writes(), audit.Not(audit.Resource("events"))).
		Count(func(e audit.Event) string { return e.Verb })
}

func TestLife(t *testing.T) {
	c := start(t, options{})
	c.Node("life-node", "zone-a")
	c.Service("svc")
	c.want("svc", "IPv4  ")
	c.Pod("a", "life-node")
	c.Status("a", corev1.PodRunning, false, services.Address(0))
	found := c.want("svc", "IPv4 8080 10.100.0.1=a:")
	c.Status("a", corev1.PodRunning, true, services.Address(0))
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs")
	endpoint := found[0].Endpoints[0]
	if *endpoint.NodeName != "life-node" || *endpoint.Zone != "zone-a" {
		t.Errorf("endpoint on %s in %s, want life-node in zone-a", *endpoint.NodeName, *endpoint.Zone)
	}
	c.Running("b", "life-node", services.Address(1))
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=b:rs")
	c.Delete("a", 300)
	c.want("svc", "IPv4 8080 10.100.0.1=a:st 10.100.0.2=b:rs")
	c.Delete("a", 0)
	c.want("svc", "IPv4 8080 10.100.0.2=b:rs")
	if err := c.Env.Client.CoreV1().Services(c.NS).Delete(t.Context(), "svc", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The garbage collector does not run here: the slice stays, and nobody writes it.
	mark := c.Env.AuditMark(t)
	c.Delete("b", 0)
	c.Service("other", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} })
	c.want("other", "IPv4  ")
	if got := c.writes(mark); got["create"] != 1 || len(got) != 1 {
		t.Errorf("writes %v, want one creation for the other service", got)
	}
}

// Terminating and published Pods: TestEndpointSliceWithTerminatingPod.
func TestTerminatingPod(t *testing.T) {
	c := start(t, options{})
	c.Node("term-node", "a")
	c.Service("plain")
	c.Service("published", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
	c.Running("a", "term-node", services.Address(0))
	c.want("plain", "IPv4 8080 10.100.0.1=a:rs")
	c.Delete("a", 300)
	c.want("plain", "IPv4 8080 10.100.0.1=a:st")
	c.want("published", "IPv4 8080 10.100.0.1=a:rst")
	c.Status("a", corev1.PodRunning, false, services.Address(0))
	c.want("plain", "IPv4 8080 10.100.0.1=a:t")
	c.want("published", "IPv4 8080 10.100.0.1=a:rt")
}

// BC071: a headless Service without ports is quiet.
func TestHeadlessWithoutPortsIsQuiet(t *testing.T) {
	c := start(t, options{})
	c.Node("quiet-node", "a")
	c.Service("svc", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.Ports = corev1.ClusterIPNone, nil })
	for i, pod := range []string{"a", "b", "c"} {
		c.Running(pod, "quiet-node", services.Address(i))
	}
	before := c.want("svc", "IPv4  10.100.0.1=a:rs 10.100.0.2=b:rs 10.100.0.3=c:rs")
	mark := c.Env.AuditMark(t)
	for i := range 20 {
		c.Annotate("a", fmt.Sprint(i))
	}
	// A change that is answered shows that the edits before it were seen.
	c.Service("probe")
	c.want("probe", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=b:rs 10.100.0.3=c:rs")
	after := c.want("svc", "IPv4  10.100.0.1=a:rs 10.100.0.2=b:rs 10.100.0.3=c:rs")
	if before[0].ResourceVersion != after[0].ResourceVersion {
		t.Error("the slice was written")
	}
	if got := c.writes(mark); got["create"] != 1 || len(got) != 1 {
		t.Errorf("writes %v, want the probe's slice alone", got)
	}
}

// BC072: the address of a finished Pod is taken by a new one.
func TestIPOfFinishedPod(t *testing.T) {
	c := start(t, options{})
	c.Node("ip-node", "a")
	c.Service("svc")
	c.Running("old", "ip-node", "10.0.0.9")
	c.want("svc", "IPv4 8080 10.0.0.9=old:rs")
	c.Status("old", corev1.PodFailed, false, "10.0.0.9")
	c.Running("new", "ip-node", "10.0.0.9")
	c.want("svc", "IPv4 8080 10.0.0.9=new:rs")
	// A Pod that was never ready finishes: no condition of it changes.
	c.Pod("failing", "ip-node")
	c.Status("failing", corev1.PodRunning, false, services.Address(1))
	c.want("svc", "IPv4 8080 10.0.0.9=new:rs 10.100.0.2=failing:")
	c.Status("failing", corev1.PodFailed, false, services.Address(1))
	c.want("svc", "IPv4 8080 10.0.0.9=new:rs")
}

// BC074: one family of two, and an address that comes late.
func TestFamilies(t *testing.T) {
	c := start(t, options{})
	c.Node("family-node", "a")
	family := func(policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = corev1.ClusterIPNone, &policy, families
		}
	}
	c.Service("six", family(corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol))
	c.Service("both", family(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol))
	c.Running("a", "family-node", services.Address(0), services.Address6(0))
	c.Running("late", "family-node", services.Address(1))
	c.want("six", "IPv6 8080 fd00:2::1=a:rs")
	c.want("both", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=late:rs; IPv6 8080 fd00:2::1=a:rs")
	c.Status("late", corev1.PodRunning, true, services.Address(1), services.Address6(1))
	c.want("six", "IPv6 8080 fd00:2::1=a:rs fd00:2::2=late:rs")
	c.want("both", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=late:rs; IPv6 8080 fd00:2::1=a:rs fd00:2::2=late:rs")
	// The second family goes.
	patch := `{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"],"clusterIPs":["None"]}}`
	if _, err := c.Env.Client.CoreV1().Services(c.NS).Patch(t.Context(), "both", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("both", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=late:rs")
}

// BC075: a Pod on a node that is not there is left out until the node comes.
func TestNodeMissing(t *testing.T) {
	c := start(t, options{})
	c.Node("there", "zone-a")
	c.Service("svc", func(s *corev1.Service) {
		s.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameZone)
	})
	c.Running("a", "there", services.Address(0))
	c.Running("b", "ghost", services.Address(1))
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs")
	// Two failed syncs: the next retry is seconds away.
	c.Env.WaitFor(t, "an event about the pod that is left out", services.Timeout, func(ctx context.Context) (bool, error) {
		events, err := c.Env.Client.CoreV1().Events(c.NS).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedToUpdateEndpointSlices"})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "Node ghost Not Found"), err
	})
	c.Node("ghost", "zone-b")
	found := c.want("svc", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=b:rs")
	for _, e := range found[0].Endpoints {
		if e.Hints == nil || len(e.Hints.ForZones) != 1 || e.Hints.ForZones[0].Name != *e.Zone {
			t.Errorf("endpoint %s in %s has hints %+v, want its own zone", e.TargetRef.Name, *e.Zone, e.Hints)
		}
	}
	// A node that moves takes its endpoints' zones along.
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"zone-c"}}}`, corev1.LabelTopologyZone)
	if _, err := c.Env.Client.CoreV1().Nodes().Patch(t.Context(), "ghost", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Env.WaitFor(t, "the endpoint to be in zone-c", services.Timeout, func(ctx context.Context) (bool, error) {
		found, err := c.slices(ctx, "svc")
		return err == nil && slices.ContainsFunc(found[0].Endpoints, func(e discovery.Endpoint) bool { return *e.Zone == "zone-c" }), err
	})
}

// Slices that are edited, taken away or made by hand are put right.
func TestRepair(t *testing.T) {
	c := start(t, options{})
	c.Node("repair-node", "a")
	c.Service("svc")
	c.Running("a", "repair-node", services.Address(0))
	const right = "IPv4 8080 10.100.0.1=a:rs"
	slice := &c.want("svc", right)[0]
	client := c.Env.Client.DiscoveryV1().EndpointSlices(c.NS)
	for what, patch := range map[string]string{
		"address":      `[{"op":"replace","path":"/endpoints/0/addresses","value":["192.0.2.1"]}]`,
		"ready":        `[{"op":"replace","path":"/endpoints/0/conditions/ready","value":false}]`,
		"ports":        `[{"op":"replace","path":"/ports","value":[]}]`,
		"no endpoints": `[{"op":"replace","path":"/endpoints","value":[]}]`,
		"service-name": `[{"op":"replace","path":"/metadata/labels/kubernetes.io~1service-name","value":"other"}]`,
		"managed-by":   `[{"op":"replace","path":"/metadata/labels/endpointslice.kubernetes.io~1managed-by","value":"me"}]`,
	} {
		slice = c.ownSlice("svc")
		if _, err := client.Patch(t.Context(), slice.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		c.Env.WaitFor(t, "a repair of: "+what, services.Timeout, func(ctx context.Context) (bool, error) {
			found, err := c.slices(ctx, "svc")
			mine := slices.DeleteFunc(found, func(s discovery.EndpointSlice) bool {
				return s.Labels[discovery.LabelManagedBy] != "endpointslice-controller.k8s.io"
			})
			return err == nil && text(mine) == right, err
		})
	}
	for range 2 {
		slice = c.ownSlice("svc")
		if err := client.Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Env.WaitFor(t, "a new slice in place of "+slice.Name, services.Timeout, func(ctx context.Context) (bool, error) {
			found, err := c.slices(ctx, "svc")
			return err == nil && slices.ContainsFunc(found, func(s discovery.EndpointSlice) bool {
				return s.UID != slice.UID && s.Labels[discovery.LabelManagedBy] == "endpointslice-controller.k8s.io"
			}), err
		})
	}
}

func (c *cluster) ownSlice(service string) *discovery.EndpointSlice {
	c.T.Helper()
	found, err := c.slices(c.T.Context(), service)
	if err != nil {
		c.T.Fatal(err)
	}
	for i := range found {
		if found[i].Labels[discovery.LabelManagedBy] == "endpointslice-controller.k8s.io" {
			return &found[i]
		}
	}
	c.T.Fatalf("no slice of %s", service)
	return nil
}

// A manager that starts notices what was deleted while none ran, and deletions of what it has not
// written itself.
func TestRestart(t *testing.T) {
	env := framework.New(t)
	c := &cluster{World: services.NewWorld(t, env)}
	first := run(t, env, options{})
	c.Node("restart-node", "a")
	c.Service("svc")
	c.Running("a", "restart-node", services.Address(0))
	slice := c.want("svc", "IPv4 8080 10.100.0.1=a:rs")[0]
	first.Stop()
	client := env.Client.DiscoveryV1().EndpointSlices(c.NS)
	if err := client.Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := run(t, env, options{})
	slice = c.want("svc", "IPv4 8080 10.100.0.1=a:rs")[0]
	second.Stop()
	run(t, env, options{})
	c.Running("b", "restart-node", services.Address(1))
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=b:rs")
	if err := client.Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs 10.100.0.2=b:rs")
}

// The slices of a thousand endpoints, by --max-endpoints-per-slice.
func TestMaxEndpointsPerSlice(t *testing.T) {
	c := start(t, options{maxEndpoints: 10})
	c.Node("max-node", "a")
	for i := range 25 {
		c.Running(fmt.Sprint("pod-", i), "max-node", services.Address(i))
	}
	c.Service("svc")
	sizes := func(want ...int) {
		t.Helper()
		c.Env.WaitFor(t, fmt.Sprint("slices of ", want), services.Timeout, func(ctx context.Context) (bool, error) {
			found, err := c.slices(ctx, "svc")
			var got []int
			for _, slice := range found {
				got = append(got, len(slice.Endpoints))
			}
			slices.Sort(got)
			return err == nil && slices.Equal(got, want), err
		})
	}
	sizes(5, 10, 10)
	mark := c.Env.AuditMark(t)
	c.Running("pod-25", "max-node", services.Address(25))
	sizes(6, 10, 10)
	if got := c.writes(mark); got["update"] > 2 || got["create"] > 0 || got["delete"] > 0 {
		t.Errorf("writes %v for one endpoint more, want up to two updates of one slice", got)
	}
}

// With a batch period the first change goes out at once, the others together.
func TestBatching(t *testing.T) {
	c := start(t, options{batchPeriod: 5 * time.Second})
	c.Node("batch-node", "a")
	c.Service("svc")
	c.want("svc", "IPv4  ")
	mark := c.Env.AuditMark(t)
	began := time.Now()
	c.Running("pod-0", "batch-node", services.Address(0))
	for i := 1; i < 5; i++ {
		c.Running(fmt.Sprint("pod-", i), "batch-node", services.Address(i))
	}
	c.want("svc", "IPv4 8080 10.100.0.1=pod-0:rs 10.100.0.2=pod-1:rs 10.100.0.3=pod-2:rs 10.100.0.4=pod-3:rs 10.100.0.5=pod-4:rs")
	// A write at first, and then one per period.
	if got, most := c.writes(mark)["update"], 2+int(time.Since(began)/(5*time.Second)); got > most {
		t.Errorf("%d updates within %v, want up to %d", got, time.Since(began), most)
	}
}

// While the watch of slices stands still, nothing is written twice, and nothing is lost afterwards.
func TestStaleCache(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	run(t, env, options{ControllersOptions: framework.ControllersOptions{Via: proxy.Config}})
	c := &cluster{World: services.NewWorld(t, env)}
	c.Node("stale-node", "a")
	c.Service("probe")
	c.want("probe", "IPv4  ")
	stop := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: regexp.MustCompile(`/endpointslices(\?|$)`)}, WithholdEvents: true})
	mark := env.AuditMark(t)
	c.Service("svc")
	c.want("svc", "IPv4  ")
	for i := range 5 {
		c.Running(fmt.Sprint("pod-", i), "stale-node", services.Address(i))
	}
	env.Never(t, "a slice was written by a stale cache", 3*time.Second, func(ctx context.Context) (bool, error) {
		found, err := c.slices(ctx, "svc")
		return err == nil && text(found) != "IPv4  ", err
	})
	stop.Remove()
	c.want("svc", "IPv4 8080 10.100.0.1=pod-0:rs 10.100.0.2=pod-1:rs 10.100.0.3=pod-2:rs 10.100.0.4=pod-3:rs 10.100.0.5=pod-4:rs")
	if got := c.writes(mark); got["create"] != 1 || got["delete"] != 0 {
		t.Errorf("writes %v, want one creation for the one service", got)
	}
}

// ExternalName and back: slices are written while there is something to write.
func TestExternalNameTransition(t *testing.T) {
	c := start(t, options{})
	c.Node("external-node", "a")
	c.Running("a", "external-node", services.Address(0))
	c.Service("svc", func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	})
	c.Service("probe")
	c.want("probe", "IPv4 8080 10.100.0.1=a:rs")
	if found, err := c.slices(t.Context(), "svc"); err != nil || len(found) != 0 {
		t.Errorf("slices %q (%v), want none", text(found), err)
	}
	patch := `{"spec":{"type":"ClusterIP","externalName":null}}`
	if _, err := c.Env.Client.CoreV1().Services(c.NS).Patch(t.Context(), "svc", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.want("svc", "IPv4 8080 10.100.0.1=a:rs")
}

// A namespace in deletion refuses new slices; that is no failure.
func TestNamespaceTerminating(t *testing.T) {
	c := start(t, options{})
	c.Service("held", func(s *corev1.Service) { s.Finalizers = []string{"example.com/hold"} })
	slice := c.want("held", "IPv4  ")[0]
	if err := c.Env.Client.CoreV1().Namespaces().Delete(t.Context(), c.NS, metav1.DeleteOptions{}); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if err := c.Env.Client.DiscoveryV1().EndpointSlices(c.NS).Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Env.Never(t, "an event tells of a failure", 4*time.Second, func(ctx context.Context) (bool, error) {
		events, err := c.Env.Client.CoreV1().Events(c.NS).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedToUpdateEndpointSlices"})
		return err == nil && len(events.Items) > 0, err
	})
	if _, err := c.Env.Client.CoreV1().Services(c.NS).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
