// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newDS(changes ...func(*apps.DaemonSet)) *apps.DaemonSet {
	ds := &apps.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ds", UID: "uid-ds", ResourceVersion: "5", Generation: 2},
		Spec: apps.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ds"}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "ds"}},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "example.com/ds:1"}}},
			},
			UpdateStrategy: apps.DaemonSetUpdateStrategy{Type: apps.RollingUpdateDaemonSetStrategyType},
		},
	}
	rolling("1", "0")(ds)
	for _, change := range changes {
		change(ds)
	}
	return ds
}

func rolling(maxUnavailable, maxSurge string) func(*apps.DaemonSet) {
	return func(ds *apps.DaemonSet) {
		ds.Spec.UpdateStrategy = apps.DaemonSetUpdateStrategy{
			Type:          apps.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &apps.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.Parse(maxUnavailable)), MaxSurge: new(intstr.Parse(maxSurge))},
		}
	}
}

func onDelete(ds *apps.DaemonSet) {
	ds.Spec.UpdateStrategy = apps.DaemonSetUpdateStrategy{Type: apps.OnDeleteDaemonSetStrategyType}
}

func minReady(seconds int32) func(*apps.DaemonSet) {
	return func(ds *apps.DaemonSet) { ds.Spec.MinReadySeconds = seconds }
}

// newPod returns a ready Pod of the template with hash "new" on a node.
func newPod(name, node string, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels:          map[string]string{"app": "ds", apps.DefaultDaemonSetUniqueLabelKey: "new"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newDS(), controllerKind)},
		},
		Spec: v1.PodSpec{NodeName: node},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))},
		}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func old(pod *v1.Pod)     { pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] = "old" }
func unready(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }
func going(pod *v1.Pod)   { pod.DeletionTimestamp = new(metav1.NewTime(now)) }
func phase(p v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Phase = p; unready(pod) }
}
func younger(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(now) }
func boundTo(node string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.NodeName = ""
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}},
		}}}
	}
}

var (
	wants     = verdict{wants: true, tolerates: true}
	tolerates = verdict{tolerates: true}
	refuses   = verdict{}
)

// wanting returns n nodes, n1 and so on, that want a Pod.
func wanting(n int) map[string]verdict {
	verdicts := map[string]verdict{}
	for i := range n {
		verdicts[fmt.Sprint("n", i+1)] = wants
	}
	return verdicts
}

func stateOf(ds *apps.DaemonSet, verdicts map[string]verdict, pods ...*v1.Pod) *state {
	return newState(ds, verdicts, pods, "new", nil, func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil }, now)
}

