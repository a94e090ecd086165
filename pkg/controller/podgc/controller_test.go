// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kcm-dev/kcm/pkg/controller/podgc/metrics"
)

const (
	patchAndDelete = "delete pods a, patch pods/status a"
	askAndDelete   = "delete pods a, get nodes gone, patch pods/status a"
)

func TestQuarantine(t *testing.T) {
	running := newPod("a", "gone", v1.PodRunning)
	gone := newNode("gone", v1.ConditionTrue)
	tests := []struct {
		name   string
		cached []runtime.Object
		served []runtime.Object
		during func(c *cluster) // between the first pass and the end of the quarantine
		want   string           // requests at the end of the quarantine
	}{
		{"node in the cache", []runtime.Object{gone, running}, nil, nil, ""},
		{"node on the API server only", []runtime.Object{running}, []runtime.Object{gone}, nil, "get nodes gone"},
		{"no nodes", []runtime.Object{running}, nil, nil, askAndDelete},
		{"finished pods of no node", []runtime.Object{newPod("a", "gone", v1.PodFailed), newPod("b", "gone", v1.PodSucceeded)}, nil, nil, "delete pods a, delete pods b, get nodes gone"},
		{"wrong nodes", []runtime.Object{newNode("other", v1.ConditionTrue), running}, nil, nil, askAndDelete},
		{"some nodes missing", []runtime.Object{newNode("other", v1.ConditionTrue), newPod("b", "other", v1.PodRunning), running}, nil, nil, askAndDelete},
		{"node comes to the API server", []runtime.Object{running}, nil, func(c *cluster) { c.serve(gone) }, "get nodes gone"},
		{"node comes to the cache", []runtime.Object{running}, nil, func(c *cluster) { c.cache(gone) }, ""},
		{"node leaves the API server", []runtime.Object{running}, []runtime.Object{gone}, func(c *cluster) {
			_ = c.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("nodes"), "", "gone")
		}, askAndDelete},
		{"node leaves the cache and stays on the API server", []runtime.Object{running, gone}, nil, func(c *cluster) { _ = c.nodeCache.Delete(gone) }, ""},
		{"node was there for a while", []runtime.Object{running}, nil, func(c *cluster) {
			c.cache(gone)
			c.wait(25 * time.Second) // a pass sees it
			_ = c.nodeCache.Delete(gone)
		}, askAndDelete},
		{"pod goes by itself", []runtime.Object{running}, nil, func(c *cluster) { _ = c.podCache.Delete(running) }, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			run(t, 0, tc.cached, func(c *cluster) {
				for _, object := range tc.served {
					c.serve(object)
				}
				start := time.Now()
				if tc.during != nil {
					tc.during(c)
				}
				c.wait(39999*time.Millisecond - time.Since(start))
				c.want("in quarantine", "")
				c.wait(time.Millisecond)
				c.want("after the quarantine", tc.want)
			})
		})
	}
}

// A node that stays on the API server is asked for once in a quarantine, not once a pass.
func TestLateCache(t *testing.T) {
	run(t, 0, []runtime.Object{newPod("a", "gone", v1.PodRunning)}, func(c *cluster) {
		c.serve(newNode("gone", v1.ConditionTrue))
		c.wait(121 * time.Second)
		c.want("three quarantines", "get nodes gone, get nodes gone, get nodes gone")
	})
}

// A node that cannot be asked for keeps its Pods, and is asked for again before the next pass.
func TestNodeCannotBeAskedFor(t *testing.T) {
	run(t, 0, []runtime.Object{newPod("a", "gone", v1.PodRunning)}, func(c *cluster) {
		fails := 2
		c.react("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, apierrors.NewInternalError(errors.New("down"))
		})
		c.wait(40 * time.Second)
		c.want("first try", "get nodes gone")
		c.wait(time.Second)
		c.want("later tries", "delete pods a, get nodes gone, get nodes gone, patch pods/status a")
	})
}

