// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

var now = time.Date(2026, 5, 19, 10, 0, 0, 0, time.UTC)

func list(pairs ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for _, pair := range pairs {
		name, quantity, _ := strings.Cut(pair, "=")
		l[v1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

// text shows a list without zeros.
func text(l v1.ResourceList) string {
	var all []string
	for name, quantity := range l {
		if !quantity.IsZero() {
			all = append(all, string(name)+"="+quantity.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// listers returns what lists the given objects, of whatever kind they are.
func listers(objects ...runtime.Object) quota.ListerForResourceFunc {
	return func(gvr schema.GroupVersionResource) (cache.GenericLister, error) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, o := range objects {
			if err := indexer.Add(o); err != nil {
				return nil, err
			}
		}
		return cache.NewGenericLister(indexer, gvr.GroupResource()), nil
	}
}

func pod(name string, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func requests(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = list(pairs...) }
}

func limits(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = list(pairs...) }
}

func phase(ph v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = ph } }

func deleted(at time.Time, grace int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(at)), &grace }
}

func priority(class string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.PriorityClassName = class }
}

func TestPodUsage(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	tests := []struct {
		name string
		pod  *v1.Pod
		want string
	}{
		{"nothing asked", pod("p"), "count/pods=1 pods=1"},
		{"requests and limits", pod("p", requests("cpu=1", "memory=1Gi", "ephemeral-storage=2Gi"), limits("cpu=2", "memory=2Gi", "ephemeral-storage=3Gi")),
			"count/pods=1 cpu=1 ephemeral-storage=2Gi limits.cpu=2 limits.ephemeral-storage=3Gi limits.memory=2Gi memory=1Gi pods=1 requests.cpu=1 requests.ephemeral-storage=2Gi requests.memory=1Gi"},
		{"huge pages and extended resources", pod("p", requests("hugepages-2Mi=4Mi", "example.com/gpu=2", "kubernetes.io/strange=1")), "count/pods=1 hugepages-2Mi=4Mi pods=1 requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi"},
		{"the extended resource of a device class", pod("p", requests("deviceclass.resource.kubernetes.io/gpu=2")), "count/pods=1 pods=1 requests.deviceclass.resource.kubernetes.io/gpu=2"},
		{"init containers and sidecars", pod("p", requests("cpu=100m"), func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{
				{Resources: v1.ResourceRequirements{Requests: list("cpu=700m")}},
				{RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: list("cpu=30m")}},
			}
		}), "count/pods=1 cpu=700m pods=1 requests.cpu=700m"},
		{"overhead", pod("p", requests("cpu=100m"), func(p *v1.Pod) { p.Spec.Overhead = list("cpu=5m") }), "count/pods=1 cpu=105m pods=1 requests.cpu=105m"},
		{"of the pod as a whole", pod("p", requests("cpu=100m"), func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Requests: list("cpu=300m")} }), "count/pods=1 cpu=300m pods=1 requests.cpu=300m"},
		{"resize downward that is under way", pod("p", requests("cpu=100m"), func(p *v1.Pod) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", AllocatedResources: list("cpu=400m"), Resources: &v1.ResourceRequirements{Requests: list("cpu=500m")}}}
		}), "count/pods=1 cpu=500m pods=1 requests.cpu=500m"},
		{"succeeded", pod("p", requests("cpu=1"), phase(v1.PodSucceeded)), "count/pods=1"},
		{"failed", pod("p", requests("cpu=1"), phase(v1.PodFailed)), "count/pods=1"},
		{"in deletion", pod("p", requests("cpu=1"), deleted(now.Add(-29*time.Second), 30)), "count/pods=1 cpu=1 pods=1 requests.cpu=1"},
		{"in deletion, its grace period just over", pod("p", requests("cpu=1"), deleted(now.Add(-30*time.Second), 30)), "count/pods=1 cpu=1 pods=1 requests.cpu=1"},
		{"in deletion, its grace period over", pod("p", requests("cpu=1"), deleted(now.Add(-31*time.Second), 30)), "count/pods=1"},
		{"in deletion without a grace period", pod("p", func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour))) }), "count/pods=1 pods=1"},
	}
	e := NewPodEvaluator(listers(), clocktesting.NewFakeClock(now))
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			used, err := e.Usage(tc.pod)
			if err != nil || text(used) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", text(used), err, tc.want)
			}
			if again, err := PodUsageFunc(tc.pod, clocktesting.NewFakeClock(now)); err != nil || !quota.Equals(again, used) {
				t.Errorf("PodUsageFunc: %s, %v", text(again), err)
			}
		})
	}
	if _, err := e.Usage(&v1.Service{}); err == nil {
		t.Error("a service passes for a pod")
	}
}

