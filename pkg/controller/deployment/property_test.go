// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// world simulates what is around the plans: an API server, the ReplicaSet controller, and kubelets
// that make pods available. Each of them acts when it is told to, so that ReplicaSets' statuses lag
// behind as they do in life.
type world struct {
	t    *rapid.T
	d    *apps.Deployment
	sets map[string]*apps.ReplicaSet
	pods map[string]*podCount
	now  time.Time
	made int
}

// podCount is what runs of one ReplicaSet.
type podCount struct{ all, available int32 }

func newWorld(t *rapid.T) *world {
	d := deploymentOf(rapid.Int32Range(0, 12).Draw(t, "replicas"), 0, 0, historyLimit(rapid.Int32Range(0, 3).Draw(t, "history")))
	d.Spec.Template = templateOf("image-0")
	if rapid.Float64Range(0, 1).Draw(t, "strategy") < 0.2 {
		recreating(d)
	} else {
		d.Spec.Strategy.RollingUpdate = &apps.RollingUpdateDeployment{
			MaxSurge: new(bound(t, "surge")), MaxUnavailable: new(bound(t, "unavailable")),
		}
	}
	return &world{t: t, d: d, sets: map[string]*apps.ReplicaSet{}, pods: map[string]*podCount{}, now: epoch}
}

func bound(t *rapid.T, what string) intstr.IntOrString {
	if rapid.Bool().Draw(t, what+" in percent") {
		return intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, what)))
	}
	return intstr.FromInt32(rapid.Int32Range(0, 4).Draw(t, what))
}

func (w *world) names() []string {
	var names []string
	for name := range w.sets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) snapshot() snapshot {
	var sets []*apps.ReplicaSet
	pods := map[types.UID][]*v1.Pod{}
	for _, name := range w.names() {
		rs := w.sets[name]
		sets = append(sets, rs)
		for range w.pods[name].all {
			pods[rs.UID] = append(pods[rs.UID], &v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning}})
		}
	}
	return snapshot{deployment: w.d, family: familyOf(w.d, sets), pods: pods, now: w.now, terminatingReplicas: true}
}

// wanted returns how many pods the ReplicaSets want.
func (w *world) wanted() int32 { return util.GetReplicaCountForReplicaSets(w.snapshot().family.all()) }

// kept returns how many pods, of those that are known to be available, stay so when every ReplicaSet
// controller has seen its size. (A pod that became available a moment ago may be taken for one that
// is not: nobody has been told yet.)
func (w *world) kept() (available int32) {
	for name, rs := range w.sets {
		if rs.Status.AvailableReplicas > w.pods[name].available {
			w.t.Fatalf("%s: the status knows more available pods than there are", name)
		}
		available += min(rs.Status.AvailableReplicas, sizeOf(rs))
	}
	return available
}

// round runs one round of the Deployment and returns whether it wrote anything.
func (w *world) round() bool {
	s := w.snapshot()
	p, err := makePlan(s)
	if err != nil {
		w.t.Fatal(err)
	}
	wanted := w.wanted()
	before := w.kept()
	done := outcome{family: s.family.clone()}
	if p.create != nil {
		rs := p.create.DeepCopy()
		w.made++
		rs.UID, rs.Generation = types.UID(rs.Name+"-uid"), 1
		rs.CreationTimestamp = metav1.NewTime(w.now)
		if w.sets[rs.Name] != nil {
			w.t.Fatalf("%s exists", rs.Name)
		}
		w.sets[rs.Name], w.pods[rs.Name] = rs, &podCount{}
		done.family.newRS, done.created = rs, true
	}
	for _, u := range p.updates {
		rs := u.is.DeepCopy()
		if sizeOf(u.was) != sizeOf(rs) {
			rs.Generation++
		}
		w.sets[rs.Name] = rs
		done.family.replace(u.was, rs)
	}
	for _, rs := range p.deletes {
		if w.pods[rs.Name].all != 0 {
			w.t.Fatalf("%s is deleted with its pods", rs.Name)
		}
		delete(w.sets, rs.Name)
		delete(w.pods, rs.Name)
		done.family.remove(rs)
	}
	w.check(p, wanted, before)
	r := makeReport(s, p.report, done)
	if r.deployment != nil {
		w.d = r.deployment
	}
	return p.create != nil || len(p.updates) > 0 || len(p.deletes) > 0 || r.deployment != nil
}

// check holds the invariants of the package against one round.
func (w *world) check(p plan, wantedBefore, keptBefore int32) {
	wanted := w.wanted()
	want := util.DesiredReplicas(w.d)
	if limit := max(wantedBefore, want+util.MaxSurge(*w.d)); wanted > limit {
		w.t.Fatalf("%d pods are wanted, %d are allowed", wanted, limit)
	}
	if p.report == reportRollout && util.IsRollingUpdate(w.d) {
		if least := min(keptBefore, util.MinAvailable(w.d)); w.kept() < least {
			w.t.Fatalf("only %d pods stay available of %d, %d must", w.kept(), keptBefore, util.MinAvailable(w.d))
		}
	}
	if !util.IsRollingUpdate(w.d) {
		generations := 0
		for name, rs := range w.sets {
			if w.pods[name].all > 0 || (sizeOf(rs) > 0 && p.report == reportRollout) {
				generations++
			}
		}
		if p.create != nil && generations > 1 {
			w.t.Fatal("new pods come while old ones run")
		}
	}
}

