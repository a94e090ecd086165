// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// finalizerEstimateSeconds is the wait for objects that a finalizer holds: nobody knows how long a
// finalizer takes.
const finalizerEstimateSeconds = 15

// jobDeadlockPatience is how long a namespace must have been terminating before Jobs are deleted
// although pods are left: a job controller that is merely slow has let go of its pods by then.
const jobDeadlockPatience = time.Minute

var (
	// podsResource is deleted before everything else.
	podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	// jobsResource is what breaks a deadlock of pods that the job controller holds.
	jobsResource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// target is a kind of object that can be deleted from a namespace.
type target struct {
	gvr schema.GroupVersionResource
	// list and deleteCollection say which verbs the API offers beside delete.
	list, deleteCollection bool
}

// planTargets returns the deletable resources among lists in a fixed order, each once, and the
// group versions that do not parse, joined in one error. What parses is returned in any case.
func planTargets(lists []*metav1.APIResourceList) ([]target, error) {
	var targets []target
	var errs []error
	seen := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		if list == nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			gvr := gv.WithResource(r.Name)
			isSubresource := strings.Contains(r.Name, "/")
			if isSubresource || seen[gvr] || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			seen[gvr] = true
			targets = append(targets, target{
				gvr:              gvr,
				list:             slices.Contains(r.Verbs, "list"),
				deleteCollection: slices.Contains(r.Verbs, "deletecollection"),
			})
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.gvr.String(), b.gvr.String()) })
	return targets, utilerrors.NewAggregate(errs)
}

// splitPods takes the pods out of the targets. When discovery was incomplete and did not name them,
// they are assumed to exist: order matters more than one request for nothing.
func splitPods(targets []target, complete bool) (pods []target, others []target) {
	for _, t := range targets {
		if t.gvr == podsResource {
			pods = append(pods, t)
			continue
		}
		others = append(others, t)
	}
	if len(pods) == 0 && !complete {
		pods = []target{{gvr: podsResource, list: true, deleteCollection: true}}
	}
	return pods, others
}

// survey sums up the objects of one target that a listing showed.
type survey struct {
	// count is the number of objects.
	count int
	// actionable is true when a delete request would change at least one of the objects.
	actionable bool
	// youngest is the latest creation among the objects.
	youngest time.Time
	// due is the latest end of a grace period among the objects; zero when none is terminating.
	due time.Time
	// finalizers counts the objects that each finalizer holds.
	finalizers map[string]int
	// heldByJobs counts the terminating objects that nothing but the job controller holds.
	heldByJobs int
	// deletable holds the actionable objects, when they must be deleted one by one.
	deletable []objectID
}

type objectID struct {
	name string
	uid  types.UID
}

// add takes one object into account; collect says to remember it for a delete of its own.
func (s *survey) add(obj *metav1.PartialObjectMetadata, collect bool) {
	s.count++
	if created := obj.CreationTimestamp.Time; created.After(s.youngest) {
		s.youngest = created
	}
	if obj.DeletionTimestamp != nil && obj.DeletionTimestamp.After(s.due) {
		s.due = obj.DeletionTimestamp.Time
	}
	for _, f := range obj.Finalizers {
		if s.finalizers == nil {
			s.finalizers = map[string]int{}
		}
		s.finalizers[f]++
	}
	if obj.DeletionTimestamp != nil && slices.Equal(obj.Finalizers, []string{batchv1.JobTrackingFinalizer}) {
		s.heldByJobs++
	}
	if !deleteHelps(obj) {
		return
	}
	s.actionable = true
	if collect {
		s.deletable = append(s.deletable, objectID{name: obj.Name, uid: obj.UID})
	}
}

// deleteHelps says whether a delete request changes anything about obj. For an object that is
// terminating already the API server does nothing while its grace period runs; later, a delete with
// background propagation drops the garbage collector's finalizers, and ends a deletion that the API
// server left half done (k8s.io/apiserver, registry/rest.BeforeDelete).
func deleteHelps(obj *metav1.PartialObjectMetadata) bool {
	if obj.DeletionTimestamp == nil {
		return true
	}
	if grace := obj.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		return false
	}
	return len(obj.Finalizers) == 0 ||
		slices.Contains(obj.Finalizers, metav1.FinalizerDeleteDependents) ||
		slices.Contains(obj.Finalizers, metav1.FinalizerOrphanDependents)
}

// wait says, of a target whose objects have been deleted, in how many seconds the objects that are
// left may be gone. Objects that nothing explains are an error.
func (s *survey) wait(gvr schema.GroupVersionResource, namespace string, now time.Time) (int64, error) {
	if s.count == 0 {
		return 0, nil
	}
	if left := s.due.Sub(now); left > 0 {
		return int64((left + time.Second - 1) / time.Second), nil
	}
	if len(s.finalizers) > 0 {
		return finalizerEstimateSeconds, nil
	}
	return 0, fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", namespace, gvr)
}

// outcome is what a round learned.
type outcome struct {
	// discoveryErr and parseErr say why the targets may be incomplete.
	discoveryErr, parseErr error
	// contentErrs say what could not be deleted.
	contentErrs []error
	// remaining counts the objects that are left; only what a round looked at is in it.
	remaining map[schema.GroupVersionResource]int
	// finalizers counts the remaining objects that each finalizer holds.
	finalizers map[string]int
	// heldByJobs is how many of the remaining objects nothing but the job controller holds.
	heldByJobs int
	// estimate is the longest wait, in seconds, that a target with remaining objects asks for.
	estimate int64
}

// include adds what is known about one target.
func (o *outcome) include(gvr schema.GroupVersionResource, s survey, estimate int64, err error) {
	if err != nil {
		o.contentErrs = append(o.contentErrs, err)
	}
	o.estimate = max(o.estimate, estimate)
	o.heldByJobs += s.heldByJobs
	if s.count > 0 {
		if o.remaining == nil {
			o.remaining = map[schema.GroupVersionResource]int{}
		}
		o.remaining[gvr] += s.count
	}
	for f, n := range s.finalizers {
		if o.finalizers == nil {
			o.finalizers = map[string]int{}
		}
		o.finalizers[f] += n
	}
}

// onlyJobsHoldPods says, of a round that has dealt with pods only, whether its namespace is in the
// deadlock that pods-first brings: the job controller keeps its finalizer on a failed pod until there
// is a replacement, which a terminating namespace refuses, for as long as the Job exists.
func (o *outcome) onlyJobsHoldPods(terminatingFor time.Duration) bool {
	pods := o.remaining[podsResource]
	return pods > 0 && o.heldByJobs == pods && len(o.contentErrs) == 0 && terminatingFor >= jobDeadlockPatience
}

// err is why the namespace cannot be let go, beside objects that are still going away.
func (o *outcome) err() error {
	errs := append([]error{}, o.contentErrs...)
	for _, err := range []error{o.discoveryErr, o.parseErr} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// empty is true when the namespace may be let go.
func (o *outcome) empty() bool {
	return len(o.remaining) == 0 && o.estimate == 0 && o.err() == nil
}

// remainingError says what is left, and for how long it may be.
func (o *outcome) remainingError() *ResourcesRemainingError {
	resources := slices.SortedFunc(maps.Keys(o.remaining), func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(a.String(), b.String())
	})
	return &ResourcesRemainingError{Estimate: o.estimate, Resources: resources}
}
