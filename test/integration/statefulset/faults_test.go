// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package statefulset

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

var (
	podPath      = regexp.MustCompile(`/pods(/|\?|$)`)
	claimPath    = regexp.MustCompile(`/persistentvolumeclaims(/|\?|$)`)
	revisionPath = regexp.MustCompile(`/controllerrevisions(/|\?|$)`)
	agent        = regexp.MustCompile(serviceAccount)
)

// While a cache stands still, nothing is written twice, and nothing is stuck when it goes on.
func TestStaleCaches(t *testing.T) {
	for name, path := range map[string]*regexp.Regexp{"pods": podPath, "claims": claimPath, "revisions": revisionPath} {
		t.Run(name, func(t *testing.T) {
			env := framework.New(t)
			proxy := env.Proxy(t, "")
			start(t, env, framework.ControllersOptions{Via: proxy.Config})
			c := newCluster(t, env)
			c.create(web(1, parallel, claims))
			c.waitComplete(1)
			mark := env.AuditMark(t)
			stale := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: path}, WithholdEvents: true})
			c.patch(`{"spec":{"replicas":4,"template":{"metadata":{"annotations":{"a":"b"}}}}}`)
			env.WaitFor(t, "4 pods", timeout, func(ctx context.Context) (bool, error) {
				pods, err := c.listPods(ctx)
				return len(pods) == 4, err
			})
			c.patch(`{"metadata":{"labels":{"x":"y"}}}`) // an event that does not wait for that cache
			env.Never(t, "other than 3 or 4 pods", time.Second, func(ctx context.Context) (bool, error) {
				pods, err := c.listPods(ctx)
				return len(pods) != 4 && len(pods) != 3, err
			})
			stale.Remove()
			c.waitComplete(4)
			sent := c.sent(mark)
			for what, n := range map[string]int{"create pods 201": 4, "delete pods 200": 1, "create persistentvolumeclaims 201": 3, "create controllerrevisions.apps 201": 1} {
				if sent[what] != n {
					t.Errorf("%s: %d times, want %d", what, sent[what], n)
				}
			}
			for _, what := range []string{"create pods 409", "delete pods 404", "delete pods 409", "create controllerrevisions.apps 409", "create persistentvolumeclaims 409"} {
				if sent[what] != 0 {
					t.Errorf("%s: %d times", what, sent[what])
				}
			}
		})
	}
}

// A write whose answer is lost is neither repeated to harm nor forgotten.
func TestLostAnswers(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	rule := func(verb string, path *regexp.Regexp, drop faultproxy.Drop) faultproxy.Rule {
		return faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{verb}, Path: path, UserAgent: agent}, Drop: drop, Times: 2}
	}
	for name, faults := range map[string]faultproxy.Rule{
		"pod created":      rule("create", podPath, faultproxy.DropAfter),
		"pod not created":  rule("create", podPath, faultproxy.DropBefore),
		"claim created":    rule("create", claimPath, faultproxy.DropAfter),
		"revision created": rule("create", revisionPath, faultproxy.DropAfter),
		"pod deleted":      rule("delete", podPath, faultproxy.DropAfter),
		"status updated":   rule("update", regexp.MustCompile(`/statefulsets/.*/status`), faultproxy.DropAfter),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, env)
			fault := proxy.Add(faults)
			defer fault.Remove()
			c.create(web(2, claims))
			c.waitComplete(2)
			c.setImage("2")
			c.waitTags("web-0:2 web-1:2")
			c.waitComplete(2)
			if n := len(c.revisions()); n != 2 {
				t.Errorf("%d revisions", n)
			}
			if fault.Hits() == 0 {
				t.Error("the fault befell no request")
			}
		})
	}
}

// Another controller takes over in the middle of a roll-out.
func TestRestartInARollout(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env) // before the controllers, which must leave nothing running
	first := start(t, env, framework.ControllersOptions{})
	c.create(web(4))
	c.waitComplete(4)
	c.become(fakekubelet.NotReady, "2")
	mark := env.AuditMark(t)
	c.setImage("2")
	c.waitTags("web-0:1 web-1:1 web-2:1 web-3:2")
	first.Stop()
	c.become(fakekubelet.Ready, "2")
	start(t, env, framework.ControllersOptions{})
	c.waitTags("web-0:2 web-1:2 web-2:2 web-3:2")
	c.waitComplete(4)
	if sent := c.sent(mark); sent["create pods 201"] != 4 || sent["delete pods 200"] != 4 || sent["create controllerrevisions.apps 201"] != 1 {
		t.Errorf("sent %v", sent)
	}
}

// A set that is replaced by another of its name while the caches are late keeps its Pods to itself.
func TestReplacedSet(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	c := newCluster(t, env)
	c.create(web(2))
	c.waitComplete(2)
	late := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: podPath}, EventDelay: 500 * time.Millisecond})
	defer late.Remove()
	if err := env.Client.AppsV1().StatefulSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	// No garbage collector runs: the finalizer goes, and the owners are taken away, by hand.
	c.patch(`{"metadata":{"finalizers":null}}`)
	for i := range 2 {
		c.patchPod(fmt.Sprintf("web-%d", i), `{"metadata":{"ownerReferences":null}}`)
	}
	mark := env.AuditMark(t)
	set := c.create(web(2))
	c.waitComplete(2)
	if deleted := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Verb("delete"), audit.Resource("pods")); len(deleted) != 0 {
		t.Errorf("pods were deleted: %v", deleted)
	}
	for i := range 2 {
		if pod := c.pod(fmt.Sprintf("web-%d", i)); !metav1.IsControlledBy(pod, set) {
			t.Errorf("pod %s is not adopted: %v", pod.Name, pod.OwnerReferences)
		}
	}
}