// replicaSetController lets one ReplicaSet have the pods that it wants, taking those that are not
// available first, and writes its status.
func (w *world) replicaSetController(name string) {
	rs, pods := w.sets[name].DeepCopy(), w.pods[name]
	pods.all = sizeOf(rs)
	pods.available = min(pods.available, pods.all)
	rs.Status = apps.ReplicaSetStatus{Replicas: pods.all, ReadyReplicas: pods.available, AvailableReplicas: pods.available,
		TerminatingReplicas: new(int32(0)), ObservedGeneration: rs.Generation}
	w.sets[name] = rs
}

func (w *world) kubelet(name string) {
	if pods := w.pods[name]; pods.available < pods.all {
		pods.available++
	}
}

func (w *world) user(change func(*apps.Deployment)) {
	d := w.d.DeepCopy()
	change(d)
	d.Generation++
	w.d = d
}

// TestRolloutProperties: whatever a user does to a Deployment and in whatever order the parts of a
// cluster act, no round breaks the invariants, and in the end the Deployment is as it was written.
func TestRolloutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		images := 0
		actions := map[string]func(*rapid.T){
			"round":             func(*rapid.T) { w.round() },
			"round again":       func(*rapid.T) { w.round() },
			"replica set":       func(t *rapid.T) { w.some(t, w.replicaSetController) },
			"replica set again": func(t *rapid.T) { w.some(t, w.replicaSetController) },
			"kubelet":           func(t *rapid.T) { w.some(t, w.kubelet) },
			"kubelet again":     func(t *rapid.T) { w.some(t, w.kubelet) },
			"time passes":       func(*rapid.T) { w.now = w.now.Add(time.Minute) },
			"the user changes the template": func(t *rapid.T) {
				images++
				image := rapid.IntRange(0, images).Draw(t, "image") // an old one now and then
				w.user(func(d *apps.Deployment) { d.Spec.Template = templateOf(fmt.Sprint("image-", image)) })
			},
			"the user scales": func(t *rapid.T) {
				n := rapid.Int32Range(0, 12).Draw(t, "replicas")
				w.user(func(d *apps.Deployment) { d.Spec.Replicas = &n })
			},
			"the user pauses or resumes": func(*rapid.T) { w.user(func(d *apps.Deployment) { d.Spec.Paused = !d.Spec.Paused }) },
			"somebody spoils an annotation": func(t *rapid.T) {
				w.some(t, func(name string) {
					rs := w.sets[name].DeepCopy()
					rs.Annotations[util.DesiredReplicasAnnotation] = fmt.Sprint(rapid.IntRange(-1, 12).Draw(t, "desired"))
					w.sets[name] = rs
				})
			},
		}
		t.Repeat(actions)
		w.converge()
	})
}

func (w *world) some(t *rapid.T, act func(name string)) {
	if names := w.names(); len(names) > 0 {
		act(rapid.SampledFrom(names).Draw(t, "replica set"))
	}
}

// converge lets everybody act until nothing changes, and looks at what has become.
func (w *world) converge() {
	if w.d.Spec.Paused {
		w.user(func(d *apps.Deployment) { d.Spec.Paused = false })
	}
	const enough = 200
	for rounds := 0; ; rounds++ {
		if rounds > enough {
			w.t.Fatalf("no end after %d rounds", rounds)
		}
		wrote := w.round()
		for _, name := range w.names() {
			w.replicaSetController(name)
			for range w.pods[name].all {
				w.kubelet(name)
			}
			before := w.sets[name].Status
			w.replicaSetController(name)
			wrote = wrote || before.AvailableReplicas != w.sets[name].Status.AvailableReplicas
		}
		if !wrote && !w.round() {
			break
		}
	}
	want := util.DesiredReplicas(w.d)
	f := w.snapshot().family
	if f.newRS == nil || sizeOf(f.newRS) != want {
		w.t.Fatalf("the new replica set is %+v", f.newRS)
	}
	for _, rs := range f.old {
		if sizeOf(rs) != 0 {
			w.t.Fatalf("%s still wants %d pods", rs.Name, sizeOf(rs))
		}
	}
	if limit := int(*w.d.Spec.RevisionHistoryLimit); len(f.old) > limit {
		w.t.Fatalf("%d old replica sets are kept, the limit is %d", len(f.old), limit)
	}
	if !util.DeploymentComplete(w.d, &w.d.Status) {
		w.t.Fatalf("not complete: %+v", w.d.Status)
	}
	cond := util.GetDeploymentCondition(w.d.Status, apps.DeploymentProgressing)
	if cond == nil || cond.Status != v1.ConditionTrue || cond.Reason != util.NewRSAvailableReason {
		w.t.Fatalf("progressing: %+v", cond)
	}
	if got, want := w.d.Annotations[util.RevisionAnnotation], f.newRS.Annotations[util.RevisionAnnotation]; got != want {
		w.t.Fatalf("revision %s, of the replica set %s", got, want)
	}
}
