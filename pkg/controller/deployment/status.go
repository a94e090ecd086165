// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// report is what is to be written about a Deployment after a round. All of a round goes into one
// write: the conditions of its decisions, the revision annotation (which the status endpoint lets
// through), the counts and the progress.
type report struct {
	// deployment is the object to write; nil when it says that already.
	deployment *apps.Deployment
	// checkAfter is when progress must be judged again although no event may come; 0 for never.
	checkAfter time.Duration
}

// outcome is what a round has brought about.
type outcome struct {
	// family holds the ReplicaSets as the API server returned them.
	family family
	// created: the new ReplicaSet was created in this round.
	created bool
}

// makeReport describes the Deployment after a round. It is pure.
func makeReport(s snapshot, kind reportKind, o outcome) report {
	next := draft(s.deployment)
	switch kind {
	case reportNothing:
		return report{}
	case reportObserved:
		next.Status.ObservedGeneration = max(next.Status.ObservedGeneration, next.Generation)
		return finish(s, next)
	}

	setPaused(next, s.now)
	if rs := o.family.newRS; rs != nil {
		util.SetDeploymentRevision(next, rs.Annotations[util.RevisionAnnotation])
		setFoundOrCreated(next, rs.Name, o.created, s.now)
	}
	status := countStatus(s, next, o.family)
	if kind == reportRollout {
		judgeProgress(next, &status, o.family, s.now)
	}
	next.Status = status
	r := finish(s, next)
	if r.deployment == nil && kind == reportRollout {
		r.checkAfter = progressCheckAfter(next, s.now)
	}
	return r
}

// reportCreateFailure says that the new ReplicaSet could not be created. The rest of the status
// stays as it was, the generation unobserved: nothing was done for it.
func reportCreateFailure(s snapshot, text string) report {
	next := draft(s.deployment)
	setPaused(next, s.now)
	if util.HasProgressDeadline(next) {
		util.SetDeploymentCondition(&next.Status,
			condition(apps.DeploymentProgressing, v1.ConditionFalse, util.FailedRSCreateReason, text, s.now))
	}
	return finish(s, next)
}

// reportCollision says that the ReplicaSet's name is taken by another object: the next hash is to
// come out differently.
func reportCollision(s snapshot) report {
	next := draft(s.deployment)
	next.Status.CollisionCount = ptr.To(ptr.Deref(next.Status.CollisionCount, 0) + 1)
	return finish(s, next)
}

// draft returns a copy of which the annotations and the status may be changed, the status by
// assignment and by util's setters only.
func draft(d *apps.Deployment) *apps.Deployment {
	next := *d
	next.Annotations = maps.Clone(d.Annotations)
	return &next
}

// finish drops a draft that says nothing new.
func finish(s snapshot, next *apps.Deployment) report {
	if maps.Equal(s.deployment.Annotations, next.Annotations) &&
		apiequality.Semantic.DeepEqual(s.deployment.Status, next.Status) {
		return report{}
	}
	return report{deployment: next}
}

// setPaused notes that the Deployment was paused or resumed: while it is paused its deadline does
// not run, and it starts anew when it is resumed. A rollout that had timed out stays so.
func setPaused(d *apps.Deployment, now time.Time) {
	if !util.HasProgressDeadline(d) || d.DeletionTimestamp != nil {
		return
	}
	cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	if cond != nil && cond.Reason == util.TimedOutReason {
		return
	}
	noted := cond != nil && cond.Reason == util.PausedDeployReason
	switch {
	case d.Spec.Paused && !noted:
		util.SetDeploymentCondition(&d.Status,
			condition(apps.DeploymentProgressing, v1.ConditionUnknown, util.PausedDeployReason, "Deployment is paused", now))
	case !d.Spec.Paused && noted:
		util.SetDeploymentCondition(&d.Status,
			condition(apps.DeploymentProgressing, v1.ConditionUnknown, util.ResumedDeployReason, "Deployment is resumed", now))
	}
}

// setFoundOrCreated starts the clock of a rollout: at the creation of the new ReplicaSet, or when
// one that exists already is found and no condition says anything yet.
func setFoundOrCreated(d *apps.Deployment, name string, created bool, now time.Time) {
	if !util.HasProgressDeadline(d) {
		return
	}
	switch {
	case created:
		util.SetDeploymentCondition(&d.Status, condition(apps.DeploymentProgressing, v1.ConditionTrue,
			util.NewReplicaSetReason, fmt.Sprintf("Created new replica set %q", name), now))
	case util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing) == nil:
		util.SetDeploymentCondition(&d.Status, condition(apps.DeploymentProgressing, v1.ConditionTrue,
			util.FoundNewRSReason, fmt.Sprintf("Found new replica set %q", name), now))
	}
}

