// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// remaining returns the estimate of a round that left content, and fails the test for others.
func remaining(t *testing.T, err error) int64 {
	t.Helper()
	var r *ResourcesRemainingError
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a ResourcesRemainingError", err)
	}
	return r.Estimate
}

func assertRequests(t *testing.T, c *fakeCluster, ordered int, want ...string) {
	t.Helper()
	slices.Sort(want[min(ordered, len(want)):])
	if diff := cmp.Diff(want, sortedTail(c.taken(), ordered)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestNamespacesThatNeedNothing(t *testing.T) {
	tests := map[string]func(*fakeCluster){
		"gone": func(c *fakeCluster) { c.namespace = nil },
		"active": func(c *fakeCluster) {
			c.namespace.DeletionTimestamp = nil
			c.namespace.Status.Phase = v1.NamespaceActive
		},
		"finalized already":              func(c *fakeCluster) { c.namespace.Spec.Finalizers = nil },
		"only other finalizers are left": func(c *fakeCluster) { c.namespace.Spec.Finalizers = []v1.FinalizerName{"other"} },
		"being deleted, phase not set yet, and no finalizer": func(c *fakeCluster) {
			c.namespace.Spec.Finalizers = nil
			c.namespace.Status.Phase = v1.NamespaceActive
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster()
			c.put(configMaps, "precious")
			change(c)
			if err := c.deleter().Delete(t.Context(), nsName); err != nil {
				t.Fatal(err)
			}
			assertRequests(t, c, 1, "get namespace")
		})
	}
}

func TestEmptyNamespaceIsFinalized(t *testing.T) {
	c := newFakeCluster()
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	// One list for each resource, no delete, no status update of a namespace that is gone at once.
	got := c.taken()
	want := []string{"get namespace", "discover", "list pods", "finalize", "list configmaps", "list deployments", "list widgets"}
	if got[len(got)-1] != "finalize" {
		t.Errorf("last request is %s, want finalize", got[len(got)-1])
	}
	if diff := cmp.Diff(want, sortedTail(got, 3)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if c.namespace != nil {
		t.Error("namespace is still there")
	}
}

func TestPodsAreDeletedFirst(t *testing.T) {
	c := newFakeCluster()
	c.grace[podsResource] = 30 * time.Second
	c.put(podsResource, "web")
	c.put(configMaps, "settings")
	c.put(deployments, "web", "example.com/hold")
	d := c.deleter()

	if got := remaining(t, d.Delete(t.Context(), nsName)); got != 30 {
		t.Errorf("estimate %d s, want the pod's 30", got)
	}
	assertRequests(t, c, 6, "get namespace", "discover", "list pods", "deletecollection pods", "list pods", "update status")
	wantConditions(t, c, map[v1.NamespaceConditionType]string{
		v1.NamespaceContentRemaining: "Some resources are remaining: pods. has 1 resource instances",
	})

	// The pod needs no second delete: a round is a look at the namespace and one at the pods, and
	// the estimate is what is left.
	c.tick(10 * time.Second)
	if got := remaining(t, d.Delete(t.Context(), nsName)); got != 20 {
		t.Errorf("estimate %d s, want the 20 that are left", got)
	}
	assertRequests(t, c, 2, "get namespace", "list pods")

	c.tick(20 * time.Second)
	if got := remaining(t, d.Delete(t.Context(), nsName)); got != finalizerEstimateSeconds {
		t.Errorf("estimate %d s, want %d", got, finalizerEstimateSeconds)
	}
	assertRequests(t, c, 2, "get namespace", "list pods", "list configmaps", "deletecollection configmaps", "list configmaps",
		"list deployments", "deletecollection deployments", "list deployments", "list widgets", "update status")
	wantConditions(t, c, map[v1.NamespaceConditionType]string{
		v1.NamespaceContentRemaining:    "Some resources are remaining: deployments.apps has 1 resource instances",
		v1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
	})

	// The discovery is 30 s old by now. Before the namespace goes, there must be a new one.
	c.release(deployments)
	c.tick(time.Second)
	if err := d.Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	if c.namespace != nil {
		t.Error("namespace is still there")
	}
	if n := strings.Count(strings.Join(c.taken(), ","), "discover"); n != 1 {
		t.Errorf("%d discoveries in the last round, want 1", n)
	}
}

// wantConditions checks all five conditions: those in bad are True with that message.
func wantConditions(t *testing.T, c *fakeCluster, bad map[v1.NamespaceConditionType]string) {
	t.Helper()
	for _, kind := range []v1.NamespaceConditionType{
		v1.NamespaceDeletionDiscoveryFailure, v1.NamespaceDeletionGVParsingFailure, v1.NamespaceDeletionContentFailure,
		v1.NamespaceContentRemaining, v1.NamespaceFinalizersRemaining,
	} {
		got := c.condition(t, kind)
		want, isBad := bad[kind]
		switch {
		case isBad && (got.Status != v1.ConditionTrue || got.Message != want):
			t.Errorf("%s is %s %q, want True %q", kind, got.Status, got.Message, want)
		case !isBad && got.Status != v1.ConditionFalse:
			t.Errorf("%s is %s %q, want False", kind, got.Status, got.Message)
		}
	}
}

func TestPodsOverdueAreAnError(t *testing.T) {
	c := newFakeCluster()
	c.grace[podsResource] = 30 * time.Second
	c.put(podsResource, "lost")
	d := c.deleter()
	remaining(t, d.Delete(t.Context(), nsName))
	c.clock.Step(31 * time.Second) // no kubelet confirms

	err := d.Delete(t.Context(), nsName)
	want := "failed to delete pods for namespace: doomed, err: unexpected items still remain in namespace: doomed for gvr: /v1, Resource=pods"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
	wantConditions(t, c, map[v1.NamespaceConditionType]string{
		v1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: " + want,
		v1.NamespaceContentRemaining:       "Some resources are remaining: pods. has 1 resource instances",
	})
}

func TestOtherContentWaitsWhilePodsCannotBeDeleted(t *testing.T) {
	c := newFakeCluster()
	c.put(podsResource, "web")
	c.put(configMaps, "settings")
	c.fail["deletecollection pods"] = errors.New("webhook says no")
	err := c.deleter().Delete(t.Context(), nsName)
	if err == nil || !strings.Contains(err.Error(), "failed to delete pods for namespace: doomed, err: deleting pods: webhook says no") {
		t.Fatalf("error %v", err)
	}
	assertRequests(t, c, 5, "get namespace", "discover", "list pods", "deletecollection pods", "update status")
}

func TestPodsFirstEvenWhenDiscoveryMissesThem(t *testing.T) {
	c := newFakeCluster()
	c.grace[podsResource] = time.Minute
	c.put(podsResource, "web")
	c.put(deployments, "web")
	c.discoverer = func() ([]*metav1.APIResourceList, error) {
		return []*metav1.APIResourceList{resources("apps/v1", "deployments")}, &discovery.ErrGroupDiscoveryFailed{
			Groups: map[schema.GroupVersion]error{{Version: "v1"}: errors.New("timeout")},
		}
	}
	if err := c.deleter().Delete(t.Context(), nsName); err == nil {
		t.Fatal("no error although discovery failed")
	}
	if c.count(deployments) != 1 {
		t.Error("the deployment was deleted while a pod was left")
	}

	// Where the API server has no pods at all, nothing asks for them.
	c = newFakeCluster()
	c.lists = []*metav1.APIResourceList{resources("apps/v1", "deployments")}
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	if got := c.taken(); slices.Contains(got, "list pods") {
		t.Errorf("requests %v include the pods", got)
	}
}

func TestPhaseIsSetWhereTheAPIServerDidNot(t *testing.T) {
	c := newFakeCluster()
	c.namespace.Status.Phase = v1.NamespaceActive
	c.put(configMaps, "held", "example.com/hold")
	remaining(t, c.deleter().Delete(t.Context(), nsName))
	if got := c.namespace.Status.Phase; got != v1.NamespaceTerminating {
		t.Errorf("phase %s, want Terminating", got)
	}
	if got := c.taken(); got[1] != "update status" {
		t.Errorf("requests %v, want the phase to be updated first", got)
	}
}

func TestFinalizeKeepsOtherFinalizers(t *testing.T) {
	c := newFakeCluster()
	c.namespace.Spec.Finalizers = []v1.FinalizerName{"before", token, "after"}
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]v1.FinalizerName{"before", "after"}, c.namespace.Spec.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	// Somebody still looks at such a namespace: its conditions say that we are done.
	wantConditions(t, c, nil)
}

func TestConditionsOfANamespaceThatAMetadataFinalizerHolds(t *testing.T) {
	c := newFakeCluster()
	c.namespace.Finalizers = []string{"example.com/hold"}
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	wantConditions(t, c, nil)
	if len(c.namespace.Spec.Finalizers) != 0 {
		t.Errorf("spec.finalizers %v", c.namespace.Spec.Finalizers)
	}
}

func TestRetryOnConflict(t *testing.T) {
	conflictOnce := func(c *fakeCluster, request string, also func()) {
		c.before[request] = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.before, request)
			c.namespace.ResourceVersion = "changed"
			if also != nil {
				also()
			}
		}
	}
	t.Run("another writer", func(t *testing.T) {
		c := newFakeCluster()
		conflictOnce(c, "finalize", nil)
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
		if c.namespace != nil {
			t.Error("namespace is still there")
		}
	})
	t.Run("deleted and created anew", func(t *testing.T) {
		c := newFakeCluster()
		conflictOnce(c, "finalize", func() { c.namespace.UID = "new" })
		err := c.deleter().Delete(t.Context(), nsName)
		if err == nil || !strings.Contains(err.Error(), "namespace uid has changed across retries") {
			t.Fatalf("error %v", err)
		}
		if len(c.namespace.Spec.Finalizers) != 1 {
			t.Error("the new namespace was finalized")
		}
	})
	t.Run("gone meanwhile", func(t *testing.T) {
		c := newFakeCluster()
		conflictOnce(c, "finalize", func() { c.namespace = nil })
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Errorf("error %v, want none", err)
		}
	})
	t.Run("again and again", func(t *testing.T) {
		c := newFakeCluster()
		c.fail["finalize"] = apierrors.NewConflict(v1.Resource("namespaces"), nsName, errors.New("busy"))
		if err := c.deleter().Delete(t.Context(), nsName); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want the conflict", err)
		}
		if n := strings.Count(strings.Join(c.taken(), ","), "finalize"); n != conflictRetries {
			t.Errorf("%d attempts, want %d", n, conflictRetries)
		}
	})
	t.Run("phase", func(t *testing.T) {
		c := newFakeCluster()
		c.namespace.Status.Phase = v1.NamespaceActive
		conflictOnce(c, "update status", nil)
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGetFails(t *testing.T) {
	c := newFakeCluster()
	c.fail["get namespace"] = errors.New("no route")
	err := c.deleter().Delete(t.Context(), nsName)
	if err == nil || err.Error() != "getting namespace doomed: no route" {
		t.Errorf("error %v", err)
	}
}

func TestStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	c := newFakeCluster()
	c.put(configMaps, "held", "example.com/hold")
	d := c.deleter()
	remaining(t, d.Delete(t.Context(), nsName))
	first := c.condition(t, v1.NamespaceContentRemaining)
	c.taken()

	c.tick(8 * time.Second)
	if got := remaining(t, d.Delete(t.Context(), nsName)); got != finalizerEstimateSeconds {
		t.Errorf("estimate %d", got)
	}
	// A blocked namespace costs one list for each resource and one look at the namespace.
	assertRequests(t, c, 2, "get namespace", "list pods", "list configmaps", "list deployments", "list widgets")
	if got := c.condition(t, v1.NamespaceContentRemaining); got != first {
		t.Errorf("condition changed from %v to %v", first, got)
	}
}

func TestFailureToWriteConditionsDoesNotStopTheRound(t *testing.T) {
	c := newFakeCluster()
	c.namespace.Finalizers = []string{"example.com/hold"}
	c.fail["update status"] = errors.New("no")
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	if len(c.namespace.Spec.Finalizers) != 0 {
		t.Error("namespace was not finalized")
	}
}

func TestCollectionDeletesThatTheAPIDoesNotHave(t *testing.T) {
	for name, refusal := range map[string]error{
		"405": methodNotSupported(configMaps, "deletecollection"),
		"404": apierrors.NewNotFound(configMaps.GroupResource(), ""),
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster()
			c.put(configMaps, "a")
			c.put(configMaps, "b")
			c.fail["deletecollection configmaps"] = refusal
			if err := c.deleter().Delete(t.Context(), nsName); err != nil {
				t.Fatal(err)
			}
			got := c.taken()
			for _, want := range []string{"delete configmaps a", "delete configmaps b"} {
				if !slices.Contains(got, want) {
					t.Errorf("requests %v lack %q", got, want)
				}
			}
			if c.namespace != nil {
				t.Error("namespace is still there")
			}
		})
	}
	t.Run("not in discovery", func(t *testing.T) {
		c := newFakeCluster()
		c.lists[0].APIResources[1].Verbs = metav1.Verbs{"list", "delete"}
		c.put(configMaps, "a")
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
		got := c.taken()
		if slices.Contains(got, "deletecollection configmaps") || !slices.Contains(got, "delete configmaps a") {
			t.Errorf("requests %v, want single deletes", got)
		}
	})
}