func TestScopes(t *testing.T) {
	scope := func(name v1.ResourceQuotaScope, operator v1.ScopeSelectorOperator, values ...string) v1.ScopedResourceSelectorRequirement {
		return v1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: operator, Values: values}
	}
	exists := func(name v1.ResourceQuotaScope) v1.ScopedResourceSelectorRequirement {
		return scope(name, v1.ScopeSelectorOpExists)
	}
	affinity := func(a v1.Affinity) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Affinity = &a } }
	term := v1.PodAffinityTerm{TopologyKey: "k"}
	byName, bySelector := term, term
	byName.Namespaces, bySelector.NamespaceSelector = []string{"other"}, &metav1.LabelSelector{}
	const pc = v1.ResourceQuotaScopePriorityClass
	tests := []struct {
		name  string
		pod   *v1.Pod
		scope v1.ScopedResourceSelectorRequirement
		want  bool
	}{
		{"ends", pod("p", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) }), exists(v1.ResourceQuotaScopeTerminating), true},
		{"ends", pod("p", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) }), exists(v1.ResourceQuotaScopeNotTerminating), false},
		{"lasts", pod("p"), exists(v1.ResourceQuotaScopeTerminating), false},
		{"lasts", pod("p"), exists(v1.ResourceQuotaScopeNotTerminating), true},
		{"best effort", pod("p"), exists(v1.ResourceQuotaScopeBestEffort), true},
		{"best effort", pod("p", requests("ephemeral-storage=1Gi", "cpu=0")), exists(v1.ResourceQuotaScopeBestEffort), true},
		{"not best effort", pod("p", limits("memory=1")), exists(v1.ResourceQuotaScopeBestEffort), false},
		{"not best effort", pod("p", func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list("cpu=1")}}}
		}), exists(v1.ResourceQuotaScopeNotBestEffort), true},
		{"not best effort as a whole", pod("p", func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Requests: list("cpu=1")} }), exists(v1.ResourceQuotaScopeNotBestEffort), true},
		{"class of its status", pod("p", func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSBurstable }), exists(v1.ResourceQuotaScopeBestEffort), false},
		{"priority In", pod("p", priority("high")), scope(pc, v1.ScopeSelectorOpIn, "low", "high"), true},
		{"priority In", pod("p", priority("else")), scope(pc, v1.ScopeSelectorOpIn, "low", "high"), false},
		{"no priority In", pod("p"), scope(pc, v1.ScopeSelectorOpIn, "high"), false},
		{"priority NotIn", pod("p", priority("high")), scope(pc, v1.ScopeSelectorOpNotIn, "high"), false},
		{"priority NotIn", pod("p", priority("else")), scope(pc, v1.ScopeSelectorOpNotIn, "high"), true},
		{"no priority NotIn", pod("p"), scope(pc, v1.ScopeSelectorOpNotIn, "high"), true},
		{"priority Exists", pod("p", priority("high")), exists(pc), true},
		{"no priority Exists", pod("p"), exists(pc), false},
		{"priority DoesNotExist", pod("p", priority("high")), scope(pc, v1.ScopeSelectorOpDoesNotExist), false},
		{"no priority DoesNotExist", pod("p"), scope(pc, v1.ScopeSelectorOpDoesNotExist), true},
		{"no affinity", pod("p"), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), false},
		{"affinity in its namespace", pod("p", affinity(v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}})), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), false},
		{"required affinity", pod("p", affinity(v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term, byName}}})), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), true},
		{"preferred affinity", pod("p", affinity(v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{PodAffinityTerm: bySelector}}}})), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), true},
		{"required anti-affinity", pod("p", affinity(v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{bySelector}}})), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), true},
		{"preferred anti-affinity", pod("p", affinity(v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{PodAffinityTerm: byName}}}})), exists(v1.ResourceQuotaScopeCrossNamespacePodAffinity), true},
		{"scope of claims", pod("p"), exists(v1.ResourceQuotaScopeVolumeAttributesClass), false},
	}
	e := NewPodEvaluator(listers(), clocktesting.NewFakeClock(now))
	for _, tc := range tests {
		t.Run(tc.name+" "+string(tc.scope.ScopeName)+" "+string(tc.scope.Operator), func(t *testing.T) {
			got, err := e.MatchingScopes(tc.pod, []v1.ScopedResourceSelectorRequirement{tc.scope})
			if err != nil || (len(got) == 1) != tc.want {
				t.Errorf("matches %v, %v, want %t", got, err, tc.want)
			}
			uncovered, err := e.UncoveredQuotaScopes([]v1.ScopedResourceSelectorRequirement{tc.scope}, got)
			if err != nil || (len(uncovered) == 0) != tc.want {
				t.Errorf("uncovered %v, %v", uncovered, err)
			}
		})
	}
	for _, broken := range []v1.ScopedResourceSelectorRequirement{scope(pc, "Near"), scope(pc, v1.ScopeSelectorOpIn)} {
		if _, err := e.MatchingScopes(pod("p"), []v1.ScopedResourceSelectorRequirement{broken}); err == nil {
			t.Errorf("%v: no error", broken)
		}
	}
}