func TestUnscheduledTerminating(t *testing.T) {
	run(t, 0, []runtime.Object{
		newPod("a", "", v1.PodPending, deleting), newPod("b", "", v1.PodSucceeded, deleting), newPod("c", "", v1.PodPending),
	}, func(c *cluster) {
		c.want("first pass", "delete pods a, delete pods b, patch pods/status a")
		c.cache(newPod("d", "", v1.PodFailed, deleting))
		c.wait(19 * time.Second)
		c.want("before the second pass", "")
		c.wait(time.Second)
		c.want("second pass", "delete pods d")
	})
}

func TestTerminatedIsDeletedOldestFirst(t *testing.T) {
	run(t, 1, []runtime.Object{
		newNode("n", v1.ConditionTrue),
		newPod("a", "n", v1.PodFailed), newPod("b", "n", v1.PodSucceeded, created(1)), newPod("c", "n", "", created(2)),
	}, func(c *cluster) {
		c.want("first pass", "delete pods a, delete pods b")
		c.wait(time.Minute)
		c.want("later passes", "")
	})
	run(t, 1, []runtime.Object{newNode("n", v1.ConditionTrue), newPod("a", "n", ""), newPod("b", "n", "", created(1))}, func(c *cluster) {
		c.want("no phase", patchAndDelete)
	})
}

func TestOutOfService(t *testing.T) {
	down := newNode("n", v1.ConditionFalse, v1.TaintNodeOutOfService)
	pod := newPod("a", "n", v1.PodRunning, deleting)
	tests := map[string]struct {
		cached []runtime.Object
		live   *v1.Node
		want   string
	}{
		"out of service":           {[]runtime.Object{down, pod, newPod("b", "n", v1.PodRunning)}, nil, "delete pods a, get nodes n, patch pods/status a"},
		"finished":                 {[]runtime.Object{down, newPod("a", "n", v1.PodSucceeded, deleting)}, nil, "delete pods a, get nodes n"},
		"ready by now":             {[]runtime.Object{down, pod}, newNode("n", v1.ConditionTrue, v1.TaintNodeOutOfService), "get nodes n"},
		"the taint is gone by now": {[]runtime.Object{down, pod}, newNode("n", v1.ConditionFalse), "get nodes n"},
		"not ready":                {[]runtime.Object{newNode("n", v1.ConditionFalse), pod}, nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 0, nil, func(c *cluster) {
				for _, object := range tc.cached {
					c.cache(object)
					c.serve(object)
				}
				if tc.live != nil {
					if err := c.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), tc.live, ""); err != nil {
						t.Fatal(err)
					}
				}
				c.wait(20 * time.Second)
				c.want("second pass", tc.want)
			})
		})
	}
	t.Run("gone by now", func(t *testing.T) {
		run(t, 0, nil, func(c *cluster) {
			c.cache(down)
			c.cache(pod)
			c.wait(20 * time.Second)
			c.want("second pass", "get nodes n")
		})
	})
}

// sent returns the patch and the options of the deletion of the only Pod.
func (c *cluster) sent() (patch map[string]any, options metav1.DeleteOptions) {
	c.t.Helper()
	order := ""
	for _, action := range c.client.Actions() {
		switch a := action.(type) {
		case clienttesting.PatchAction:
			order += "patch "
			if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
				c.t.Fatal(err)
			}
		case clienttesting.DeleteAction:
			order += "delete "
			options = a.GetDeleteOptions()
		}
	}
	if patch != nil && order != "patch delete " {
		c.t.Errorf("sent %s; want the patch first", order)
	}
	return patch, options
}

