// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package resourcequota runs the resourcequota-controller against a real API server, whose admission
// charges quotas by upstream's evaluators.
package resourcequota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/resourcequota"
	"github.com/kcm-dev/kcm/pkg/quota/v1/install"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

const (
	serviceAccount = "resourcequota-controller"
	timeout        = 60 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// start runs the controller as the manager does. Discovery is asked each second.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions, resync time.Duration) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	client := c.Client(serviceAccount)
	discover := func() ([]*metav1.APIResourceList, error) {
		return discovery.ServerPreferredNamespacedResources(client.Discovery())
	}
	c.Informers.Core().V1().Pods().Informer()
	c.Informers.Core().V1().Services().Informer()
	c.Informers.Core().V1().PersistentVolumeClaims().Informer()
	c.Informers.Resource().V1().ResourceClaims().Informer()
	started := make(chan struct{})
	close(started)
	factory := informerfactory.NewInformerFactory(c.Informers, c.Metadata)
	configuration := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(factory.ForResource), c.Informers)
	quotas, err := resourcequota.NewController(c.Ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     c.Informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(resync),
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          started,
		InformerFactory:           factory,
		ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
		UpdateFilter:              install.DefaultUpdateFilter(),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Run("resourcequota-controller", func(ctx context.Context) { quotas.Run(ctx, 5) })
	c.Run("discovery", func(ctx context.Context) { quotas.Sync(ctx, discover, time.Second) })
	return c
}

// hard makes a list of "name=quantity"s.
func hard(limits ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, limit := range limits {
		name, quantity, _ := strings.Cut(limit, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return list
}

func createQuota(t *testing.T, client kubernetes.Interface, ns, name string, limits corev1.ResourceList, changes ...func(*corev1.ResourceQuota)) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: limits}}
	for _, change := range changes {
		change(q)
	}
	if _, err := client.CoreV1().ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func priority(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}
	}
}

func scopes(all ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = all }
}

// used returns what quotas say is used, as "name=quantity" in order.
func used(q *corev1.ResourceQuota) []string {
	var all []string
	for name, quantity := range q.Status.Used {
		all = append(all, string(name)+"="+quantity.String())
	}
	slices.Sort(all)
	return all
}

