// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

func service(namespace, name string, selector map[string]string) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.ServiceSpec{Selector: selector}}
}

func pod(namespace, name string, podLabels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: podLabels}}
}

// selects is what a selector means, said the long way.
func selects(s *v1.Service, podLabels map[string]string) bool {
	return s.Spec.Selector != nil && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(podLabels))
}

func names(found []cache.ObjectName) []string {
	all := make([]string, 0, len(found))
	for _, name := range found {
		all = append(all, name.String())
	}
	slices.Sort(all)
	return all
}

func drawLabels() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "a-b", "b", "c.d/e"}), rapid.SampledFrom([]string{"", "1", "1-2", "2"}), 0, 4)
}

// Whatever is set and deleted, a change affects the Services that a walk over all would find.
func TestAffectedIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, all := NewServices(), map[string]*v1.Service{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			s := service(rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace"), fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "name")), nil)
			key := cache.MetaObjectToName(s).String()
			if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
				index.Delete(s)
				delete(all, key)
				continue
			}
			if rapid.IntRange(0, 5).Draw(t, "without") != 0 {
				s.Spec.Selector = drawLabels().Draw(t, "selector")
			}
			index.Set(s)
			all[key] = s
		}
		old, cur := pod("ns", "p", drawLabels().Draw(t, "old")), pod("ns", "p", drawLabels().Draw(t, "new"))
		if rapid.Bool().Draw(t, "moved") {
			cur.Status.PodIP = "10.0.0.1"
		}
		var added, updated []string
		for key, s := range all {
			before, after := selects(s, old.Labels), selects(s, cur.Labels)
			if s.Namespace != "ns" {
				continue
			}
			if after {
				added = append(added, key)
			}
			if before != after || after && cur.Status.PodIP != "" {
				updated = append(updated, key)
			}
		}
		slices.Sort(added)
		slices.Sort(updated)
		if got := names(index.Affected(FromPod(cur))); !slices.Equal(got, added) {
			t.Fatalf("a pod with labels %v affects %v, want %v", cur.Labels, got, added)
		}
		var got []string
		if change, ok := FromUpdate(old, cur); ok {
			got = names(index.Affected(change))
		}
		if !slices.Equal(got, updated) {
			t.Fatalf("an update %v %v affects %v, want %v", old.Labels, cur.Labels, got, updated)
		}
		for _, s := range all {
			index.Delete(s)
		}
		if len(index.namespaces) != 0 {
			t.Fatalf("%d namespaces are left of an empty index", len(index.namespaces))
		}
	})
}

// A pair that all Services share must not bring all of them into every look-up.
func TestServicesAreFiledUnderTheirRarestPair(t *testing.T) {
	index := NewServices()
	for i := range 1000 {
		index.Set(service("ns", fmt.Sprint(i), map[string]string{"app": fmt.Sprint("app-", i), "env": "prod", "zone": "a"}))
	}
	ns, looked := index.namespaces["ns"], 0
	for _, pair := range pairsOf(map[string]string{"app": "app-7", "env": "prod", "zone": "a"}) {
		looked += len(ns.byPair[pair])
	}
	if looked > 5 {
		t.Errorf("%d of 1000 services are compared for one pod, want a few", looked)
	}
	if got := names(index.Affected(FromPod(pod("ns", "p", map[string]string{"app": "app-7", "env": "prod", "zone": "a", "x": "y"})))); !slices.Equal(got, []string{"ns/7"}) {
		t.Errorf("affected %v, want ns/7", got)
	}
}

func TestChangesOfEqualPodsAreOneKey(t *testing.T) {
	a := FromPod(pod("ns", "a", map[string]string{"app": "web", "tier": "x"}))
	if b := FromPod(pod("ns", "b", map[string]string{"tier": "x", "app": "web"})); a != b {
		t.Errorf("%v and %v differ", a, b)
	}
	if b := FromPod(pod("other", "a", map[string]string{"app": "web", "tier": "x"})); a == b {
		t.Errorf("%v is the same in another namespace", a)
	}
}