func TestDeleteEncounters404(t *testing.T) {
	c := newFakeCluster()
	gone := apierrors.NewNotFound(widgets.GroupResource(), "")
	c.put(configMaps, "settings")
	c.put(widgets, "w")
	c.fail["list widgets"], c.fail["deletecollection widgets"] = gone, gone // the CRD was deleted just now
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	if c.count(configMaps) != 0 || c.namespace != nil {
		t.Error("a kind that is gone kept the namespace")
	}
}

func TestResourcesWithoutListAreDeletedUnseen(t *testing.T) {
	c := newFakeCluster()
	c.lists = append(c.lists, resources("blind.io/v1", "blinds", "writeonly"))
	c.lists[3].APIResources[0].Verbs = metav1.Verbs{"delete", "deletecollection"}
	c.lists[3].APIResources[1].Verbs = metav1.Verbs{"delete"}
	if err := c.deleter().Delete(t.Context(), nsName); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.taken(), ",")
	if !strings.Contains(got, "deletecollection blinds") || strings.Contains(got, "list blinds") || strings.Contains(got, "writeonly") {
		t.Errorf("requests %s", got)
	}

	c = newFakeCluster()
	c.lists = []*metav1.APIResourceList{{GroupVersion: "blind.io/v1", APIResources: []metav1.APIResource{
		{Name: "blinds", Verbs: metav1.Verbs{"delete", "deletecollection"}}}}}
	c.fail["deletecollection blinds"] = errors.New("down")
	if err := c.deleter().Delete(t.Context(), nsName); err == nil || !strings.Contains(err.Error(), "deleting blinds.blind.io: down") {
		t.Errorf("error %v", err)
	}
}