// waitUsed waits until a quota says exactly this of some of its names.
func waitUsed(t *testing.T, env *framework.Env, ns, name string, want ...string) {
	t.Helper()
	env.WaitFor(t, fmt.Sprintf("quota %s to use %v", name, want), timeout, func(ctx context.Context) (bool, error) {
		q, err := env.Client.CoreV1().ResourceQuotas(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		all := used(q)
		for _, w := range want {
			if !slices.Contains(all, w) {
				return false, nil
			}
		}
		return len(q.Status.Hard) == len(q.Spec.Hard), nil
	})
}

func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func class(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

func createPod(t *testing.T, env *framework.Env, ns string, p *corev1.Pod) error {
	t.Helper()
	_, err := env.Client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	return err
}

func mustPod(t *testing.T, env *framework.Env, ns string, p *corev1.Pod) {
	t.Helper()
	if err := createPod(t, env, ns, p); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, env *framework.Env, ns, name string) {
	t.Helper()
	if err := env.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
}

// BC066: what is deleted is free again, however often, and nothing drifts.
func TestDeletesReplenish(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{}, 0)
	ns := env.Namespace(t, "replenish")
	createQuota(t, env.Client, ns, "q", hard("pods=5", "services=5", "services.nodeports=3", "count/configmaps=20"))
	waitUsed(t, env, ns, "q", "pods=0", "services=0", "count/configmaps=0")
	const rounds = 10
	for range rounds {
		for i := range 3 {
			mustPod(t, env, ns, pod(fmt.Sprintf("p%d", i)))
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
		if _, err := env.Client.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitUsed(t, env, ns, "q", "pods=3", "services=1", "services.nodeports=1")
		deletePod(t, env, ns, "p0")
		deletePod(t, env, ns, "p1")
		if err := env.Client.CoreV1().Services(ns).Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitUsed(t, env, ns, "q", "pods=1", "services=0", "services.nodeports=0")
		deletePod(t, env, ns, "p2")
		waitUsed(t, env, ns, "q", "pods=0")
	}
}

// BC067: a scoped quota beside one without scope.
func TestPriorityClassScopes(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{}, 0)
	ns := env.Namespace(t, "priority")
	high := priorityClass(t, env)
	createQuota(t, env.Client, ns, "a", hard("pods=2"), priority(corev1.ScopeSelectorOpIn, high))
	createQuota(t, env.Client, ns, "b", hard("pods=10"))
	waitUsed(t, env, ns, "a", "pods=0")
	waitUsed(t, env, ns, "b", "pods=0")
	mustPod(t, env, ns, pod("high", class(high)))
	mustPod(t, env, ns, pod("one"))
	mustPod(t, env, ns, pod("two"))
	waitUsed(t, env, ns, "a", "pods=1")
	waitUsed(t, env, ns, "b", "pods=3")
	deletePod(t, env, ns, "high")
	waitUsed(t, env, ns, "a", "pods=0")
	waitUsed(t, env, ns, "b", "pods=2")
}

// BC069: the start of the controller lowers nothing below what was admitted.
func TestStartKeepsWhatIsAdmitted(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "start")
	c := start(t, env, framework.ControllersOptions{}, 0)
	createQuota(t, env.Client, ns, "q", hard("pods=2"))
	waitUsed(t, env, ns, "q", "pods=0")
	mustPod(t, env, ns, pod("one"))
	c.Stop()
	mustPod(t, env, ns, pod("two"))
	if err := createPod(t, env, ns, pod("three")); !apierrors.IsForbidden(err) {
		t.Fatalf("a third pod: %v", err)
	}
	start(t, env, framework.ControllersOptions{}, 0)
	env.Never(t, "a third pod, or less in use than there is", 5*time.Second, func(ctx context.Context) (bool, error) {
		if err := createPod(t, env, ns, pod("three")); !apierrors.IsForbidden(err) {
			return true, fmt.Errorf("a third pod: %w", err)
		}
		q, err := env.Client.CoreV1().ResourceQuotas(ns).Get(ctx, "q", metav1.GetOptions{})
		return err == nil && !slices.Contains(used(q), "pods=2"), err
	})
}