func podNames(pods []*v1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		ds             *apps.DaemonSet
		verdicts       map[string]verdict
		pods           []*v1.Pod
		create, remove []string
	}{
		"no nodes":                             {ds: newDS()},
		"a pod for each node":                  {ds: newDS(), verdicts: wanting(3), create: []string{"n1", "n2", "n3"}},
		"all there":                            {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1")}},
		"a pod that waits to be scheduled":     {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "", boundTo("n1"), unready)}},
		"nothing on a node that is not for it": {ds: newDS(), verdicts: map[string]verdict{"n1": refuses, "n2": tolerates}},
		"a tolerated pod stays":                {ds: newDS(), verdicts: map[string]verdict{"n1": tolerates}, pods: []*v1.Pod{newPod("a", "n1")}},
		"one that may not stay goes":           {ds: newDS(), verdicts: map[string]verdict{"n1": refuses}, pods: []*v1.Pod{newPod("a", "n1"), newPod("b", "n1", going)}, remove: []string{"a"}},
		"the oldest of several stays":          {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", younger), newPod("b", "n1"), newPod("c", "n1", younger)}, remove: []string{"a", "c"}},
		"the scheduled one of several stays":   {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "", boundTo("n1")), newPod("b", "n1", younger)}, remove: []string{"a"}},
		"a pod that is going is waited for":    {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", going)}},
		"unless it has ended":                  {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", phase(v1.PodFailed), going)}, create: []string{"n1"}},
		"failed: replaced when it is gone":     {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", phase(v1.PodFailed))}, remove: []string{"a"}},
		"succeeded: replaced":                  {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", phase(v1.PodSucceeded))}, remove: []string{"a"}},
		"one failed among several": {ds: newDS(), verdicts: wanting(1),
			pods: []*v1.Pod{newPod("a", "n1", phase(v1.PodFailed)), newPod("b", "n1"), newPod("c", "n1", younger), newPod("d", "n1", younger)}, remove: []string{"a", "c", "d"}},
		"bound to a node that is gone":     {ds: newDS(), verdicts: wanting(0), pods: []*v1.Pod{newPod("a", "", boundTo("n9"))}, remove: []string{"a"}},
		"on a node that is gone: not ours": {ds: newDS(), verdicts: wanting(0), pods: []*v1.Pod{newPod("a", "n9")}},
		"not bound at all":                 {ds: newDS(), verdicts: wanting(0), pods: []*v1.Pod{newPod("a", "")}},

		"roll-out takes one":                   {ds: newDS(), verdicts: wanting(3), pods: []*v1.Pod{newPod("a", "n1", old), newPod("b", "n2", old), newPod("c", "n3")}, remove: []string{"a"}},
		"roll-out takes a percentage":          {ds: newDS(rolling("50%", "0")), verdicts: wanting(3), pods: []*v1.Pod{newPod("a", "n1", old), newPod("b", "n2", old), newPod("c", "n3", old)}, remove: []string{"a", "b"}},
		"zero of both is one":                  {ds: newDS(rolling("0", "0")), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", old), newPod("b", "n2", old)}, remove: []string{"a"}},
		"on delete takes none":                 {ds: newDS(onDelete), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", old)}},
		"BC012: an unavailable one goes first": {ds: newDS(), verdicts: wanting(4), pods: []*v1.Pod{newPod("a", "n1", old), newPod("b", "n2", old, unready), newPod("c", "n3", old), newPod("d", "n4", old)}, remove: []string{"b"}},
		"all unavailable go at once":           {ds: newDS(), verdicts: wanting(3), pods: []*v1.Pod{newPod("a", "n1", old, unready), newPod("b", "n2", old, unready), newPod("c", "n3", old, unready)}, remove: []string{"a", "b", "c"}},
		"an unready new one blocks":            {ds: newDS(), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", unready), newPod("b", "n2", old)}},
		"one not available yet blocks":         {ds: newDS(minReady(90)), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1"), newPod("b", "n2", old, func(p *v1.Pod) { p.Status.Conditions[0].LastTransitionTime.Time = now.Add(-time.Hour) })}},
		"BC013: a stuck one takes its part": {ds: newDS(rolling("2", "0")), verdicts: wanting(3),
			pods: []*v1.Pod{newPod("a", "n1", old, going), newPod("b", "n2", old), newPod("c", "n3", old)}, remove: []string{"b"}},
		"roll-out leaves a pod on a node that is gone": {ds: newDS(), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1"), newPod("b", "n9", old)}},
		"creating comes before rolling out":            {ds: newDS(), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", old)}, create: []string{"n2"}},

		"surge creates beside an available one":   {ds: newDS(rolling("0", "1")), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", old), newPod("b", "n2", old)}, create: []string{"n1"}},
		"surge waits for the new one":             {ds: newDS(rolling("0", "1")), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", old), newPod("a2", "n1", unready, younger), newPod("b", "n2", old)}},
		"surge: the old one goes when it can":     {ds: newDS(rolling("0", "1")), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", old), newPod("a2", "n1", younger)}, remove: []string{"a"}},
		"surge: not before minReadySeconds":       {ds: newDS(rolling("0", "1"), minReady(90)), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", old), newPod("a2", "n1", younger)}},
		"surge: an unready old one goes":          {ds: newDS(rolling("0", "1")), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1", old, unready), newPod("a2", "n1", unready, younger)}, remove: []string{"a"}},
		"surge: replaces unavailable ones freely": {ds: newDS(rolling("0", "1")), verdicts: wanting(2), pods: []*v1.Pod{newPod("a", "n1", old, unready), newPod("b", "n2", old, unready)}, create: []string{"n1", "n2"}},
		"surge: another when the old one was deleted": {ds: newDS(rolling("0", "1")), verdicts: wanting(2),
			pods: []*v1.Pod{newPod("a", "n1", old, going), newPod("b", "n2", old), newPod("b2", "n2", unready, younger)}, create: []string{"n1"}},
		"surge: extra pods of one age go": {ds: newDS(rolling("0", "1")), verdicts: wanting(1), pods: []*v1.Pod{newPod("a", "n1"), newPod("b", "n1", younger), newPod("c", "n1", old), newPod("d", "n1", old, younger)}, remove: []string{"b", "c", "d"}},
		"surge: one too many is let go": {ds: newDS(rolling("0", "1")), verdicts: map[string]verdict{"n1": wants, "n2": tolerates},
			pods: []*v1.Pod{newPod("a", "n1"), newPod("b", "n2", old)}, remove: []string{"b"}},
		"surge: none too many to let go": {ds: newDS(rolling("0", "1")), verdicts: map[string]verdict{"n1": wants, "n2": tolerates},
			pods: []*v1.Pod{newPod("a", "n1", unready), newPod("b", "n2", old)}},
		"surge: an unavailable one where none is wanted": {ds: newDS(rolling("0", "1")), verdicts: map[string]verdict{"n1": tolerates}, pods: []*v1.Pod{newPod("a", "n1", old, unready)}, remove: []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := makePlan(stateOf(tc.ds, tc.verdicts, tc.pods...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.create, p.create); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remove, podNames(p.remove)); diff != "" {
				t.Errorf("remove (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedPodsAreKeptForTheirBackoff(t *testing.T) {
	s := stateOf(newDS(), wanting(2), newPod("a", "n1", phase(v1.PodFailed)), newPod("b", "n2", phase(v1.PodFailed)))
	s.nodes[0].backoff, s.nodes[1].backoff = 3*time.Second, 2*time.Second
	p, err := makePlan(s)
	if err != nil || len(p.failed) != 0 || p.lookAgain != 2*time.Second {
		t.Errorf("plan %+v, %v", p, err)
	}
}

// A failed Pod that is kept for its back-off takes part in a surge: where it is, there are two Pods.
func TestSurgeWithFailedPods(t *testing.T) {
	plan := func(failed *v1.Pod, others ...*v1.Pod) plan {
		t.Helper()
		s := stateOf(newDS(rolling("0", "1")), wanting(2), append(others, failed)...)
		s.nodes[0].backoff = time.Second
		p, err := makePlan(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := plan(newPod("a", "n1", phase(v1.PodFailed)), newPod("a2", "n1", younger), newPod("b", "n2", old)); len(p.create)+len(p.remove) > 0 {
		t.Errorf("beside a failed new one: %+v", p)
	}
	if p := plan(newPod("a", "n1", phase(v1.PodFailed), old), newPod("a2", "n1", younger), newPod("b", "n2")); len(p.create) > 0 || !slices.Equal(podNames(p.remove), []string{"a"}) {
		t.Errorf("a failed old one that is replaced: %+v", p)
	}
}

func TestBurst(t *testing.T) {
	p, err := makePlan(stateOf(newDS(), wanting(BurstReplicas+50)))
	if err != nil || len(p.create) != BurstReplicas {
		t.Errorf("%d creations, %v", len(p.create), err)
	}
	var pods []*v1.Pod
	verdicts := map[string]verdict{}
	for i := range BurstReplicas + 50 {
		node := fmt.Sprint("n", i)
		verdicts[node] = refuses
		pods = append(pods, newPod(fmt.Sprint("p", i), node))
	}
	if p, err = makePlan(stateOf(newDS(), verdicts, pods...)); err != nil || len(p.remove) != BurstReplicas {
		t.Errorf("%d deletions, %v", len(p.remove), err)
	}
}

func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		ds      *apps.DaemonSet
		desired int
		want    limits
	}{
		"numbers":                    {newDS(rolling("2", "3")), 10, limits{2, 3}},
		"percentages are rounded up": {newDS(rolling("25%", "11%")), 10, limits{3, 2}},
		"100%":                       {newDS(rolling("0", "100%")), 7, limits{0, 7}},
		"never neither":              {newDS(rolling("0", "0")), 10, limits{1, 0}},
		"nothing desired":            {newDS(rolling("0", "0")), 0, limits{0, 0}},
		"on delete":                  {newDS(onDelete), 10, limits{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rolloutLimits(tc.ds, tc.desired)
			if err != nil || got != tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	for _, ds := range []*apps.DaemonSet{newDS(rolling("many", "0")), newDS(rolling("0", "many"))} {
		if _, err := makePlan(stateOf(ds, wanting(1))); err == nil {
			t.Errorf("no error for %+v", ds.Spec.UpdateStrategy)
		}
	}
}

func TestStatus(t *testing.T) {
	verdicts := map[string]verdict{"n1": wants, "n2": wants, "n3": wants, "n4": wants, "n5": refuses, "n6": tolerates}
	s := stateOf(newDS(minReady(90)), verdicts,
		newPod("a", "n1", func(p *v1.Pod) { p.Status.Conditions[0].LastTransitionTime.Time = now.Add(-2 * time.Minute) }),
		newPod("b", "n2", old),
		newPod("c", "n3", unready), newPod("c2", "n3", younger, old),
		newPod("e", "n5"), newPod("f", "n6"), newPod("g", "n9"))
	got := newStatus(s, new(int32(4)))
	want := apps.DaemonSetStatus{
		DesiredNumberScheduled: 4, CurrentNumberScheduled: 3, NumberMisscheduled: 2, NumberReady: 2, NumberAvailable: 1,
		UpdatedNumberScheduled: 2, NumberUnavailable: 3, ObservedGeneration: 2, CollisionCount: new(int32(4)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if statusDiffers(got, got) {
		t.Error("a status differs from itself")
	}
	older := got
	older.ObservedGeneration--
	if !statusDiffers(older, got) || statusDiffers(got, older) {
		t.Error("a status is to be written for a newer generation, not for an older")
	}
}

func TestVerdicts(t *testing.T) {
	node := func(changes ...func(*v1.Node)) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"type": "prod"}}}
		for _, change := range changes {
			change(n)
		}
		return n
	}
	taint := func(key string, effect v1.TaintEffect) func(*v1.Node) {
		return func(n *v1.Node) { n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: effect}) }
	}
	template := func(change func(*v1.PodSpec)) *apps.DaemonSet {
		return newDS(func(ds *apps.DaemonSet) { change(&ds.Spec.Template.Spec) })
	}
	affinity := func(op v1.NodeSelectorOperator, values ...string) *apps.DaemonSet {
		return template(func(s *v1.PodSpec) {
			s.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "type", Operator: op, Values: values}}}},
			}}}
		})
	}
	for name, tc := range map[string]struct {
		ds   *apps.DaemonSet
		node *v1.Node
		want verdict
	}{
		"plain":                       {newDS(), node(), wants},
		"by name":                     {template(func(s *v1.PodSpec) { s.NodeName = "n1" }), node(), wants},
		"by another name":             {template(func(s *v1.PodSpec) { s.NodeName = "n2" }), node(), refuses},
		"by selector":                 {template(func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"type": "prod"} }), node(), wants},
		"by another selector":         {template(func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"type": "test"} }), node(), refuses},
		"name and another selector":   {template(func(s *v1.PodSpec) { s.NodeName = "n1"; s.NodeSelector = map[string]string{"type": "test"} }), node(), refuses},
		"by affinity":                 {affinity(v1.NodeSelectorOpIn, "prod"), node(), wants},
		"by another affinity":         {affinity(v1.NodeSelectorOpNotIn, "prod"), node(), refuses},
		"malformed affinity":          {affinity("Like", "prod"), node(), refuses},
		"NoSchedule":                  {newDS(), node(taint("x", v1.TaintEffectNoSchedule)), tolerates},
		"NoExecute":                   {newDS(), node(taint("x", v1.TaintEffectNoExecute)), refuses},
		"both":                        {newDS(), node(taint("x", v1.TaintEffectNoSchedule), taint("y", v1.TaintEffectNoExecute)), refuses},
		"PreferNoSchedule":            {newDS(), node(taint("x", v1.TaintEffectPreferNoSchedule)), wants},
		"tolerated":                   {template(func(s *v1.PodSpec) { s.Tolerations = []v1.Toleration{{Key: "x", Operator: v1.TolerationOpExists}} }), node(taint("x", v1.TaintEffectNoExecute)), wants},
		"not ready":                   {newDS(), node(taint(v1.TaintNodeNotReady, v1.TaintEffectNoExecute)), wants},
		"unreachable":                 {newDS(), node(taint(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute)), wants},
		"under pressure":              {newDS(), node(taint(v1.TaintNodeDiskPressure, v1.TaintEffectNoSchedule), taint(v1.TaintNodeMemoryPressure, v1.TaintEffectNoSchedule), taint(v1.TaintNodePIDPressure, v1.TaintEffectNoSchedule)), wants},
		"cordoned":                    {newDS(), node(func(n *v1.Node) { n.Spec.Unschedulable = true }, taint(v1.TaintNodeUnschedulable, v1.TaintEffectNoSchedule)), wants},
		"no network":                  {newDS(), node(taint(v1.TaintNodeNetworkUnavailable, v1.TaintEffectNoSchedule)), tolerates},
		"no network, the host's used": {template(func(s *v1.PodSpec) { s.HostNetwork = true }), node(taint(v1.TaintNodeNetworkUnavailable, v1.TaintEffectNoSchedule)), wants},
		"no capacity":                 {newDS(), node(func(n *v1.Node) { n.Status.Allocatable = v1.ResourceList{} }), wants},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newPredicate(tc.ds, false).judge(klog.Background(), tc.node); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Whatever the nodes and the Pods on them: a plan leaves no node that wants a Pod worse off than it may.
func TestPlansKeepTheirPromises(t *testing.T) {
	changes := map[string]func(*v1.Pod){
		"old": old, "unready": unready, "going": going, "younger": younger, "failed": phase(v1.PodFailed), "plain": func(*v1.Pod) {},
	}
	kinds := slices.Sorted(maps.Keys(changes))
	rapid.Check(t, func(t *rapid.T) {
		surge := rapid.Bool().Draw(t, "surge")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		ds := newDS(rolling(fmt.Sprint(limit), "0"))
		if surge {
			ds = newDS(rolling("0", fmt.Sprint(limit)))
		}
		verdicts := map[string]verdict{}
		var pods []*v1.Pod
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			node := fmt.Sprint("n", i)
			verdicts[node] = rapid.SampledFrom([]verdict{wants, wants, wants, tolerates, refuses}).Draw(t, "verdict")
			for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
				pod := newPod(fmt.Sprint(node, "-", j), node)
				for _, kind := range rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 2).Draw(t, "changes") {
					changes[kind](pod)
				}
				pods = append(pods, pod)
			}
		}
		s := stateOf(ds, verdicts, pods...)
		p, err := makePlan(s)
		if err != nil {
			t.Fatal(err)
		}
		removed := map[types.UID]bool{}
		for _, pod := range p.remove {
			if removed[pod.UID] || pod.DeletionTimestamp != nil {
				t.Fatalf("pod %s is deleted twice", pod.Name)
			}
			removed[pod.UID] = true
		}
		unavailable, taken := 0, 0
		for _, node := range s.nodes {
			had, has, live := false, false, 0
			for _, pod := range node.pods {
				if pod.going || pod.Status.Phase == v1.PodFailed {
					continue
				}
				live++
				had = had || pod.available
				has = has || (pod.available && !removed[pod.UID])
			}
			if created := slices.Contains(p.create, node.name); created {
				if !node.wants || (live > 0 && !surge) || live > 1 {
					t.Fatalf("a pod is created on %s, which has %d", node.name, live)
				}
			}
			if node.wants && !had {
				unavailable++
			}
			// Of several Pods that should be one the oldest stays, whether it is available or not.
			_, paired := pairOf(node)
			if tidy := paired && (surge || live < 2); tidy && node.wants && had && !has {
				taken++
			}
		}
		if surge && taken > 0 {
			t.Fatalf("%d nodes lose their available pod in a surge", taken)
		}
		if taken > 0 && taken+unavailable > limit {
			t.Fatalf("%d nodes lose their available pod while %d have none, %d may have none", taken, unavailable, limit)
		}
	})
}