func TestOneBrokenResourceDoesNotStopTheOthers(t *testing.T) {
	c := newFakeCluster()
	c.put(configMaps, "settings")
	c.put(deployments, "web")
	c.put(widgets, "w")
	c.fail["list widgets"] = errors.New("conversion webhook is down")
	err := c.deleter().Delete(t.Context(), nsName)
	if err == nil || !strings.Contains(err.Error(), "listing widgets.example.com: conversion webhook is down") {
		t.Fatalf("error %v", err)
	}
	if c.count(configMaps) != 0 || c.count(deployments) != 0 {
		t.Error("other content was not deleted")
	}
	wantConditions(t, c, map[v1.NamespaceConditionType]string{
		v1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: listing widgets.example.com: conversion webhook is down",
	})
}

func TestRefusedDeletesAreNamedWithWhatIsLeft(t *testing.T) {
	c := newFakeCluster()
	c.pageSize = 2
	for i := range 5 {
		c.put(configMaps, fmt.Sprint("cm", i))
	}
	c.fail["deletecollection configmaps"] = apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("policy"))
	if err := c.deleter().Delete(t.Context(), nsName); !strings.Contains(fmt.Sprint(err), "deleting configmaps: ") {
		t.Fatalf("error %v", err)
	}
	if got, want := c.condition(t, v1.NamespaceContentRemaining).Message, "Some resources are remaining: configmaps. has 5 resource instances"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestPages(t *testing.T) {
	c := newFakeCluster()
	c.pageSize = 2
	for i := range 5 {
		c.put(configMaps, fmt.Sprint("cm", i), "example.com/hold")
	}
	remaining(t, c.deleter().Delete(t.Context(), nsName))
	wantConditions(t, c, map[v1.NamespaceConditionType]string{
		v1.NamespaceContentRemaining:    "Some resources are remaining: configmaps. has 5 resource instances",
		v1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: example.com/hold in 5 resource instances",
	})
	// The first page already shows that a delete is needed; only the listing after it needs all.
	if n := strings.Count(strings.Join(c.taken(), ","), "list configmaps"); n != 1+3 {
		t.Errorf("%d pages were read, want 4", n)
	}
}