// An orphan has its condition before it goes.
func TestOrphanFailsBeforeItIsDeleted(t *testing.T) {
	old := metav1.NewTime(epoch)
	tests := map[string]struct {
		pod  *v1.Pod
		want map[string]any
	}{
		"new condition": {
			newPod("a", "gone", v1.PodRunning),
			map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
				"observedGeneration": 3.0, "lastProbeTime": nil, "lastTransitionTime": "2000-01-01T00:00:40Z"},
		},
		"it has one": {
			newPod("a", "gone", v1.PodPending, func(p *v1.Pod) {
				p.Status.Conditions = []v1.PodCondition{
					{Type: v1.PodReady, Status: v1.ConditionTrue},
					{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: old},
				}
			}),
			map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
				"observedGeneration": 3.0, "lastProbeTime": nil, "lastTransitionTime": "2026-01-01T00:00:00Z"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 0, []runtime.Object{tc.pod}, func(c *cluster) {
				c.wait(40 * time.Second)
				patch, options := c.sent()
				want := map[string]any{
					"metadata": map[string]any{"uid": "uid-a", "resourceVersion": "7"},
					"status":   map[string]any{"phase": "Failed", "observedGeneration": 3.0, "conditions": []any{tc.want}},
				}
				if diff := cmp.Diff(want, patch); diff != "" {
					t.Errorf("patch (-want +got):\n%s", diff)
				}
				if *options.GracePeriodSeconds != 0 || string(*options.Preconditions.UID) != "uid-a" {
					t.Errorf("deleted with %+v", options)
				}
			})
		})
	}
}

func TestOtherReasonsGiveNoCondition(t *testing.T) {
	run(t, 0, []runtime.Object{newPod("a", "", v1.PodPending, deleting)}, func(c *cluster) {
		patch, options := c.sent()
		want := map[string]any{
			"metadata": map[string]any{"uid": "uid-a", "resourceVersion": "7"},
			"status":   map[string]any{"phase": "Failed", "observedGeneration": 3.0},
		}
		if diff := cmp.Diff(want, patch); diff != "" {
			t.Errorf("patch (-want +got):\n%s", diff)
		}
		if *options.GracePeriodSeconds != 0 || string(*options.Preconditions.UID) != "uid-a" {
			t.Errorf("deleted with %+v", options)
		}
	})
}

// Before a Pod is deleted its reason is looked at again: it waits in a queue, and retries.
func TestReasonIsCheckedAgain(t *testing.T) {
	tests := map[string]func(c *cluster, pod *v1.Pod){
		"the pod is gone": func(c *cluster, pod *v1.Pod) { _ = c.podCache.Delete(pod) },
		"another has its name": func(c *cluster, _ *v1.Pod) {
			c.cache(newPod("a", "", v1.PodPending, deleting, func(p *v1.Pod) { p.UID = "other" }))
		},
		"it is on a node":       func(c *cluster, _ *v1.Pod) { c.cache(newPod("a", "n", v1.PodPending, deleting)) },
		"it was force-deleted":  func(c *cluster, _ *v1.Pod) { c.cache(newPod("a", "", v1.PodFailed, forceDeleted, held)) },
		"it is not in deletion": func(c *cluster, _ *v1.Pod) { c.cache(newPod("a", "", v1.PodPending)) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			pod := newPod("a", "", v1.PodPending, deleting)
			run(t, 0, []runtime.Object{newNode("n", v1.ConditionTrue)}, func(c *cluster) {
				c.cache(pod)
				c.react("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewInternalError(errors.New("down"))
				})
				c.gc.deletions.Add(newVictim(pod, metrics.PodGCReasonTerminatingUnscheduled))
				c.wait(0)
				c.want("first try", "patch pods/status a")
				change(c, pod)
				c.wait(time.Second)
				c.want("after the change", "")
			})
		})
	}
	t.Run("the node of an orphan is back", func(t *testing.T) {
		run(t, 0, []runtime.Object{newNode("n", v1.ConditionTrue)}, func(c *cluster) {
			pod := newPod("a", "n", v1.PodRunning)
			c.cache(pod)
			c.gc.deletions.Add(newVictim(pod, metrics.PodGCReasonOrphaned))
			c.wait(0)
			c.want("at once", "")
		})
	})
}

