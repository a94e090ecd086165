// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replica is one ordinal: what a plan is about. Carrying the plan out keeps it up to
// date, so that the status tells of what has been done.
type replica struct {
	ordinal int
	// pod is nil when there is none.
	pod *v1.Pod
	// going says that the Pod is being deleted, whether the cache shows it yet or not.
	going bool
	// condemned says that the ordinal is outside the set's range.
	condemned bool
	claims    []claim
}

// gates are the feature gates that change what is done.
type gates struct {
	maxUnavailable     bool
	recreate           bool
	semanticComparison bool
	leaveBadRevision   bool
}

// state is what a sync has found: the input of a plan.
type state struct {
	set     *apps.StatefulSet
	current string // names of revisions
	update  string
	// replicas are those of the range, ascending; condemned all others, descending.
	replicas  []*replica
	condemned []*replica
	// maxUnavailable is how many replicas an update may leave unavailable.
	maxUnavailable int
	gates          gates
	now            time.Time
}

// newState sorts the Pods, which belong to the set, into replicas. going tells of Pods
// whose deletion was requested; get reads a claim from the cache.
func newState(set *apps.StatefulSet, pods []*v1.Pod, going func(*v1.Pod) bool, get func(string) *v1.PersistentVolumeClaim) *state {
	s := &state{set: set, replicas: make([]*replica, replicaCount(set))}
	start := startOrdinal(set)
	for i := range s.replicas {
		s.replicas[i] = &replica{ordinal: start + i}
	}
	for _, pod := range pods {
		ordinal := ordinalOf(pod)
		switch i := ordinal - start; {
		case ordinal < 0:
		case i >= 0 && i < len(s.replicas):
			s.replicas[i].pod, s.replicas[i].going = pod, going(pod)
		default:
			s.condemned = append(s.condemned, &replica{ordinal: ordinal, pod: pod, going: going(pod), condemned: true})
		}
	}
	slices.SortFunc(s.condemned, func(a, b *replica) int { return b.ordinal - a.ordinal })
	for r := range s.all() {
		r.claims = claimsOf(set, r.ordinal, get)
	}
	return s
}

// all yields the replicas ascending, then the condemned ones descending.
func (s *state) all() func(func(*replica) bool) {
	return func(yield func(*replica) bool) {
		for _, list := range [][]*replica{s.replicas, s.condemned} {
			for _, r := range list {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func startOrdinal(set *apps.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func replicaCount(set *apps.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(max(*set.Spec.Replicas, 0))
}

func isOrdered(set *apps.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != apps.ParallelPodManagement
}

// isRolling says whether the set replaces old Pods by itself, one after the other.
func isRolling(set *apps.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == apps.RollingUpdateStatefulSetStrategyType
}

// partition is the index of the first replica that an update is for.
func partition(set *apps.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

// maxUnavailable returns how many replicas an update may leave unavailable: 1 unless the
// set says otherwise, and never less.
func maxUnavailable(set *apps.StatefulSet) (int, error) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicaCount(set), false)
	if err != nil {
		return 0, fmt.Errorf("reading spec.updateStrategy.rollingUpdate.maxUnavailable: %w", err)
	}
	return max(n, 1), nil
}

// wantsCurrent says whether the Pod of an ordinal is to be made from the current
// revision rather than from the update revision.
func wantsCurrent(set *apps.StatefulSet, ordinal int) bool {
	if !isRolling(set) {
		return false
	}
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return ordinal < startOrdinal(set)+int(set.Status.CurrentReplicas)
	}
	return ordinal < startOrdinal(set)+partition(set)
}

func (s *state) isAvailable(r *replica) bool {
	return r.pod != nil && isAvailable(r.pod, s.set.Spec.MinReadySeconds, metav1.NewTime(s.now))
}

// isHealthy says whether the replica is there to stay and does its work.
func (s *state) isHealthy(r *replica) bool {
	return !r.going && s.isAvailable(r)
}

// isOld says whether the replica has a Pod that is not of the update revision.
func (s *state) isOld(r *replica) bool {
	return r.pod != nil && isCreated(r.pod) && revisionOf(r.pod) != s.update
}

// unavailable counts the replicas that are not healthy.
func (s *state) unavailable() int {
	n := 0
	for _, r := range s.replicas {
		if !s.isHealthy(r) {
			n++
		}
	}
	return n
}

// firstUnhealthy is the one that an ordered scale-down may take although it is not
// ready: waiting for it would be waiting for ever.
func (s *state) firstUnhealthy() *replica {
	for _, r := range s.replicas {
		if !s.isHealthy(r) {
			return r
		}
	}
	for _, r := range slices.Backward(s.condemned) {
		if !s.isHealthy(r) {
			return r
		}
	}
	return nil
}