func TestPagesThatExpireAreReadAnew(t *testing.T) {
	c := newFakeCluster()
	c.pageSize = 2
	for i := range 5 {
		obj := c.put(configMaps, fmt.Sprint("cm", i), "example.com/hold")
		obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.clock.Now())), ptr.To(int64(0))
	}
	calls := 0
	c.before["list configmaps"] = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		calls++
		if delete(c.fail, "list configmaps"); calls == 1 {
			c.fail["list configmaps"] = apierrors.NewResourceExpired("too old") // for the second page
		}
	}
	remaining(t, c.deleter().Delete(t.Context(), nsName))
	if got, want := c.condition(t, v1.NamespaceContentRemaining).Message, "Some resources are remaining: configmaps. has 5 resource instances"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if calls != 3 {
		t.Errorf("%d lists, want 3: a page, an expired page, everything", calls)
	}
}

func TestDiscovery(t *testing.T) {
	broken := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
		{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("no endpoints"),
	}}
	t.Run("partial failure", func(t *testing.T) {
		c := newFakeCluster()
		c.put(configMaps, "settings")
		c.discoverer = func() ([]*metav1.APIResourceList, error) { return c.lists, broken }
		d := c.deleter()
		if err := d.Delete(t.Context(), nsName); err == nil || !strings.Contains(err.Error(), "metrics.k8s.io/v1beta1: no endpoints") {
			t.Fatalf("error %v", err)
		}
		if c.count(configMaps) != 0 {
			t.Error("what was discovered was not deleted")
		}
		wantConditions(t, c, map[v1.NamespaceConditionType]string{
			v1.NamespaceDeletionDiscoveryFailure: "Discovery failed for some groups, 1 failing: " + broken.Error(),
		})

		// It is not kept for long: when the group is back, the namespace goes.
		c.discoverer = nil
		c.tick(failedDiscoveryMaxAge + time.Second)
		if err := d.Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
		if c.namespace != nil {
			t.Error("namespace is still there")
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		c := newFakeCluster()
		c.discoverer = func() ([]*metav1.APIResourceList, error) { return nil, nil }
		if err := c.deleter().Delete(t.Context(), nsName); !errors.Is(errors.Unwrap(err), errNothingDiscovered) && !strings.Contains(fmt.Sprint(err), errNothingDiscovered.Error()) {
			t.Fatalf("error %v, want %v", err, errNothingDiscovered)
		}
		if c.namespace == nil {
			t.Fatal("the namespace was finalized although nobody knows what is in it")
		}
		wantConditions(t, c, map[v1.NamespaceConditionType]string{
			v1.NamespaceDeletionDiscoveryFailure: errNothingDiscovered.Error(),
		})
	})
	t.Run("fails with nothing", func(t *testing.T) {
		c := newFakeCluster()
		c.discoverer = func() ([]*metav1.APIResourceList, error) { return nil, errors.New("api server is starting") }
		if err := c.deleter().Delete(t.Context(), nsName); err == nil {
			t.Fatal("no error")
		}
		wantConditions(t, c, map[v1.NamespaceConditionType]string{v1.NamespaceDeletionDiscoveryFailure: "api server is starting"})
	})
	t.Run("a group version that does not parse", func(t *testing.T) {
		c := newFakeCluster()
		c.put(configMaps, "settings")
		c.lists = append(c.lists, resources("a/b/c", "things"))
		if err := c.deleter().Delete(t.Context(), nsName); err == nil {
			t.Fatal("no error")
		}
		if c.count(configMaps) != 0 {
			t.Error("what parses was not deleted")
		}
		wantConditions(t, c, map[v1.NamespaceConditionType]string{
			v1.NamespaceDeletionGVParsingFailure: "unexpected GroupVersion string: a/b/c",
		})
	})
	t.Run("a kind that came since the last discovery", func(t *testing.T) {
		c := newFakeCluster()
		d := c.deleter()
		c.put(configMaps, "held", "example.com/hold")
		remaining(t, d.Delete(t.Context(), nsName))
		c.release(configMaps)
		c.lists = append(c.lists, resources("late.io/v1", "latecomers"))
		late := schema.GroupVersionResource{Group: "late.io", Version: "v1", Resource: "latecomers"}
		c.put(late, "l")
		c.tick(time.Second)
		if err := d.Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
		if c.count(late) != 0 || c.namespace != nil {
			t.Error("content of the late kind is left, or the namespace is")
		}
	})
}

