// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deployment

import (
	"context"
	"maps"
	"regexp"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// requests counts what the deployment-controller has sent since the mark, but for events.
func requests(t *testing.T, env *framework.Env, mark audit.Mark) map[string]int {
	t.Helper()
	return env.AuditSince(t, mark).
		Where(audit.ServiceAccount(serviceAccount), audit.Not(audit.Resource("events"))).
		Count(func(e audit.Event) string { return e.Verb + " " + e.Resource() })
}

// TestRequests: a rollout costs the writes that upstream's golden run shows and no more, and a
// Deployment at rest costs nothing.
func TestRequests(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env, newNodes(t, env))
	start(t, env, framework.ControllersOptions{})
	mark := env.AuditMark(t)
	c.create(web(3))
	c.waitComplete("web")
	c.setImage("web", "v2")
	c.waitComplete("web")
	c.waitDeployment("web", "without terminating pods", func(d *apps.Deployment) bool { return *d.Status.TerminatingReplicas == 0 })
	c.patch("web", `{"spec":{"paused":true,"replicas":5}}`)
	c.waitDeployment("web", "scaled", func(d *apps.Deployment) bool { return d.Status.AvailableReplicas == 5 })

	events := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Not(audit.Resource("events")))
	counts := events.Count(func(e audit.Event) string { return e.Verb + " " + e.Resource() })
	t.Logf("requests: %v", counts)
	if counts["create replicasets.apps"] != 2 {
		t.Errorf("%d replica sets were created:\n%s", counts["create replicasets.apps"], events)
	}
	updated := events.Where(audit.Verb("update"), audit.Resource("replicasets.apps"), audit.Code(200))
	if len(updated) != 6 { // 3→2→1→0, 1→2→3, 3→5
		t.Errorf("%d updates of replica sets:\n%s", len(updated), updated)
	}
	if others := len(events) - counts["create replicasets.apps"] - counts["update replicasets.apps"] - counts["update deployments.apps/status"]; others != 0 {
		t.Errorf("other requests:\n%s", events)
	}
	mark = env.AuditMark(t)
	c.patch("web", `{"metadata":{"labels":{"x":"y"}}}`) // wakes it, but there is nothing to write
	c.neverOtherSizes(sizes{"v1": 0, "v2": 5}, time.Second)
	if counts := requests(t, env, mark); len(counts) != 0 {
		t.Errorf("at rest: %v", counts)
	}
}

// TestRestartInARollout: another controller takes over where the first one was stopped.
func TestRestartInARollout(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env, newNodes(t, env))
	first := start(t, env, framework.ControllersOptions{})
	mark := env.AuditMark(t)
	c.create(web(4, rolling(1, 1)))
	c.waitComplete("web")
	c.pods(fakekubelet.NotReady, "v2")
	c.setImage("web", "v2")
	c.waitSizes(sizes{"v1": 3, "v2": 2})
	first.Stop()
	c.pods(fakekubelet.Ready, "v2")
	c.patch("web", `{"spec":{"replicas":6}}`)
	start(t, env, framework.ControllersOptions{})
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 6})
	if n := requests(t, env, mark)["create replicasets.apps"]; n != 2 {
		t.Errorf("%d replica sets were created", n)
	}
}

// TestStaleCaches: while a watch shows nothing new, no write is made twice and none on old
// knowledge, and when it goes on so does the rollout.
func TestStaleCaches(t *testing.T) {
	cases := map[string]string{
		"replica sets": `/replicasets`,
		"deployments":  `/deployments`,
	}
	for name, path := range cases {
		t.Run(name, func(t *testing.T) {
			env := framework.New(t)
			c := newCluster(t, env, newNodes(t, env))
			proxy := env.Proxy(t, "")
			ours := env.Controllers(t, framework.ControllersOptions{Via: proxy.Config})
			runDeployments(t, ours)
			runReplicaSets(t, env.Controllers(t, framework.ControllersOptions{}))
			c.create(web(3, rolling(1, 0)))
			c.waitComplete("web")

			mark := env.AuditMark(t)
			c.setImage("web", "v2")
			c.env.WaitFor(t, "the second replica set", timeout, func(ctx context.Context) (bool, error) {
				got, err := c.sizes(ctx)
				return len(got) == 2, err
			})
			stale := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}, Path: regexp.MustCompile(path)}, WithholdEvents: true})
			env.Never(t, "more pods are wanted than the surge allows", 3*time.Second, func(ctx context.Context) (bool, error) {
				got, err := c.sizes(ctx)
				total := int32(0)
				for n := range maps.Values(got) {
					total += n
				}
				return total > 4 || len(got) > 2, err
			})
			quiet := env.AuditMark(t)
			env.Never(t, "", time.Second, func(context.Context) (bool, error) { return false, nil })
			if counts := requests(t, env, quiet); len(counts) != 0 {
				t.Errorf("requests on stale caches: %v", counts)
			}
			stale.Remove()
			c.waitComplete("web")
			c.waitSizes(sizes{"v1": 0, "v2": 3})
			if n := requests(t, env, mark)["create replicasets.apps"]; n != 1 {
				t.Errorf("%d replica sets were created", n)
			}
		})
	}
}

// TestAnswersLost: the API server carries writes out, but the controller does not learn of it.
func TestAnswersLost(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env, newNodes(t, env))
	proxy := env.Proxy(t, "")
	runDeployments(t, env.Controllers(t, framework.ControllersOptions{Via: proxy.Config}))
	runReplicaSets(t, env.Controllers(t, framework.ControllersOptions{}))
	for _, verb := range []string{"create", "update"} {
		proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{verb}, Path: regexp.MustCompile(`/apis/apps/v1/.*`)}, Times: 2, Drop: faultproxy.DropAfter})
	}
	c.create(web(2, rolling(1, 0)))
	c.waitComplete("web")
	c.setImage("web", "v2")
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 2})
	if d := c.get("web"); d.Status.CollisionCount != nil {
		t.Errorf("its own replica set was taken for a collision: %d", *d.Status.CollisionCount)
	}
	list, err := env.Client.AppsV1().ReplicaSets(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%d replica sets, %v", len(list.Items), err)
	}
}

// TestWatchesCut: events that come while a watch is down are not lost.
func TestWatchesCut(t *testing.T) {
	env := framework.New(t)
	c := newCluster(t, env, newNodes(t, env))
	proxy := env.Proxy(t, "")
	runDeployments(t, env.Controllers(t, framework.ControllersOptions{Via: proxy.Config}))
	runReplicaSets(t, env.Controllers(t, framework.ControllersOptions{}))
	c.create(web(2))
	c.waitComplete("web")
	for _, image := range []string{"v2", "v3"} {
		proxy.CutWatches(faultproxy.Match{})
		c.setImage("web", image)
		c.waitComplete("web")
	}
}
