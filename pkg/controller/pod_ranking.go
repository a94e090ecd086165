// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"math/bits"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// A rule orders two Pods: negative when a is to be deleted before b, 0 when the rule
// does not tell them apart. Each rule is a weak order by itself, so that rules one after
// the other are one too, and a sort by them is well defined.
type rule func(a, b *v1.Pod) int

func firstRule(a, b *v1.Pod, rules ...rule) int {
	for _, r := range rules {
		if c := r(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// ActivePods sorts the Pods to be deleted first to the front:
// unassigned before assigned, Pending before Unknown before Running, not ready before
// ready, ready for a shorter time before ready for a longer one, more restarts before
// fewer, newer before older.
type ActivePods []*v1.Pod

func (s ActivePods) Len() int      { return len(s) }
func (s ActivePods) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Less implements sort.Interface.
func (s ActivePods) Less(i, j int) bool {
	return firstRule(s[i], s[j], byAssigned, byPhase, byReady, byReadyTime, byRestarts, byCreation) < 0
}

// ActivePodsWithRanks sorts the Pods to be deleted first to the front as ActivePods
// does, with three more things in mind: the user's wish (the annotation
// controller.kubernetes.io/pod-deletion-cost), how crowded a Pod's node is (Rank), and
// that time should not decide too finely: ages of the same power of two count as equal,
// and the Pod's UID, which is as good as random, decides then. The Pods that go on a
// scale-down are so spread over the failure domains, where the newest Pods often share
// one (KEP-2185).
//
// Among ready Pods whose ages are of one power of two, restarts are looked at before the
// UID. Upstream looks at restarts only where the ready times are equal to the second,
// and at the UID first where they are not, which is not an order (a before b before c
// before a is possible) and leaves the result to chance.
type ActivePodsWithRanks struct {
	Pods []*v1.Pod
	// Rank of the Pod of the same index: the number of active Pods on its node that
	// belong to the same owner or to a related one. Higher goes first.
	Rank []int
	// Now is the moment from which ages are counted. When zero, times are compared as
	// they are.
	Now metav1.Time
	// IgnoreDeletionCost leaves the annotation out of it (feature gate PodDeletionCost off).
	IgnoreDeletionCost bool
}

func (s ActivePodsWithRanks) Len() int { return len(s.Pods) }

// Swap implements sort.Interface.
func (s ActivePodsWithRanks) Swap(i, j int) {
	s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i]
	s.Rank[i], s.Rank[j] = s.Rank[j], s.Rank[i]
}

// Less implements sort.Interface.
func (s ActivePodsWithRanks) Less(i, j int) bool {
	a, b := s.Pods[i], s.Pods[j]
	if c := firstRule(a, b, byAssigned, byPhase, byReady); c != 0 {
		return c < 0
	}
	if !s.IgnoreDeletionCost {
		if c := byDeletionCost(a, b); c != 0 {
			return c < 0
		}
	}
	if s.Rank[i] != s.Rank[j] {
		return s.Rank[i] > s.Rank[j]
	}
	if s.Now.IsZero() {
		return firstRule(a, b, byReadyTime, byRestarts, byCreation) < 0
	}
	return firstRule(a, b, s.byReadyAge, byRestarts, s.byCreationAge, byUID) < 0
}

func (s ActivePodsWithRanks) byReadyAge(a, b *v1.Pod) int {
	return byAge(readyTime(a), readyTime(b), s.Now)
}

func (s ActivePodsWithRanks) byCreationAge(a, b *v1.Pod) int {
	return byAge(&a.CreationTimestamp, &b.CreationTimestamp, s.Now)
}

// ByLogging sorts the Pods whose logs say most to the front: assigned, running, ready,
// ready for long, with restarts, old.
type ByLogging []*v1.Pod

func (s ByLogging) Len() int      { return len(s) }
func (s ByLogging) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Less implements sort.Interface.
func (s ByLogging) Less(i, j int) bool {
	a, b := s[i], s[j]
	// The same rules turned around, but for the restarts: those logs are worth a look.
	return firstRule(b, a, byAssigned, byPhase, byReady, byReadyTime, flipped(byRestarts), byCreation) < 0
}

func flipped(r rule) rule {
	return func(a, b *v1.Pod) int { return r(b, a) }
}

func byAssigned(a, b *v1.Pod) int {
	return compareBool(a.Spec.NodeName != "", b.Spec.NodeName != "")
}

func byPhase(a, b *v1.Pod) int {
	return cmp.Compare(phaseRank(a.Status.Phase), phaseRank(b.Status.Phase))
}

func phaseRank(phase v1.PodPhase) int {
	switch phase {
	case v1.PodUnknown:
		return 1
	case v1.PodRunning:
		return 2
	default: // Pending; others are not sorted
		return 0
	}
}

func byReady(a, b *v1.Pod) int {
	return compareBool(podutil.IsPodReady(a), podutil.IsPodReady(b))
}

// byReadyTime has the later time first, and the unknown one before all.
func byReadyTime(a, b *v1.Pod) int {
	return newerFirst(readyTime(a), readyTime(b))
}

func byCreation(a, b *v1.Pod) int {
	return newerFirst(&a.CreationTimestamp, &b.CreationTimestamp)
}

func byUID(a, b *v1.Pod) int {
	return cmp.Compare(a.UID, b.UID)
}

// byRestarts compares the most-restarted container of each Pod, and only where those
// are equal the most-restarted sidecar.
func byRestarts(a, b *v1.Pod) int {
	aRegular, aSidecar := maxRestarts(a)
	bRegular, bSidecar := maxRestarts(b)
	return cmp.Or(cmp.Compare(bRegular, aRegular), cmp.Compare(bSidecar, aSidecar))
}

func maxRestarts(pod *v1.Pod) (regular, sidecar int32) {
	for i := range pod.Status.ContainerStatuses {
		regular = max(regular, pod.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways {
			continue
		}
		for j := range pod.Status.InitContainerStatuses {
			if status := &pod.Status.InitContainerStatuses[j]; status.Name == c.Name {
				sidecar = max(sidecar, status.RestartCount)
			}
		}
	}
	return regular, sidecar
}

func byDeletionCost(a, b *v1.Pod) int {
	return cmp.Compare(deletionCost(a), deletionCost(b))
}

// deletionCost reads the annotation as the API server validates it: an int32 without
// leading zeros or plus sign. Everything else counts as 0.
func deletionCost(pod *v1.Pod) int32 {
	value, ok := pod.Annotations[v1.PodDeletionCost]
	if !ok || !validFirstDigit(value) {
		return 0
	}
	cost, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

func validFirstDigit(s string) bool {
	if s == "" {
		return false
	}
	return s[0] == '-' || (s[0] == '0' && s == "0") || (s[0] >= '1' && s[0] <= '9')
}

// compareBool has false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// readyTime is when the Pod became ready; zero when it is not ready or nobody knows.
func readyTime(pod *v1.Pod) *metav1.Time {
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.Status == v1.ConditionTrue {
		return &ready.LastTransitionTime
	}
	return &metav1.Time{}
}

func newerFirst(a, b *metav1.Time) int {
	if c := compareBool(!a.IsZero(), !b.IsZero()); c != 0 {
		return c
	}
	return b.Compare(a.Time)
}

// byAge has the unknown time before all, and then the age of the smaller power of two.
func byAge(a, b *metav1.Time, now metav1.Time) int {
	if c := compareBool(!a.IsZero(), !b.IsZero()); c != 0 || a.IsZero() {
		return c
	}
	return cmp.Compare(log2(now.Sub(a.Time)), log2(now.Sub(b.Time)))
}

// log2 of a duration in nanoseconds, rounded down; -1 for what is not positive.
func log2(d time.Duration) int {
	if d <= 0 {
		return -1
	}
	return bits.Len64(uint64(d)) - 1
}