// Pods that have ended free what they used, a change of what may be used is counted at once.
func TestChanges(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{}, 0)
	ns := env.Namespace(t, "changes")
	createQuota(t, env.Client, ns, "q", hard("pods=5", "requests.cpu=2", "count/pods=9"))
	waitUsed(t, env, ns, "q", "pods=0")
	mustPod(t, env, ns, pod("ends", requests("500m", "")))
	waitUsed(t, env, ns, "q", "pods=1", "requests.cpu=500m", "count/pods=1")
	p, err := env.Client.CoreV1().Pods(ns).Get(t.Context(), "ends", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodSucceeded
	if _, err := env.Client.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, env, ns, "q", "pods=0", "requests.cpu=0", "count/pods=1")
	if _, err := env.Client.CoreV1().ResourceQuotas(ns).Patch(t.Context(), "q", types.MergePatchType, []byte(`{"spec":{"hard":{"pods":null,"secrets":"4"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, env, ns, "q", "secrets=0", "count/pods=1")
	q, err := env.Client.CoreV1().ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(q.Spec.Hard, q.Status.Hard, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) || len(q.Status.Used) != 3 {
		t.Errorf("status %+v", q.Status)
	}
}

func requests(cpu, memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
		if cpu != "" {
			r.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			r.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
			r.Limits[corev1.ResourceMemory] = resource.MustParse(memory)
		}
	}
}

// crds returns a client of CustomResourceDefinitions.
func crds(t *testing.T, env *framework.Env) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func createWidget(t *testing.T, widgets dynamic.NamespaceableResourceInterface, group, ns, name string) {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
	if _, err := widgets.Namespace(ns).Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// breakConversion adds a version, to which a webhook is to convert that nobody serves: the object that
// is stored in the old one, and with it all of the resource, can no longer be listed.
func breakConversion(t *testing.T, env *framework.Env, group string) {
	t.Helper()
	crd, err := crds(t, env).Get(t.Context(), "widgets."+group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := crd.Object["spec"].(map[string]any)
	old := spec["versions"].([]any)[0].(map[string]any)
	newer := runtime.DeepCopyJSON(old)
	newer["name"], old["storage"] = "v2", false
	spec["versions"] = []any{old, newer}
	spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": []any{"v1"},
	}}
	if _, err := crds(t, env).Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "the list to fail", timeout, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v2", Resource: "widgets"}).List(ctx, metav1.ListOptions{})
		return err != nil && strings.Contains(err.Error(), "conversion webhook"), nil
	})
}

// A resource that comes while the controller runs is counted; when it goes, the last value stays.
func TestCustomResources(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{}, 0)
	ns := env.Namespace(t, "custom")
	group := "quota-" + rand.String(5) + ".example.com"
	createQuota(t, env.Client, ns, "q", hard("count/widgets."+group+"=5", "pods=3"))
	waitUsed(t, env, ns, "q", "pods=0")
	widgets := env.CustomResource(t, framework.CustomKind{Group: group, Plural: "widgets", Kind: "Widget"})
	waitUsed(t, env, ns, "q", "count/widgets."+group+"=0")
	createWidget(t, widgets, group, ns, "a")
	createWidget(t, widgets, group, ns, "b")
	waitUsed(t, env, ns, "q", "count/widgets."+group+"=2")
	if err := widgets.Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, env, ns, "q", "count/widgets."+group+"=1")
	if err := crds(t, env).Delete(t.Context(), "widgets."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mustPod(t, env, ns, pod("p"))
	deletePod(t, env, ns, "p")
	waitUsed(t, env, ns, "q", "pods=0")
}

// One resource that cannot be listed holds nothing up: a quota that does not name it is counted at
// once, the others keep that value and say why.
func TestBrokenResource(t *testing.T) {
	env := framework.New(t)
	group := "broken-" + rand.String(5) + ".example.com"
	createWidget(t, env.CustomResource(t, framework.CustomKind{Group: group, Plural: "widgets", Kind: "Widget"}), group, env.Namespace(t, "broken"), "old")
	breakConversion(t, env, group)
	start(t, env, framework.ControllersOptions{}, 0)
	ns := env.Namespace(t, "beside")
	began := time.Now()
	createQuota(t, env.Client, ns, "healthy", hard("pods=3", "count/configmaps=5"))
	createQuota(t, env.Client, ns, "touched", hard("pods=3", "count/widgets."+group+"=5"))
	waitUsed(t, env, ns, "healthy", "pods=0", "count/configmaps=0")
	waitUsed(t, env, ns, "touched", "pods=0")
	t.Logf("counted %v after their creation", time.Since(began))
	mustPod(t, env, ns, pod("p"))
	deletePod(t, env, ns, "p")
	waitUsed(t, env, ns, "touched", "pods=0")
	env.WaitFor(t, "the event that says why", 2*timeout, func(ctx context.Context) (bool, error) {
		list, err := env.Client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=UsageUnknown"})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		event := list.Items[0]
		t.Logf("event on %s: %s", event.InvolvedObject.Name, event.Message)
		return event.InvolvedObject.Name == "touched" && strings.Contains(event.Message, "count/widgets."+group+": ") && event.Type == corev1.EventTypeWarning, nil
	})
	list, err := env.Client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UsageUnknown"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Count != 1 {
		t.Errorf("events %v, %v", list.Items, err)
	}
	q, err := env.Client.CoreV1().ResourceQuotas(ns).Get(t.Context(), "touched", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, counted := q.Status.Used[corev1.ResourceName("count/widgets."+group)]; counted {
		t.Errorf("used %v: what cannot be listed was counted", used(q))
	}
}

// A recount mends what somebody has written into a status.
func TestResync(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{}, 2*time.Second)
	ns := env.Namespace(t, "resync")
	createQuota(t, env.Client, ns, "q", hard("pods=3"))
	waitUsed(t, env, ns, "q", "pods=0")
	mustPod(t, env, ns, pod("p"))
	if _, err := env.Client.CoreV1().ResourceQuotas(ns).Patch(t.Context(), "q", types.MergePatchType, []byte(`{"status":{"used":{"pods":"3"}}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	waitUsed(t, env, ns, "q", "pods=1")
}