// countStatus returns the status with the counts of the ReplicaSets and the Available condition.
func countStatus(s snapshot, d *apps.Deployment, f family) apps.DeploymentStatus {
	all := f.all()
	available := util.GetAvailableReplicaCountForReplicaSets(all)
	status := apps.DeploymentStatus{
		ObservedGeneration:  d.Generation,
		Replicas:            util.GetActualReplicaCountForReplicaSets(all),
		UpdatedReplicas:     util.GetActualReplicaCountForReplicaSets([]*apps.ReplicaSet{f.newRS}),
		ReadyReplicas:       util.GetReadyReplicaCountForReplicaSets(all),
		AvailableReplicas:   available,
		UnavailableReplicas: max(0, util.GetReplicaCountForReplicaSets(all)-available),
		CollisionCount:      d.Status.CollisionCount,
		Conditions:          d.Status.Conditions,
	}
	if s.terminatingReplicas {
		status.TerminatingReplicas = util.GetTerminatingReplicaCountForReplicaSets(all)
	}
	c := condition(apps.DeploymentAvailable, v1.ConditionFalse, util.MinimumReplicasUnavailable,
		"Deployment does not have minimum availability.", s.now)
	if available >= util.DesiredReplicas(d)-util.MaxUnavailable(*d) {
		c = condition(apps.DeploymentAvailable, v1.ConditionTrue, util.MinimumReplicasAvailable,
			"Deployment has minimum availability.", s.now)
	}
	util.SetDeploymentCondition(&status, c)
	return status
}

// judgeProgress compares the status with the Deployment's former one and sets Progressing by it,
// and ReplicaFailure by the ReplicaSets.
func judgeProgress(d *apps.Deployment, status *apps.DeploymentStatus, f family, now time.Time) {
	current := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	if !util.HasProgressDeadline(d) {
		util.RemoveDeploymentCondition(status, apps.DeploymentProgressing)
	}
	// A rollout that has been completed is not judged anew when its pods come and go.
	completed := status.Replicas == status.UpdatedReplicas && current != nil && current.Reason == util.NewRSAvailableReason
	if util.HasProgressDeadline(d) && !completed {
		subject := fmt.Sprintf("Deployment %q", d.Name)
		if f.newRS != nil {
			subject = fmt.Sprintf("ReplicaSet %q", f.newRS.Name)
		}
		switch {
		case util.DeploymentComplete(d, status):
			util.SetDeploymentCondition(status, condition(apps.DeploymentProgressing, v1.ConditionTrue,
				util.NewRSAvailableReason, subject+" has successfully progressed.", now))
		case util.DeploymentProgressing(d, status):
			c := condition(apps.DeploymentProgressing, v1.ConditionTrue, util.ReplicaSetUpdatedReason, subject+" is progressing.", now)
			if current != nil && current.Status == v1.ConditionTrue {
				c.LastTransitionTime = current.LastTransitionTime
			}
			// Replaced even if it said the same: each step winds the deadline's clock up.
			util.RemoveDeploymentCondition(status, apps.DeploymentProgressing)
			util.SetDeploymentCondition(status, c)
		case util.DeploymentTimedOut(d, status, now):
			util.SetDeploymentCondition(status, condition(apps.DeploymentProgressing, v1.ConditionFalse,
				util.TimedOutReason, subject+" has timed out progressing.", now))
		}
	}
	if failure := replicaFailure(f); failure != nil {
		util.SetDeploymentCondition(status, *failure)
	} else {
		util.RemoveDeploymentCondition(status, apps.DeploymentReplicaFailure)
	}
}

// replicaFailure returns the condition of the new ReplicaSet that cannot create or delete pods, or
// else of the first that cannot.
func replicaFailure(f family) *apps.DeploymentCondition {
	sets := f.all()
	if f.newRS != nil {
		sets = append([]*apps.ReplicaSet{f.newRS}, sets...)
	}
	for _, rs := range sets {
		for _, c := range rs.Status.Conditions {
			if c.Type == apps.ReplicaSetReplicaFailure {
				failure := util.ReplicaSetToDeploymentCondition(c)
				return &failure
			}
		}
	}
	return nil
}

// progressCheckAfter returns when a rollout that does not move is to be looked at for its deadline;
// 0 when it has none, is complete or has timed out already.
func progressCheckAfter(d *apps.Deployment, now time.Time) time.Duration {
	cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	if !util.HasProgressDeadline(d) || cond == nil || util.DeploymentComplete(d, &d.Status) {
		return 0
	}
	if cond.Reason == util.TimedOutReason || cond.Reason == util.NewRSAvailableReason {
		return 0 // neither can time out, so there is nothing to look at
	}
	after := util.Deadline(d, cond).Sub(now)
	if after < time.Second {
		return max(after, 0) + soon
	}
	// A second more, because the times of conditions are cut to seconds.
	return after + time.Second
}

// soon is how long a Deployment waits that is to be looked at again at once.
const soon = 10 * time.Millisecond

func condition(t apps.DeploymentConditionType, status v1.ConditionStatus, reason, text string, now time.Time) apps.DeploymentCondition {
	at := metav1.NewTime(now)
	return apps.DeploymentCondition{Type: t, Status: status, Reason: reason, Message: text, LastUpdateTime: at, LastTransitionTime: at}
}
