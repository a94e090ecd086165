// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicaset

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/kcm-dev/kcm/pkg/features"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

func quantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

func byController(ns string) audit.Filter {
	return func(e audit.Event) bool { return audit.ServiceAccount(serviceAccount)(e) && audit.Namespace(ns)(e) }
}

var (
	podPath = regexp.MustCompile(`/pods(/|\?|$)`)
	agent   = regexp.MustCompile(serviceAccount)
)

// A creation whose answer is lost is neither repeated nor forgotten.
func TestLostAnswers(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	for _, tc := range []struct {
		name string
		rule faultproxy.Rule
	}{
		{"creation carried out", faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"create"}, Path: podPath, UserAgent: agent}, Drop: faultproxy.DropAfter, Times: 3}},
		{"creation lost on the way", faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"create"}, Path: podPath, UserAgent: agent}, Drop: faultproxy.DropBefore, Times: 3}},
		{"connection cut", faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"create"}, Path: podPath, UserAgent: agent}, Drop: faultproxy.DropAfter, CutConnection: true, Times: 2}},
		{"server error", faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"create"}, Path: podPath, UserAgent: agent}, Status: 500, Times: 2}},
		{"server time-out", faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"create"}, Path: podPath, UserAgent: agent}, Status: 504, Times: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, env)
			// The cache is late, too: it does not give away what was created.
			late := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: podPath}, EventDelay: 500 * time.Millisecond})
			rule := proxy.Add(tc.rule)
			set := c.create(web(5))
			c.env.Never(t, "more than 5 pods", 4*time.Second, func(ctx context.Context) (bool, error) {
				pods, err := c.listPods(ctx)
				return len(pods) > 5, err
			})
			c.waitActive(set, 5)
			if rule.Hits() == 0 {
				t.Error("the fault befell no request")
			}
			rule.Remove()
			late.Remove()
			c.waitSet("web", "5 replicas", hasReplicas(5))
		})
	}
	t.Run("deletion carried out", func(t *testing.T) {
		c := newCluster(t, env)
		set := c.create(web(5))
		c.waitActive(set, 5)
		late := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: podPath}, EventDelay: 500 * time.Millisecond})
		defer late.Remove()
		rule := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"delete"}, Path: podPath, UserAgent: agent}, Drop: faultproxy.DropAfter, Times: 2})
		defer rule.Remove()
		c.scale("web", 3)
		c.waitActive(set, 3)
		c.neverOther(set, 3, 4*time.Second)
	})
}

// While the cache of Pods stands still, what was written is not written again; and
// nothing is stuck when it goes on.
func TestStaleCache(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	c := newCluster(t, env)
	set := c.create(web(3))
	c.waitActive(set, 3)
	c.waitSet("web", "3 replicas", hasReplicas(3))

	stale := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: podPath}, WithholdEvents: true})
	c.scale("web", 5)
	c.waitActive(set, 5)
	c.scale("web", 6) // an event that does not wait for the Pods
	c.neverOther(set, 5, 2*time.Second)
	stale.Remove()
	c.waitActive(set, 6)

	// Deletions give no version back, and are remembered otherwise.
	c.waitSet("web", "6 replicas", hasReplicas(6))
	stale = proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: podPath}, WithholdEvents: true})
	c.scale("web", 4)
	c.waitActive(set, 4)
	c.scale("web", 3)
	c.waitActive(set, 3)
	c.scale("web", 5) // what was deleted counts no more, although the cache still shows it
	c.waitActive(set, 5)
	stale.Remove()
	c.neverOther(set, 5, time.Second)
	c.waitSet("web", "5 replicas", hasReplicas(5))

	// Watches are cut: the informers list again or go on.
	proxy.CutWatches(faultproxy.Match{})
	c.scale("web", 4)
	c.waitActive(set, 4)
	c.waitSet("web", "4 replicas", hasReplicas(4))
}

// A manager that starts finds what the one before it left, and does nothing twice.
func TestRestart(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env)
	for i := range 4 {
		controllers := start(t, env, framework.ControllersOptions{})
		name := fmt.Sprintf("web-%d", i)
		set := c.create(web(20, named(name)))
		c.env.WaitFor(t, "the first pods", timeout, func(ctx context.Context) (bool, error) {
			pods, err := c.listPods(ctx)
			return len(active(pods, set)) >= 1+3*i, err
		})
		controllers.Stop()
		controllers = start(t, env, framework.ControllersOptions{})
		c.waitActive(set, 20)
		c.neverOther(set, 20, 500*time.Millisecond)
		controllers.Stop()
		if err := env.Client.AppsV1().ReplicaSets(c.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTerminatingReplicasGateOff(t *testing.T) {
	env := framework.New(t)
	features.Enabled(features.DeploymentReplicaSetTerminatingReplicas) // registers it
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DeploymentReplicaSetTerminatingReplicas, false)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	set := c.create(web(2, func(set *apps.ReplicaSet) { set.Spec.Template.Finalizers = []string{finalizer} }))
	names := c.waitActive(set, 2)
	c.scale("web", 1)
	c.waitActive(set, 1)
	got := c.waitSet("web", "1 replica", hasReplicas(1))
	if got.Status.TerminatingReplicas != nil {
		t.Errorf("terminatingReplicas is %d with the gate off", *got.Status.TerminatingReplicas)
	}
	for _, name := range names {
		c.patchPod(name, `{"metadata":{"finalizers":null}}`)
	}
}

// Requests of the operations that the golden run has, which for upstream were in sum: 12
// creations and 6 deletions of Pods, one of each with an event; 48 status updates; one
// adoption with one read.
func TestRequests(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	count := func(what string, operate func(), want map[string]int) {
		t.Helper()
		mark := env.AuditMark(t)
		operate()
		time.Sleep(500 * time.Millisecond) // for what should not come
		got := env.AuditSince(t, mark).Where(byController(c.ns)).Count(func(e audit.Event) string {
			return e.Verb + " " + e.Resource()
		})
		for request, n := range got {
			if n > want[request] {
				t.Errorf("%s: %d times %s, want at most %d", what, n, request, want[request])
			}
		}
	}
	set := web(3)
	count("creating a set", func() {
		set = c.create(set)
		c.waitActive(set, 3)
		c.waitSet("web", "3 replicas", hasReplicas(3))
	}, map[string]int{"create pods": 3, "create events": 3, "update replicasets.apps/status": 2})
	count("pods that get ready", func() {
		for _, name := range c.waitActive(set, 3) {
			c.setStatus(name, readyStatus(time.Now()))
		}
		c.waitSet("web", "3 ready replicas", func(set *apps.ReplicaSet) bool { return set.Status.ReadyReplicas == 3 })
	}, map[string]int{"update replicasets.apps/status": 3})
	count("scaling down", func() {
		c.scale("web", 1)
		c.waitActive(set, 1)
		c.waitSet("web", "1 replica", hasReplicas(1))
	}, map[string]int{"delete pods": 2, "create events": 2, "update replicasets.apps/status": 4})
	count("adoption", func() {
		c.createPod("orphan", set)
		c.env.WaitFor(t, "the orphan to be adopted and deleted", timeout, func(ctx context.Context) (bool, error) {
			pods, err := c.listPods(ctx)
			return len(pods) == 1 && metav1.IsControlledBy(&pods[0], set), err
		})
	}, map[string]int{"get replicasets.apps": 1, "patch pods": 1, "delete pods": 1, "create events": 1, "update replicasets.apps/status": 3})
	count("nothing", func() { c.patchSet("web", `{"metadata":{"annotations":{"a":"b"}}}`) }, nil)
}