func TestUsageStats(t *testing.T) {
	objects := []runtime.Object{pod("a", requests("cpu=1")), pod("b", requests("cpu=1"), phase(v1.PodFailed)), pod("c", requests("cpu=2"), priority("high")),
		pod("d", func(p *v1.Pod) { p.Namespace = "other" })}
	tests := []struct {
		name    string
		options quota.UsageStatsOptions
		want    string
	}{
		{"all", quota.UsageStatsOptions{}, "count/pods=3 cpu=3 pods=2 requests.cpu=3"},
		{"scope", quota.UsageStatsOptions{Scopes: []v1.ResourceQuotaScope{v1.ResourceQuotaScopeNotBestEffort}}, "count/pods=3 cpu=3 pods=2 requests.cpu=3"},
		{"scope selector", quota.UsageStatsOptions{ScopeSelector: &v1.ScopeSelector{MatchExpressions: []v1.ScopedResourceSelectorRequirement{
			{ScopeName: v1.ResourceQuotaScopePriorityClass, Operator: v1.ScopeSelectorOpIn, Values: []string{"high"}}}}}, "count/pods=1 cpu=2 pods=1 requests.cpu=2"},
		{"both", quota.UsageStatsOptions{Scopes: []v1.ResourceQuotaScope{v1.ResourceQuotaScopeTerminating}, ScopeSelector: &v1.ScopeSelector{MatchExpressions: []v1.ScopedResourceSelectorRequirement{
			{ScopeName: v1.ResourceQuotaScopePriorityClass, Operator: v1.ScopeSelectorOpExists}}}}, ""},
	}
	e := NewPodEvaluator(listers(objects...), clocktesting.NewFakeClock(now))
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.options.Namespace, tc.options.Resources = "ns", []v1.ResourceName{"pods", "memory"}
			stats, err := e.UsageStats(tc.options)
			if err != nil || text(stats.Used) != tc.want {
				t.Errorf("got %q, %v, want %q", text(stats.Used), err, tc.want)
			}
			if zero, ok := stats.Used["memory"]; !ok || !zero.IsZero() {
				t.Errorf("memory %v, %t: what is asked for is told", zero, ok)
			}
		})
	}
	broken := NewPodEvaluator(func(schema.GroupVersionResource) (cache.GenericLister, error) { return nil, errors.New("not synced") }, clocktesting.NewFakeClock(now))
	if _, err := broken.UsageStats(quota.UsageStatsOptions{}); err == nil || !strings.Contains(err.Error(), "not synced") {
		t.Errorf("error %v", err)
	}
	if _, err := e.UsageStats(quota.UsageStatsOptions{Namespace: "ns", ScopeSelector: &v1.ScopeSelector{MatchExpressions: []v1.ScopedResourceSelectorRequirement{
		{ScopeName: v1.ResourceQuotaScopePriorityClass, Operator: "Near"}}}}); err == nil {
		t.Error("a broken scope selector passes")
	}
}

