// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package chaos

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// allVariable makes the tests play all scenarios, not those of quick.
const allVariable = "KCM_CHAOS_ALL"

func TestMain(m *testing.M) {
	flag.Parse()
	// They wait more than they work.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	klog.SetOutput(os.Stderr)
	os.Exit(m.Run())
}

// theatre is a stage whose manager works behind a fault proxy.
type theatre struct {
	*scenarios.Stage
	proxy   *faultproxy.Proxy
	manager *cluster.Manager
	// binary and controllers of the managers.
	binary      string
	controllers []string
}

// newTheatre starts a control plane and, unless without, a manager, until the end of the test.
func newTheatre(t *testing.T, before ...faultproxy.Rule) *theatre {
	t.Helper()
	ctx := t.Context()
	binary, err := cluster.BuildOurs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	controllers, err := cluster.DefaultControllers(ctx, binary)
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
	th := &theatre{binary: binary, controllers: controllers}
	if th.Stage, err = scenarios.NewStage(ctx, c); err != nil {
		t.Fatal(err)
	}
	th.Timeout = 2 * time.Minute
	if th.proxy, err = c.Proxy("chaos"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(th.proxy.Close)
	for _, rule := range before {
		th.proxy.Add(rule)
	}
	th.manager = th.start(t, th.proxy)
	return th
}

// start starts a manager and waits until somebody leads.
func (th *theatre) start(t *testing.T, via *faultproxy.Proxy) *cluster.Manager {
	t.Helper()
	args := append([]string{"--controllers=" + strings.Join(th.controllers, ",")}, cluster.QuickElection()...)
	m, err := th.StartManager(t.Context(), cluster.ManagerOptions{Path: th.binary, Via: via, Args: args, MayEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := th.WaitForLeader(t.Context(), time.Minute); err != nil {
		t.Fatalf("%v; the manager's log:\n%s", err, m.Log())
	}
	return m
}

// restart starts the killed manager again, and takes the lease from the dead so that it need not wait.
func (th *theatre) restart(ctx context.Context) error {
	if err := th.DropLease(ctx); err != nil {
		return err
	}
	if err := th.manager.Restart(ctx); err != nil {
		return err
	}
	_, err := th.WaitForLeader(ctx, time.Minute)
	return err
}

// played is what a scenario leaves.
type played struct {
	// objects by checkpoint.
	objects map[string]string
	podWrites
}

// play plays a scenario to its end; at each checkpoint the objects must rest. want, if not nil, is what they must become.
func (th *theatre) play(ctx context.Context, s scenarios.Scenario, namespace string, want *played) (*played, error) {
	mark, err := th.Audit.Mark(ctx)
	if err != nil {
		return nil, err
	}
	got := &played{objects: map[string]string{}}
	err = th.Play(ctx, s, namespace, func(ctx context.Context, checkpoint string) error {
		objects, err := th.settled(ctx, namespace, want, checkpoint)
		got.objects[checkpoint] = objects
		return err
	})
	if err != nil {
		return got, err
	}
	got.podWrites, err = th.podWrites(ctx, mark, namespace)
	return got, err
}

// podWrites are numbers of pods.
type podWrites struct {
	// created and deleted by managers.
	created, deleted int
	// unanswered creations: their manager had gone before the API server was done, which may have made the pod or not.
	unanswered int
}

// podWrites counts the pods that managers have created and deleted in a namespace since the mark.
func (th *theatre) podWrites(ctx context.Context, mark audit.Mark, namespace string) (podWrites, error) {
	events, err := th.Audit.Since(ctx, mark)
	if err != nil {
		return podWrites{}, err
	}
	pods := events.Where(audit.Namespace(namespace), audit.Resource("pods"), func(e audit.Event) bool {
		return strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:")
	})
	done := pods.Where(audit.Code(200, 201, 202))
	unanswered := pods.Where(audit.Verb("create"), func(e audit.Event) bool {
		const closedRequest = 499 // the client has closed the request
		return e.Code() == 0 || e.Code() == closedRequest || e.Code() >= http.StatusInternalServerError
	})
	return podWrites{len(done.Where(audit.Verb("create"))), len(done.Where(audit.Verb("delete"))), len(unanswered)}, nil
}

// settled returns the objects once two looks show the same, and what is wanted if something is.
func (th *theatre) settled(ctx context.Context, namespace string, want *played, checkpoint string) (string, error) {
	version, objects := "", ""
	err := cluster.WaitFor(ctx, "rest", 90*time.Second, func(ctx context.Context) (bool, error) {
		shot, err := th.Snapshot(ctx, namespace)
		if err != nil {
			return false, err
		}
		rests := shot.Version == version
		version, objects = shot.Version, shot.Objects
		if rests && (want == nil || want.objects[checkpoint] == objects) {
			return true, nil
		}
		select { // a look costs the API server some thirty lists
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
		}
		return false, nil
	})
	if err != nil && want != nil {
		err = fmt.Errorf("checkpoint %s differs from the undisturbed run (-): %w\n%s", checkpoint, err, scenarios.Diff(want.objects[checkpoint], objects))
	}
	return objects, err
}

// reference plays a scenario undisturbed.
func (th *theatre) reference(t *testing.T, s scenarios.Scenario) *played {
	t.Helper()
	got, err := th.play(t.Context(), s, s.Name+"-ref", nil)
	if err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	return got
}

// check compares the numbers of pods; lost is how many answers were lost.
func (p *played) check(want *played, lost int) error {
	if p.created+p.unanswered < want.created || p.created > want.created+lost {
		return fmt.Errorf("managers have created %d pods (%d creations unanswered), undisturbed %d", p.created, p.unanswered, want.created)
	}
	if p.deleted > want.deleted+lost {
		return fmt.Errorf("managers have deleted %d pods, undisturbed %d", p.deleted, want.deleted)
	}
	return nil
}

// ownPods is how many pods the scenario makes itself: a controller that does not see them yet makes others.
func ownPods(s scenarios.Scenario) int {
	n := 0
	for _, step := range s.Steps {
		if object, ok := step.Create.(map[string]any); ok && object["kind"] == "Pod" {
			n++
		}
	}
	return n
}

// chosen returns the scenarios for chaos: all, or the quick ones.
func chosen(t *testing.T, th *theatre, quick ...string) []scenarios.Scenario {
	t.Helper()
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	everything := os.Getenv(allVariable) != ""
	return slices.DeleteFunc(all, func(s scenarios.Scenario) bool {
		lacks := slices.ContainsFunc(s.Controllers, func(name string) bool { return !slices.Contains(th.controllers, name) })
		return !s.Chaos || lacks || !everything && !slices.Contains(quick, s.Name)
	})
}