func TestFromUpdate(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	condition := func(status v1.ConditionStatus) []v1.PodCondition {
		return []v1.PodCondition{{Type: v1.PodReady, Status: status}}
	}
	base := func() *v1.Pod {
		p := pod("ns", "p", map[string]string{"app": "web"})
		p.Status = v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}}, Conditions: condition(v1.ConditionTrue)}
		return p
	}
	tests := []struct {
		name   string
		change func(p *v1.Pod)
		want   bool
	}{
		{"nothing", func(*v1.Pod) {}, false},
		{"annotation", func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		{"message of a condition", func(p *v1.Pod) { p.Status.Conditions[0].Message = "x" }, false},
		{"restart count", func(p *v1.Pod) { p.Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 3}} }, false},
		{"not ready any more", func(p *v1.Pod) { p.Status.Conditions = condition(v1.ConditionFalse) }, true},
		{"no Ready condition", func(p *v1.Pod) { p.Status.Conditions = nil }, true},
		{"finished", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, true},
		{"unknown phase", func(p *v1.Pod) { p.Status.Phase = v1.PodUnknown }, false},
		{"in deletion", func(p *v1.Pod) { p.DeletionTimestamp = &now }, true},
		{"another IP", func(p *v1.Pod) { p.Status.PodIPs = []v1.PodIP{{IP: "10.0.0.2"}} }, true},
		{"an IP more", func(p *v1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, v1.PodIP{IP: "fd00::1"}) }, true},
		{"podIP alone", func(p *v1.Pod) { p.Status.PodIP = "" }, true},
		{"node", func(p *v1.Pod) { p.Spec.NodeName = "node" }, true},
		{"hostname", func(p *v1.Pod) { p.Spec.Hostname = "web-0" }, true},
		{"subdomain", func(p *v1.Pod) { p.Spec.Subdomain = "web" }, true},
		{"made anew", func(p *v1.Pod) { p.UID = "2" }, true},
		{"labels", func(p *v1.Pod) { p.Labels = map[string]string{"app": "db"} }, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cur := base()
			tc.change(cur)
			change, got := FromUpdate(base(), cur)
			if got != tc.want {
				t.Errorf("a change is seen: %t, want %t", got, tc.want)
			}
			if labelsOnly := !maps.Equal(cur.Labels, base().Labels); got && change.labelsOnly != labelsOnly {
				t.Errorf("labels only: %t, want %t", change.labelsOnly, labelsOnly)
			}
		})
	}
	stillTerminating := func(at time.Time) *v1.Pod {
		p := base()
		p.DeletionTimestamp = &metav1.Time{Time: at}
		return p
	}
	if _, changed := FromUpdate(stillTerminating(now.Time), stillTerminating(now.Add(time.Second))); changed {
		t.Error("a pod whose deletion was asked for before is a change")
	}
}

func newPods(t interface {
	Helper()
	Fatal(...any)
}) (*Pods, cache.Indexer) {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	pods, err := NewPods(informer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPods(informer); err != nil {
		t.Fatal("a second controller cannot share the index:", err)
	}
	return pods, informer.GetIndexer()
}

// Whatever comes and goes, a Service selects the Pods that a walk over all would find.
func TestSelectedIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, indexer := newPods(t)
		all := map[string]*v1.Pod{}
		s := service("ns", "svc", nil)
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for range rapid.IntRange(0, 60).Draw(t, "steps") {
				p := pod(rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace"), fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "name")), drawLabels().Draw(t, "labels"))
				key := cache.MetaObjectToName(p).String()
				if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					_ = indexer.Delete(p)
					delete(all, key)
					continue
				}
				_ = indexer.Add(p)
				all[key] = p
			}
			if rapid.Bool().Draw(t, "edit") {
				s.Spec.Selector = drawLabels().Draw(t, "selector")
			}
			var want, got []string
			for key, p := range all {
				if p.Namespace == "ns" && selects(s, p.Labels) {
					want = append(want, key)
				}
			}
			found, err := pods.Selected(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range found {
				got = append(got, cache.MetaObjectToName(p).String())
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%v selects %v, want %v", s.Spec.Selector, got, want)
			}
		}
		pods.Forget(cache.MetaObjectToName(s))
		if len(pods.chosen) != 0 {
			t.Fatalf("%v is remembered of services that are gone", pods.chosen)
		}
	})
}

// The pair under which a Service's Pods are looked up follows what the Pods carry.
func TestPodsAreLookedUpUnderARarePair(t *testing.T) {
	pods, indexer := newPods(t)
	s := service("ns", "svc", map[string]string{"app": "web", "env": "prod"})
	look := func(want string) {
		t.Helper()
		for range 2 { // the first finds the pair crowded, the second chooses anew
			if _, err := pods.Selected(s); err != nil {
				t.Fatal(err)
			}
		}
		if got := pods.chosen[cache.MetaObjectToName(s)].pair; got != want {
			t.Errorf("looked up under %q, want %q", got, want)
		}
	}
	for i := range 100 {
		_ = indexer.Add(pod("ns", fmt.Sprint("prod-", i), map[string]string{"env": "prod"}))
	}
	look("app=web")
	for i := range 500 {
		_ = indexer.Add(pod("ns", fmt.Sprint("web-", i), map[string]string{"app": "web"}))
	}
	look("env=prod")
}

// 1,000 Services in one namespace: what one event of a Pod costs.
func BenchmarkAffected(b *testing.B) {
	index := NewServices()
	for i := range 1000 {
		index.Set(service("ns", fmt.Sprint(i), map[string]string{"app": fmt.Sprint("app-", i), "env": "prod"}))
	}
	old := pod("ns", "p", map[string]string{"app": "app-7", "env": "prod", "pod-template-hash": "abcdef"})
	cur := old.DeepCopy()
	cur.Status.PodIP = "10.0.0.1"
	for b.Loop() {
		change, _ := FromUpdate(old, cur)
		if got := index.Affected(change); len(got) != 1 {
			b.Fatal(got)
		}
	}
}

// 1,000 Services and 10,000 Pods in one namespace: what it costs to find the Pods of one.
func BenchmarkSelected(b *testing.B) {
	pods, indexer := newPods(b)
	for i := range 10000 {
		_ = indexer.Add(pod("ns", fmt.Sprint(i), map[string]string{"app": fmt.Sprint("app-", i%1000), "env": "prod"}))
	}
	s := service("ns", "svc", map[string]string{"app": "app-7", "env": "prod"})
	for b.Loop() {
		if got, err := pods.Selected(s); err != nil || len(got) != 10 {
			b.Fatal(len(got), err)
		}
	}
}