func TestMatchingResources(t *testing.T) {
	tests := []struct {
		evaluator quota.Evaluator
		names     string // those that match
		others    string
	}{
		{NewPodEvaluator(listers(), clocktesting.NewFakeClock(now)),
			"pods count/pods cpu memory ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage hugepages-2Mi requests.hugepages-1Gi requests.example.com/gpu requests.deviceclass.resource.kubernetes.io/gpu",
			"services requests.storage example.com/gpu requests.kubernetes.io/x gold.storageclass.storage.k8s.io/requests.storage count/pods.example.com limits.example.com/gpu"},
		{NewServiceEvaluator(listers()), "services count/services services.nodeports services.loadbalancers", "pods count/services.example.com"},
		{NewPersistentVolumeClaimEvaluator(listers()), "persistentvolumeclaims count/persistentvolumeclaims requests.storage gold.storageclass.storage.k8s.io/requests.storage gold.storageclass.storage.k8s.io/persistentvolumeclaims",
			"requests.ephemeral-storage gold.storageclass.storage.k8s.io/else"},
		{NewResourceClaimEvaluator(listers(), nil), "count/resourceclaims.resource.k8s.io gpu.deviceclass.resource.k8s.io/devices requests.example.com/gpu", "pods count/resourceclaims requests.cpu"},
	}
	for _, tc := range tests {
		t.Run(tc.evaluator.GroupResource().String(), func(t *testing.T) {
			var all []v1.ResourceName
			for _, name := range strings.Fields(tc.names + " " + tc.others + " " + tc.names) {
				all = append(all, v1.ResourceName(name))
			}
			var got []string
			for _, name := range tc.evaluator.MatchingResources(all) {
				got = append(got, string(name))
			}
			if strings.Join(got, " ") != tc.names {
				t.Errorf("matching %v", got)
			}
			q := &v1.ResourceQuota{Status: v1.ResourceQuotaStatus{Hard: v1.ResourceList{all[0]: resource.MustParse("1")}}}
			if match, err := tc.evaluator.Matches(q, pod("p")); err != nil || !match {
				t.Errorf("matches the quota: %t, %v", match, err)
			}
			if err := tc.evaluator.Constraints(all, pod("p")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHandles(t *testing.T) {
	attributes := func(operation admission.Operation, subresource string) admission.Attributes {
		return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "ns", "n", schema.GroupVersionResource{}, subresource, operation, nil, false, nil)
	}
	pods, claims := NewPodEvaluator(listers(), clocktesting.NewFakeClock(now)), NewResourceClaimEvaluator(listers(), nil)
	for _, tc := range []struct {
		evaluator   quota.Evaluator
		operation   admission.Operation
		subresource string
		want        bool
	}{
		{pods, admission.Create, "", true}, {pods, admission.Update, "", true}, {pods, admission.Update, "resize", true}, {pods, admission.Update, "status", false},
		{pods, admission.Create, "eviction", false}, {pods, admission.Delete, "", false}, {claims, admission.Create, "", true}, {claims, admission.Update, "", false},
	} {
		if got := tc.evaluator.Handles(attributes(tc.operation, tc.subresource)); got != tc.want {
			t.Errorf("%s %s %q: %t", tc.evaluator.GroupResource(), tc.operation, tc.subresource, got)
		}
	}
}

func TestServiceUsage(t *testing.T) {
	ports := []v1.ServicePort{{Port: 1}, {Port: 2, NodePort: 30000}}
	tests := []struct {
		name string
		spec v1.ServiceSpec
		want string
	}{
		{"cluster IP", v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, Ports: ports}, "count/services=1 services=1"},
		{"node port", v1.ServiceSpec{Type: v1.ServiceTypeNodePort, Ports: ports}, "count/services=1 services.nodeports=2 services=1"},
		{"load balancer", v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: ports}, "count/services=1 services.loadbalancers=1 services.nodeports=2 services=1"},
		{"load balancer with node ports", v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: ports, AllocateLoadBalancerNodePorts: new(true)}, "count/services=1 services.loadbalancers=1 services.nodeports=2 services=1"},
		{"load balancer without", v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: ports, AllocateLoadBalancerNodePorts: new(false)}, "count/services=1 services.loadbalancers=1 services.nodeports=1 services=1"},
		{"external name", v1.ServiceSpec{Type: v1.ServiceTypeExternalName}, "count/services=1 services=1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			used, err := NewServiceEvaluator(listers()).Usage(&v1.Service{Spec: tc.spec})
			if err != nil || text(used) != tc.want || len(used) != 4 {
				t.Errorf("got %s, %v, want %s", text(used), err, tc.want)
			}
		})
	}
}

