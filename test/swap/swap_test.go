// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package swap

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/scenarios"
)

func TestMain(m *testing.M) {
	klog.SetOutput(os.Stderr)
	os.Exit(m.Run())
}

// population are scenarios that leave something behind which a manager might touch.
func population() []string {
	return []string{
		"deployment-rollout", "deployment-undo", "deployment-stuck", "deployment-paused", "replicaset-adopt", "rc-scale",
		"gc-two-owners", "gc-orphan", "job-complete", "job-indexed", "job-backoff-limit", "statefulset-rollout",
		"statefulset-partition", "daemonset-rollout", "endpoints-create", "endpoints-notready", "endpoints-mirrored",
		"pdb-max-unavailable", "quota-counts", "token-secret", "cronjob-suspended",
	}
}

// watchFor is how long a new manager is watched after it has shown that it works: its first look at everything takes less.
const watchFor = 5 * time.Second

type exchange struct {
	*scenarios.Stage
	controllers []string
	manager     *cluster.Manager
	// settled are the namespaces that nobody may write to.
	settled []string
}

func TestSwap(t *testing.T) {
	ctx := t.Context()
	upstream, err := cluster.FindUpstream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := cluster.BuildOurs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e := newExchange(t, ours)
	e.start(t, upstream)
	e.populate(t, "u")
	for i, next := range []struct{ name, path string }{{"ours", ours}, {"upstream's", upstream}, {"ours again", ours}} {
		mark := e.swap(t, next.path)
		if err := e.untouched(ctx, mark); err != nil {
			t.Errorf("after the exchange for %s: %v", next.name, err)
		}
		if i == 0 {
			e.populate(t, "o")
		}
	}

	t.Run("a planted bug", func(t *testing.T) {
		// A status that is not so is what a manager with another idea of it would find.
		mark, err := e.Audit.Mark(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Client.AppsV1().Deployments("u-deployment-rollout").Patch(ctx, "web", types.MergePatchType, []byte(`{"status":{"replicas":99}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
		err = e.untouched(ctx, mark)
		if err == nil || !strings.Contains(err.Error(), "deployments.apps/status") {
			t.Errorf("a manager that rewrites a status is told as %v", err)
		}
	})
}

func newExchange(t *testing.T, ours string) *exchange {
	t.Helper()
	ctx := t.Context()
	controllers, err := cluster.DefaultControllers(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(ctx, cluster.Options{Audit: cluster.AuditExact})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the control plane: %v", err)
		}
	})
	e := &exchange{controllers: controllers}
	if e.Stage, err = scenarios.NewStage(ctx, c); err != nil {
		t.Fatal(err)
	}
	e.Timeout = 2 * time.Minute
	return e
}

// start starts a manager and waits until it leads.
func (e *exchange) start(t *testing.T, path string) {
	t.Helper()
	args := append([]string{"--controllers=" + strings.Join(e.controllers, ","), "--kube-api-qps=500", "--kube-api-burst=1000"}, cluster.QuickElection()...)
	before, err := e.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e.manager, err = e.StartManager(t.Context(), cluster.ManagerOptions{Path: path, Args: args}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.WaitForLeader(t.Context(), time.Minute, before); err != nil {
		t.Fatal(err)
	}
}

// populate plays the population's scenarios, as many as the managers can, and remembers their namespaces.
func (e *exchange) populate(t *testing.T, prefix string) {
	t.Helper()
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(6)
	for _, s := range all {
		lacks := slices.ContainsFunc(s.Controllers, func(name string) bool { return !slices.Contains(e.controllers, name) })
		if lacks || !slices.Contains(population(), s.Name) {
			continue
		}
		namespace := prefix + "-" + s.Name
		e.settled = append(e.settled, namespace)
		group.Go(func() error {
			err := e.Play(t.Context(), s, namespace, func(context.Context, string) error { return nil })
			if err != nil {
				return fmt.Errorf("%s: %w", namespace, err)
			}
			return e.rest(t.Context(), namespace)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(e.settled) < 5 {
		t.Fatalf("there are %d settled namespaces, too few to prove anything", len(e.settled))
	}
}

// rest waits until nothing has changed in the namespace for two seconds.
func (e *exchange) rest(ctx context.Context, namespace string) error {
	version, since := "", time.Now()
	return cluster.WaitFor(ctx, "rest in "+namespace, time.Minute, func(ctx context.Context) (bool, error) {
		shot, err := e.Snapshot(ctx, namespace)
		if err != nil {
			return false, err
		}
		if shot.Version != version {
			version, since = shot.Version, time.Now()
		}
		select { // a look costs the API server some thirty lists
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
		return time.Since(since) > 2*time.Second, nil
	})
}

// swap stops the manager, starts another one and waits until it works. It returns the place in the audit log where the
// new one's time began.
func (e *exchange) swap(t *testing.T, path string) audit.Mark {
	t.Helper()
	if err := e.manager.Terminate(); err != nil {
		t.Fatal(err)
	}
	mark, err := e.Audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.start(t, path)
	return mark
}

// untouched waits for the manager to work, watches it for a while and returns an error unless it has left alone what
// was settled.
func (e *exchange) untouched(ctx context.Context, mark audit.Mark) error {
	probe := fmt.Sprintf("probe-%d", mark)
	if err := e.Cluster.Namespace(ctx, probe); err != nil {
		return err
	}
	err := cluster.WaitFor(ctx, "the new manager's work", 2*time.Minute, func(ctx context.Context) (bool, error) {
		_, err := e.Client.CoreV1().ConfigMaps(probe).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, err
	})
	if err != nil {
		return err
	}
	time.Sleep(watchFor) // nothing tells that a manager has nothing to do
	events, err := e.Audit.Since(ctx, mark)
	if err != nil {
		return err
	}
	touched := events.Where(audit.Writes(), func(ev audit.Event) bool {
		return ev.ObjectRef != nil && ev.ObjectRef.Resource != "events" && slices.Contains(e.settled, ev.ObjectRef.Namespace) &&
			strings.HasPrefix(ev.User.Username, "system:serviceaccount:kube-system:")
	})
	if len(touched) == 0 {
		return nil
	}
	var lines []string
	for _, ev := range touched {
		lines = append(lines, ev.String())
	}
	return fmt.Errorf("it has written to what was settled:\n%s", strings.Join(lines, "\n"))
}