func TestDiscoveryIsShared(t *testing.T) {
	c := newFakeCluster()
	c.put(configMaps, "held", "example.com/hold")
	d := c.deleter()
	for range 4 {
		remaining(t, d.Delete(t.Context(), nsName))
		c.tick(8 * time.Second)
	}
	if n := strings.Count(strings.Join(c.taken(), ","), "discover"); n != 1 {
		t.Errorf("%d discoveries in 4 rounds within half a minute, want 1", n)
	}
}

func TestObjectsYoungerThanTheDeletionAreSuspicious(t *testing.T) {
	young := func(c *fakeCluster) {
		c.put(configMaps, "young").CreationTimestamp = metav1.NewTime(c.clock.Now())
	}
	t.Run("the namespace was created anew", func(t *testing.T) {
		c := newFakeCluster()
		young(c)
		c.before["list configmaps"] = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.namespace.UID, c.namespace.DeletionTimestamp = "new", nil
		}
		if err := c.deleter().Delete(t.Context(), nsName); !strings.Contains(fmt.Sprint(err), errNamespaceReplaced.Error()) {
			t.Fatalf("error %v", err)
		}
		if c.count(configMaps) != 1 {
			t.Error("an object of the new namespace was deleted")
		}
		if len(c.namespace.Status.Conditions) != 0 {
			t.Errorf("the new namespace got conditions %v", c.namespace.Status.Conditions)
		}
	})
	t.Run("admitted by a slow API server", func(t *testing.T) {
		c := newFakeCluster()
		young(c)
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Fatal(err)
		}
		if c.namespace != nil {
			t.Error("namespace is still there")
		}
	})
}