func claim(changes ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{Resources: v1.VolumeResourceRequirements{Requests: list("storage=10Gi")}}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func TestClaimUsage(t *testing.T) {
	const plain = "count/persistentvolumeclaims=1 "
	tests := []struct {
		name  string
		claim *v1.PersistentVolumeClaim
		want  string
	}{
		{"no class", claim(), plain + "persistentvolumeclaims=1 requests.storage=10Gi"},
		{"class", claim(func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("gold") }),
			plain + "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/requests.storage=10Gi persistentvolumeclaims=1 requests.storage=10Gi"},
		{"class in an annotation", claim(func(c *v1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("else")
			c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "gold"}
		}), plain + "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/requests.storage=10Gi persistentvolumeclaims=1 requests.storage=10Gi"},
		{"more is allocated", claim(func(c *v1.PersistentVolumeClaim) { c.Status.AllocatedResources = list("storage=20Gi") }), plain + "persistentvolumeclaims=1 requests.storage=20Gi"},
		{"less is allocated", claim(func(c *v1.PersistentVolumeClaim) { c.Status.AllocatedResources = list("storage=5Gi") }), plain + "persistentvolumeclaims=1 requests.storage=10Gi"},
		{"no size", claim(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }), plain + "persistentvolumeclaims=1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			used, err := NewPersistentVolumeClaimEvaluator(listers()).Usage(tc.claim)
			if err != nil || text(used) != tc.want {
				t.Errorf("got %s, %v, want %s", text(used), err, tc.want)
			}
		})
	}
}

func TestVolumeAttributesClassScope(t *testing.T) {
	spec := func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("new") }
	current := func(c *v1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = new("old") }
	target := func(c *v1.PersistentVolumeClaim) {
		c.Status.ModifyVolumeStatus = &v1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "target"}
	}
	e := NewPersistentVolumeClaimEvaluator(listers())
	matches := func(c *v1.PersistentVolumeClaim, operator v1.ScopeSelectorOperator, values ...string) bool {
		got, err := e.MatchingScopes(c, []v1.ScopedResourceSelectorRequirement{{ScopeName: v1.ResourceQuotaScopeVolumeAttributesClass, Operator: operator, Values: values}})
		if err != nil {
			t.Fatal(err)
		}
		return len(got) == 1
	}
	moving := claim(spec, current, target)
	for _, class := range []string{"new", "old", "target"} {
		if !matches(moving, v1.ScopeSelectorOpIn, class) {
			t.Errorf("not in the quota of %s", class)
		}
	}
	if matches(moving, v1.ScopeSelectorOpIn, "else") || !matches(moving, v1.ScopeSelectorOpExists) || matches(moving, v1.ScopeSelectorOpDoesNotExist) {
		t.Error("a claim that is modified")
	}
	if matches(claim(), v1.ScopeSelectorOpExists) || !matches(claim(), v1.ScopeSelectorOpDoesNotExist) || matches(claim(), v1.ScopeSelectorOpIn, "new") {
		t.Error("a claim without a class")
	}
}

