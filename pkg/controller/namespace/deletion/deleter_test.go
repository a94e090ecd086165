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
