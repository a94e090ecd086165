// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// family is a Deployment's ReplicaSets.
type family struct {
	// newRS has the Deployment's template; nil when no ReplicaSet has it.
	newRS *apps.ReplicaSet
	// old are all the others, in no particular order.
	old []*apps.ReplicaSet
}

// familyOf sorts the ReplicaSets that belong to the Deployment into new and old.
func familyOf(d *apps.Deployment, sets []*apps.ReplicaSet) family {
	f := family{newRS: util.FindNewReplicaSet(d, sets)}
	for _, rs := range sets {
		if rs != f.newRS {
			f.old = append(f.old, rs)
		}
	}
	return f
}

func (f family) clone() family { return family{newRS: f.newRS, old: slices.Clone(f.old)} }

// all returns every ReplicaSet, the new one last.
func (f family) all() []*apps.ReplicaSet {
	if f.newRS == nil {
		return slices.Clone(f.old)
	}
	return append(slices.Clone(f.old), f.newRS)
}

// active returns the ReplicaSets that want pods, the new one last.
func (f family) active() []*apps.ReplicaSet { return controller.FilterActiveReplicaSets(f.all()) }

// replace puts the next state of a ReplicaSet in the place of a former one.
func (f *family) replace(was, is *apps.ReplicaSet) {
	if f.newRS == was {
		f.newRS = is
		return
	}
	if i := slices.Index(f.old, was); i >= 0 {
		f.old[i] = is
	}
}

func (f *family) remove(rs *apps.ReplicaSet) {
	f.old = slices.DeleteFunc(f.old, func(o *apps.ReplicaSet) bool { return o == rs })
}

// snapshot is all that a plan is made of. Its objects are the caches' own: a plan copies what it
// changes.
type snapshot struct {
	deployment *apps.Deployment
	// family holds the ReplicaSets that the Deployment owns and has not asked to delete.
	family family
	// pods are the pods of each ReplicaSet; only gathered for the Recreate strategy.
	pods map[types.UID][]*v1.Pod
	now  time.Time
	// terminatingReplicas: the status counts terminating pods (gate
	// DeploymentReplicaSetTerminatingReplicas).
	terminatingReplicas bool
}

// plan is what one round writes, in this order: the ReplicaSet that is created, those that are
// updated, those that are deleted, and then either the Deployment's spec (a rollback) or its status.
type plan struct {
	warning  *message
	create   *apps.ReplicaSet
	updates  []update
	deletes  []*apps.ReplicaSet
	rollback *rollback
	report   reportKind
}

// update is one write to a ReplicaSet, with everything that changes in it.
type update struct{ was, is *apps.ReplicaSet }

// rollback is a write to the Deployment that answers and removes its rollback annotation.
type rollback struct {
	deployment *apps.Deployment
	message    message
}

// reportKind is how much the status says after a round.
type reportKind int

const (
	reportNothing  reportKind = iota
	reportObserved            // only that the generation was seen
	reportStatus              // counts and availability, but no judgement on progress
	reportRollout             // the rollout's progress too
)

// makePlan decides one round. It changes nothing that it is given, and an error means that the
// Deployment cannot be carried out as it is written.
func makePlan(s snapshot) (plan, error) {
	d := s.deployment
	switch {
	case selectsEverything(d):
		return plan{warning: selectingAll(), report: reportObserved}, nil
	case d.DeletionTimestamp != nil:
		// The ReplicaSets are the garbage collector's now.
		return plan{report: reportStatus}, nil
	}
	r := round{snapshot: s, family: s.family.clone()}
	r.updateNewReplicaSet()
	err := r.decide()
	return r.plan, err
}

// round is a plan in the making. Its family shows the ReplicaSets as they will be.
type round struct {
	snapshot
	family
	plan plan
}

func (r *round) decide() error {
	d := r.deployment
	if d.Spec.Paused {
		r.scaleWithDeployment()
		return nil
	}
	if revision, ok := util.RollbackTo(d); ok {
		return r.rollBack(revision)
	}
	if r.isScaling() {
		r.scaleWithDeployment()
		return nil
	}
	switch d.Spec.Strategy.Type {
	case apps.RecreateDeploymentStrategyType:
		return r.recreate()
	case apps.RollingUpdateDeploymentStrategyType:
		return r.roll()
	default:
		return fmt.Errorf("unexpected deployment strategy type: %s", d.Spec.Strategy.Type)
	}
}

// selectsEverything: apps/v1 does not let such a Deployment in, older versions did.
func selectsEverything(d *apps.Deployment) bool {
	return apiequality.Semantic.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{})
}

// updateNewReplicaSet brings what the new ReplicaSet has from the Deployment up to date.
func (r *round) updateNewReplicaSet() {
	if r.newRS == nil {
		return
	}
	draft := r.newRS.DeepCopy()
	changed := util.SetNewReplicaSetAnnotations(r.deployment, draft, util.MaxRevision(r.old)+1)
	if draft.Spec.MinReadySeconds != r.deployment.Spec.MinReadySeconds {
		draft.Spec.MinReadySeconds = r.deployment.Spec.MinReadySeconds
		changed = true
	}
	if changed {
		r.change(r.newRS, draft)
	}
}