func TestResourceClaimUsage(t *testing.T) {
	exactly := func(class string, mode resourceapi.DeviceAllocationMode, n int64) resourceapi.DeviceRequest {
		return resourceapi.DeviceRequest{Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: n}}
	}
	alternative := func(class string, n int64) resourceapi.DeviceSubRequest {
		return resourceapi.DeviceSubRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n}
	}
	const plain, exact = "count/resourceclaims.resource.k8s.io=1", resourceapi.DeviceAllocationModeExactCount
	ofPod := func(name, uid string) func(*resourceapi.ResourceClaim) {
		return func(c *resourceapi.ResourceClaim) {
			c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: name, UID: metav1.ObjectMeta{UID: "uid"}.UID, Controller: new(true)}}
			if uid != "uid" {
				c.OwnerReferences[0].UID = "other"
			}
		}
	}
	tests := []struct {
		name     string
		requests []resourceapi.DeviceRequest
		change   func(*resourceapi.ResourceClaim)
		want     string
	}{
		{"nothing", nil, nil, plain},
		{"exactly", []resourceapi.DeviceRequest{exactly("gpu", exact, 2), exactly("gpu", exact, 1), exactly("nic", exact, 1)}, nil,
			plain + " gpu.deviceclass.resource.k8s.io/devices=3 nic.deviceclass.resource.k8s.io/devices=1 requests.deviceclass.resource.kubernetes.io/gpu=3 requests.deviceclass.resource.kubernetes.io/nic=1 requests.example.com/gpu=3"},
		{"all", []resourceapi.DeviceRequest{exactly("nic", resourceapi.DeviceAllocationModeAll, 0)}, nil, plain + " nic.deviceclass.resource.k8s.io/devices=32 requests.deviceclass.resource.kubernetes.io/nic=32"},
		{"unknown mode", []resourceapi.DeviceRequest{exactly("nic", "Some", 5)}, nil, plain},
		{"the largest alternative of each class", []resourceapi.DeviceRequest{{FirstAvailable: []resourceapi.DeviceSubRequest{alternative("nic", 2), alternative("nic", 5), alternative("x", 1)}}}, nil,
			plain + " nic.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/nic=5 requests.deviceclass.resource.kubernetes.io/x=1 x.deviceclass.resource.k8s.io/devices=1"},
		{"for a pod's extended resource", []resourceapi.DeviceRequest{exactly("gpu", exact, 3)}, ofPod("owner", "uid"),
			plain + " gpu.deviceclass.resource.k8s.io/devices=3 requests.deviceclass.resource.kubernetes.io/gpu=3 requests.example.com/gpu=1"},
		{"less than the pod asks for", []resourceapi.DeviceRequest{exactly("gpu", exact, 1)}, ofPod("owner", "uid"), plain + " gpu.deviceclass.resource.k8s.io/devices=1 requests.deviceclass.resource.kubernetes.io/gpu=1"},
		{"for a pod that is gone", []resourceapi.DeviceRequest{exactly("gpu", exact, 3)}, ofPod("gone", "uid"),
			plain + " gpu.deviceclass.resource.k8s.io/devices=3 requests.deviceclass.resource.kubernetes.io/gpu=3 requests.example.com/gpu=3"},
		{"for a pod that was there before", []resourceapi.DeviceRequest{exactly("gpu", exact, 3)}, ofPod("owner", "other"),
			plain + " gpu.deviceclass.resource.k8s.io/devices=3 requests.deviceclass.resource.kubernetes.io/gpu=3 requests.example.com/gpu=3"},
	}
	classes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, extended := range map[string]*string{"gpu": new("example.com/gpu"), "nic": nil} {
		if err := classes.Add(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: extended}}); err != nil {
			t.Fatal(err)
		}
	}
	e := NewResourceClaimEvaluator(listers(pod("owner", requests("example.com/gpu=2"))), resourcelisters.NewDeviceClassLister(classes))
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: tc.requests}}}
			if tc.change != nil {
				tc.change(c)
			}
			used, err := e.Usage(c)
			if err != nil || text(used) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", text(used), err, tc.want)
			}
		})
	}
}