func TestFailures(t *testing.T) {
	counted := func(t *testing.T, namespace string) (total, failed float64) {
		t.Helper()
		labels := []string{namespace, metrics.PodGCReasonTerminatingUnscheduled}
		total, err := testutil.GetCounterMetricValue(metrics.DeletingPodsTotal.WithLabelValues(labels...))
		if err != nil {
			t.Fatal(err)
		}
		failed, err = testutil.GetCounterMetricValue(metrics.DeletingPodsErrorTotal.WithLabelValues(labels...))
		if err != nil {
			t.Fatal(err)
		}
		return total, failed
	}
	notFound := apierrors.NewNotFound(v1.Resource("pods"), "a")
	conflict := apierrors.NewConflict(v1.Resource("pods"), "a", errors.New("changed"))
	internal := apierrors.NewInternalError(errors.New("down"))
	tests := []struct {
		name, verb    string
		err           error
		then          string // requests in the second after
		total, failed float64
	}{
		{"patch fails", "patch", internal, patchAndDelete, 2, 1},
		{"delete fails", "delete", internal, patchAndDelete, 2, 1},
		{"gone before the patch", "patch", notFound, "", 0, 0},
		{"gone before the deletion", "delete", notFound, "", 0, 0},
		{"the cache is late", "patch", conflict, patchAndDelete, 1, 0},
		{"another has its name", "delete", conflict, patchAndDelete, 1, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			namespace := strings.ReplaceAll(tc.name, " ", "-")
			run(t, 0, nil, func(c *cluster) {
				pod := newPod("a", "", v1.PodPending, deleting, func(p *v1.Pod) { p.Namespace = namespace })
				c.cache(pod)
				c.serve(pod)
				totalBefore, failedBefore := counted(t, namespace) // of an earlier run in this process
				failures := 1
				c.react(tc.verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					failures--
					return failures >= 0, nil, tc.err
				})
				c.wait(20 * time.Second)
				c.requests()
				c.wait(time.Second)
				c.want("after the failure", tc.then)
				if total, failed := counted(t, namespace); total-totalBefore != tc.total || failed-failedBefore != tc.failed {
					t.Errorf("%v pods counted, %v failures; want %v, %v", total, failed, tc.total, tc.failed)
				}
			})
		})
	}
}

// A Pod that cannot be deleted is tried again, at the latest with each pass, and holds up
// no other.
func TestOneFailureHoldsUpNoOther(t *testing.T) {
	run(t, 0, nil, func(c *cluster) {
		refused := 0
		c.react("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.DeleteAction).GetName() != "a" {
				return false, nil, nil
			}
			refused++
			return true, nil, apierrors.NewGenericServerResponse(http.StatusForbidden, "delete", v1.Resource("pods"), "a", "a webhook says no", 0, false)
		})
		for _, name := range []string{"a", "b", "c"} {
			c.cache(newPod(name, "", v1.PodFailed, deleting))
			c.serve(newPod(name, "", v1.PodFailed, deleting))
		}
		c.wait(10 * time.Minute)
		if left := c.podCache.ListKeys(); len(left) != 1 || left[0] != "default/a" {
			t.Errorf("left: %v, want a", left)
		}
		if refused < 25 || refused > 70 {
			t.Errorf("tried %d times in ten minutes, want about every 20 s", refused)
		}
	})
}

func TestMetricsHaveUpstreamsNames(t *testing.T) {
	metrics.Register()
	metrics.Register() // again does nothing
	for name, want := range map[string]string{
		metrics.DeletingPodsTotal.FQName():      "pod_gc_collector_force_delete_pods_total",
		metrics.DeletingPodsErrorTotal.FQName(): "pod_gc_collector_force_delete_pod_errors_total",
	} {
		if name != want {
			t.Errorf("metric %s, want %s", name, want)
		}
	}
}

func TestWorkers(t *testing.T) {
	run(t, 0, nil, func(c *cluster) {
		queues := map[string]bool{}
		for _, w := range c.gc.Workers() {
			record := w.Record()
			queues[record.Queue] = true
			if record.Workers == 0 || record.Controller != "pod-garbage-collector-controller" || w.Check(time.Now()) != nil {
				t.Errorf("worker %+v, %v", record, w.Check(time.Now()))
			}
		}
		if !queues["orphaned_pods_nodes"] || len(queues) != 2 {
			t.Errorf("queues %v", queues)
		}
	})
}