func TestSingleDeletesSpareReplacedObjects(t *testing.T) {
	c := newFakeCluster()
	c.lists[0].APIResources[1].Verbs = metav1.Verbs{"list", "delete"}
	c.put(configMaps, "a")
	c.before["delete configmaps a"] = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.objects[configMaps]["a"].UID = "another"
	}
	err := c.deleter().Delete(t.Context(), nsName)
	if !strings.Contains(fmt.Sprint(err), "unexpected items still remain in namespace: doomed for gvr: /v1, Resource=configmaps") {
		t.Errorf("error %v", err)
	}
	if c.count(configMaps) != 1 {
		t.Error("an object of another UID was deleted")
	}
}

func TestGarbageCollectorFinalizersAreDropped(t *testing.T) {
	for _, f := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		c := newFakeCluster()
		obj := c.put(deployments, "web", f)
		obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.clock.Now())), ptr.To(int64(0))
		if err := c.deleter().Delete(t.Context(), nsName); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestCancelledRoundWritesNothing(t *testing.T) {
	c := newFakeCluster()
	c.put(configMaps, "settings")
	ctx, cancel := context.WithCancel(t.Context())
	c.before["list pods"] = cancel
	c.fail["list pods"] = context.Canceled
	if err := c.deleter().Delete(ctx, nsName); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := c.taken(); slices.Contains(got, "update status") || slices.Contains(got, "finalize") {
		t.Errorf("requests %v", got)
	}
}

func TestResourcesRemainingErrorText(t *testing.T) {
	err := &ResourcesRemainingError{Estimate: 15}
	if want := "some content remains in the namespace, estimate 15 seconds before it is removed"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