func TestNewEvaluators(t *testing.T) {
	got := map[string]string{}
	for _, e := range NewEvaluators(listers(pod("p")), nil) {
		var names []string
		for _, name := range e.MatchingResources([]v1.ResourceName{"configmaps", "secrets", "resourcequotas", "replicationcontrollers", "count/secrets"}) {
			names = append(names, string(name))
		}
		got[e.GroupResource().String()] = strings.Join(names, " ")
	}
	want := map[string]string{"pods": "", "services": "", "persistentvolumeclaims": "", "resourceclaims.resource.k8s.io": "", "configmaps": "configmaps",
		"secrets": "count/secrets secrets", "resourcequotas": "resourcequotas", "replicationcontrollers": "replicationcontrollers"}
	for resource, names := range want {
		if got[resource] != names {
			t.Errorf("%s counts %q, want %q", resource, got[resource], names)
		}
	}
	if len(got) != len(want) {
		t.Errorf("evaluators %v", got)
	}
}

func TestUsageChanged(t *testing.T) {
	service := func(kind v1.ServiceType, ports int) *v1.Service {
		return &v1.Service{Spec: v1.ServiceSpec{Type: kind, Ports: make([]v1.ServicePort, ports)}}
	}
	core := func(name string) schema.GroupResource { return schema.GroupResource{Resource: name} }
	tests := []struct {
		name     string
		resource schema.GroupResource
		old, cur runtime.Object
		want     bool
	}{
		{"pod: nothing", core("pods"), pod("p"), pod("p", phase(v1.PodRunning)), false},
		{"pod: ended", core("pods"), pod("p"), pod("p", phase(v1.PodSucceeded)), true},
		{"pod: failed", core("pods"), pod("p", phase(v1.PodRunning)), pod("p", phase(v1.PodFailed)), true},
		{"pod: resized", core("pods"), pod("p", requests("cpu=1")), pod("p", requests("cpu=2")), true},
		{"pod: resize done", core("pods"), pod("p", requests("cpu=1"), func(p *v1.Pod) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", AllocatedResources: list("cpu=2"), Resources: &v1.ResourceRequirements{Requests: list("cpu=2")}}}
		}), pod("p", requests("cpu=1")), true},
		{"pod: given a deadline", core("pods"), pod("p"), pod("p", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }), true},
		{"pod: class of service", core("pods"), pod("p", func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSBestEffort }), pod("p", func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSBurstable }), true},
		{"service: type", core("services"), service(v1.ServiceTypeClusterIP, 1), service(v1.ServiceTypeNodePort, 1), true},
		{"service: ports", core("services"), service(v1.ServiceTypeNodePort, 1), service(v1.ServiceTypeNodePort, 2), true},
		{"service: ports that do not count", core("services"), service(v1.ServiceTypeClusterIP, 1), service(v1.ServiceTypeClusterIP, 2), false},
		{"claim: nothing", core("persistentvolumeclaims"), claim(), claim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimBound }), false},
		{"claim: size", core("persistentvolumeclaims"), claim(), claim(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = list("storage=20Gi") }), true},
		{"claim: attributes class", core("persistentvolumeclaims"), claim(), claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") }), true},
		{"resource claim", schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, &resourceapi.ResourceClaim{}, &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}, false},
		{"only counted", core("configmaps"), &v1.ConfigMap{}, &v1.ConfigMap{Data: map[string]string{"a": "b"}}, false},
		{"not what it should be", core("pods"), &metav1.PartialObjectMetadata{}, pod("p", phase(v1.PodFailed)), false},
	}
	changed := UsageChanged()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := changed(tc.resource, tc.old, tc.cur); got != tc.want {
				t.Errorf("changed: %t, want %t", got, tc.want)
			}
		})
	}
}