// change plans a write of a ReplicaSet. Several changes of one ReplicaSet are one write, in the
// place of the first.
func (r *round) change(was, is *apps.ReplicaSet) {
	r.replace(was, is)
	if r.plan.create == was {
		r.plan.create = is
		return
	}
	for i := range r.plan.updates {
		if r.plan.updates[i].is == was {
			r.plan.updates[i].is = is
			return
		}
	}
	r.plan.updates = append(r.plan.updates, update{was: was, is: is})
}

// scale plans another size for the ReplicaSet, and says whether that is a change. Its annotations
// follow a change only.
func (r *round) scale(rs *apps.ReplicaSet, size int32) bool {
	if sizeOf(rs) == size {
		return false
	}
	r.resize(rs, size)
	return true
}

// resize plans the size and refreshes the annotations that say at which size of the Deployment it
// was given.
func (r *round) resize(rs *apps.ReplicaSet, size int32) {
	want := util.DesiredReplicas(r.deployment)
	maximum := want + util.MaxSurge(*r.deployment)
	if sizeOf(rs) == size && !util.ReplicasAnnotationsNeedUpdate(rs, want, maximum) {
		return
	}
	draft := rs.DeepCopy()
	draft.Spec.Replicas = ptr.To(size)
	util.SetReplicasAnnotations(draft, want, maximum)
	r.change(rs, draft)
}

// createNewReplicaSet plans the ReplicaSet of the Deployment's template.
func (r *round) createNewReplicaSet() error {
	d := r.deployment
	template := *d.Spec.Template.DeepCopy()
	hash := controller.ComputeHash(&template, d.Status.CollisionCount)
	template.Labels = withLabel(template.Labels, apps.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, apps.DefaultDeploymentUniqueLabelKey, hash)

	rs := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            replicaSetName(d.Name, hash),
			Namespace:       d.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, controllerKind)},
			Labels:          withLabel(template.Labels, apps.DefaultDeploymentUniqueLabelKey, hash),
		},
		Spec: apps.ReplicaSetSpec{
			Replicas:        ptr.To[int32](0),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}
	size, err := util.NewRSNewReplicas(d, append(slices.Clone(r.old), rs), rs)
	if err != nil {
		return err
	}
	rs.Spec.Replicas = ptr.To(size)
	want := util.DesiredReplicas(d)
	util.SetNewReplicaSetAnnotations(d, rs, util.MaxRevision(r.old)+1)
	util.SetReplicasAnnotations(rs, want, want+util.MaxSurge(*d))
	r.newRS, r.plan.create = rs, rs
	return nil
}

// maxNameLength is the longest name of a ReplicaSet (a DNS subdomain).
const maxNameLength = 253

// replicaSetName joins the Deployment's name and the hash. A name that would be too long loses its
// end, never the hash, which tells the revisions apart.
func replicaSetName(deployment, hash string) string {
	if room := maxNameLength - len(hash) - 1; len(deployment) > room {
		// Not behind a dot: the hash's part would begin with a dash, which no DNS label may.
		deployment = strings.TrimRight(deployment[:max(room, 0)], ".")
	}
	return deployment + "-" + hash
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(labels)+1)
	for k, v := range labels {
		out[k] = v
	}
	out[key] = value
	return out
}

// cleanUp plans the deletion of the oldest revisions beyond spec.revisionHistoryLimit. A ReplicaSet
// that still has or wants pods, or whose controller has not seen its last change, stays and counts;
// so does one that is scaled down in this very round.
func (r *round) cleanUp() {
	if !util.HasRevisionHistoryLimit(r.deployment) {
		return
	}
	candidates := controller.FilterReplicaSets(r.snapshot.family.old, func(rs *apps.ReplicaSet) bool { return rs.DeletionTimestamp == nil })
	excess := len(candidates) - int(*r.deployment.Spec.RevisionHistoryLimit)
	if excess <= 0 {
		return
	}
	slices.SortFunc(candidates, byRevision)
	for _, rs := range candidates[:excess] {
		if rs.Status.Replicas == 0 && sizeOf(rs) == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			r.plan.deletes = append(r.plan.deletes, rs)
		}
	}
}

// sizeOf returns how many pods the ReplicaSet wants.
func sizeOf(rs *apps.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 0) }

func byCreation(a, b *apps.ReplicaSet) int {
	return compare(controller.ReplicaSetsByCreationTimestamp{a, b})
}
func byRevision(a, b *apps.ReplicaSet) int { return compare(util.ReplicaSetsByRevision{a, b}) }
func bySizeOlder(a, b *apps.ReplicaSet) int {
	return compare(controller.ReplicaSetsBySizeOlder{a, b})
}
func bySizeNewer(a, b *apps.ReplicaSet) int {
	return compare(controller.ReplicaSetsBySizeNewer{a, b})
}

// compare turns the shared sort.Interface orders into slices.SortFunc's, on a pair.
func compare(pair interface{ Less(i, j int) bool }) int {
	switch {
	case pair.Less(0, 1):
		return -1
	case pair.Less(1, 0):
		return 1
	}
	return 0
}
