// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
)

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

func TestJobsThatHoldTheirPods(t *testing.T) {
	tests := map[string]struct {
		podFinalizers  [][]string
		terminatingFor time.Duration
		want           bool // the Job is deleted
	}{
		"for a minute":              {[][]string{{batchv1.JobTrackingFinalizer}}, time.Minute, true},
		"for less":                  {[][]string{{batchv1.JobTrackingFinalizer}}, 59 * time.Second, false},
		"somebody else, too":        {[][]string{{batchv1.JobTrackingFinalizer, "example.com/hold"}}, time.Hour, false},
		"another pod is held, too":  {[][]string{{batchv1.JobTrackingFinalizer}, {"example.com/hold"}}, time.Hour, false},
		"another pod is not held":   {[][]string{{batchv1.JobTrackingFinalizer}, nil}, time.Hour, true}, // it goes at once
		"several pods, all of them": {[][]string{{batchv1.JobTrackingFinalizer}, {batchv1.JobTrackingFinalizer}}, time.Hour, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster()
			c.lists = append(c.lists, resources("batch/v1", "jobs", "cronjobs"))
			c.namespace.DeletionTimestamp = ptr.To(metav1.NewTime(c.clock.Now().Add(-tc.terminatingFor)))
			for i, finalizers := range tc.podFinalizers {
				c.put(podsResource, fmt.Sprint("pod", i), finalizers...)
			}
			c.put(jobsResource, "job")
			c.put(configMaps, "settings")
			d := c.deleter()
			remaining(t, d.Delete(t.Context(), nsName))
			if got := c.count(jobsResource) == 0; got != tc.want {
				t.Errorf("the Job is deleted: %t, want %t", got, tc.want)
			}
			if c.count(configMaps) != 1 {
				t.Error("other content did not wait for the pods")
			}
			if !strings.Contains(c.condition(t, v1.NamespaceContentRemaining).Message, "pods. has ") {
				t.Errorf("conditions %v", c.namespace.Status.Conditions)
			}

			c.release(podsResource) // what the job controller does for pods without a Job
			if err := d.Delete(t.Context(), nsName); err != nil {
				t.Fatal(err)
			}
		})
	}
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
