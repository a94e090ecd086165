// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

const (
	leaseDuration = 6 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

// quickElection makes leases short, so that tests of a lost one do not take long.
func quickElection() []string {
	return []string{
		fmt.Sprintf("--leader-elect-lease-duration=%v", leaseDuration),
		fmt.Sprintf("--leader-elect-renew-deadline=%v", renewDeadline),
		fmt.Sprintf("--leader-elect-retry-period=%v", retryPeriod),
	}
}

// writesOf are the writes of a manager's controllers, whichever credentials
// they use: all but the election's own (the Lease, and the Events about it, of
// which "stopped leading" can only come afterwards), and the reviews and token
// requests that leave no object behind.
func writesOf(events audit.Events, m *framework.Manager) audit.Events {
	return events.Where(
		audit.Writes(),
		audit.Agent("^"+regexp.QuoteMeta(m.Name())+"/"),
		audit.Not(audit.Resource("leases.coordination.k8s.io", "serviceaccounts/token",
			"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io")),
		audit.Not(isElectionEvent),
	)
}

func isElectionEvent(e audit.Event) bool {
	return e.Resource() == "events" && strings.HasPrefix(e.Object(), metav1.NamespaceSystem+"/"+framework.ManagerLease+".")
}

// leaseWritesOf are the successful writes of a manager to the lease.
func leaseWritesOf(events audit.Events, m *framework.Manager) audit.Events {
	return events.Where(audit.Writes(), audit.Agent("^"+regexp.QuoteMeta(m.Name())+"/"),
		audit.Resource("leases.coordination.k8s.io"), audit.Code(200, 201))
}

// waitForWrites waits until a manager's controllers are busy: they have written often since the mark.
func waitForWrites(t *testing.T, env *framework.Env, mark audit.Mark, m *framework.Manager) {
	t.Helper()
	env.WaitFor(t, "writes of "+m.Name(), timeout, func(context.Context) (bool, error) {
		n := len(writesOf(env.AuditSince(t, mark), m))
		if n < 50 {
			return false, fmt.Errorf("%d writes", n)
		}
		return true, nil
	})
}

// checkHandover fails unless the old leader's last write was over before the new one's first came.
func checkHandover(t *testing.T, events audit.Events, old, successor *framework.Manager) {
	t.Helper()
	before, after := writesOf(events, old), writesOf(events, successor)
	if err := audit.CheckHandover(before, after); err != nil {
		t.Errorf("%v\nwrites of %s:\n%s\nwrites of %s:\n%s", err, old.Name(), before, successor.Name(), after)
		return
	}
	t.Logf("%s's last of %d writes at %s, %s's first of %d at %s: %v without a writer",
		old.Name(), len(before), before[len(before)-1].Answered().Format("15:04:05.000"),
		successor.Name(), len(after), after[0].Received().Format("15:04:05.000"),
		after[0].Received().Sub(before[len(before)-1].Answered()).Round(time.Millisecond))
}

func TestOneOfTwoManagersLeadsAndTheOtherWritesNothing(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	leader, standby := startPair(t, env)
	churn(t, env)
	waitForWrites(t, env, mark, leader)

	// Long enough for several rounds of the election.
	env.Never(t, "the standby leads beside a healthy leader", 6*time.Second, func(ctx context.Context) (bool, error) {
		return leads(ctx, env, standby)
	})
	if writes := writesOf(env.AuditSince(t, mark), standby); len(writes) > 0 {
		t.Errorf("the standby wrote\n%s", writes)
	}
	if code, body, err := standby.Get(t.Context(), env.Config(), "/readyz"); err != nil || code != 200 {
		t.Errorf("/readyz of the standby: %d %s %v", code, body, err)
	}
}

func TestSigtermHandsOver(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	leader, standby := startPair(t, env)
	stop := churn(t, env)
	waitForWrites(t, env, mark, leader)

	began := time.Now()
	leader.Signal(t, syscall.SIGTERM)
	if code := leader.Wait(t, timeout); code != 0 {
		t.Errorf("exit code after SIGTERM is %d, want 0", code)
	}
	ended := time.Since(began)
	env.WaitFor(t, "the standby to lead", timeout, func(ctx context.Context) (bool, error) { return leads(ctx, env, standby) })
	took := time.Since(began)
	waitForWrites(t, env, mark, standby)
	t.Logf("old leader ended after %v, standby led after %v", ended.Round(time.Millisecond), took.Round(time.Millisecond))
	// The lease is given back, so the standby need not wait for its 15s: it looks every retry
	// period of 2s, jittered up to 2.4s.
	if limit := 5 * time.Second; took > limit {
		t.Errorf("the standby led %v after the signal, want less than %v", took, limit)
	}
	stop()
	checkHandover(t, env.AuditSince(t, mark), leader, standby)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	// A proxy that swallows everything keeps the manager from ending in order.
	proxy := env.Proxy(t, "")
	kubeconfig := proxyKubeconfig(t, env, proxy)
	m := env.StartManager(t, framework.ManagerOptions{Args: []string{"--kubeconfig=" + kubeconfig}})
	env.WaitFor(t, "manager to lead", timeout, func(ctx context.Context) (bool, error) { return leads(ctx, env, m) })
	hold := proxy.Add(faultproxy.Rule{Hold: true, Match: faultproxy.Match{Path: regexp.MustCompile("/leases/")}})
	defer hold.Remove()
	if err := hold.WaitHits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.Signal(t, syscall.SIGTERM)
	env.WaitFor(t, "manager to wind up", timeout, func(context.Context) (bool, error) {
		return regexp.MatchString("All controllers terminated", m.Log())
	})
	if !m.Running() {
		t.Fatal("the manager had ended before the second signal could be sent")
	}
	m.Signal(t, syscall.SIGTERM)
	began := time.Now()
	if code := m.Wait(t, 10*time.Second); code != 1 {
		t.Errorf("exit code after the second signal is %d, want 1", code)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the second signal took %v", took)
	}
}

func TestSigkillFailsOverAfterTheLease(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	leader, standby := startPair(t, env, quickElection()...)
	stop := churn(t, env)
	waitForWrites(t, env, mark, leader)

	leader.Signal(t, syscall.SIGKILL)
	leader.Wait(t, timeout)
	waitForWrites(t, env, mark, standby)
	stop()
	events := env.AuditSince(t, mark)
	checkHandover(t, events, leader, standby)
	checkLeaseRanOut(t, events, leader, standby)
}

// checkLeaseRanOut fails unless the successor waited for the dead leader's lease, and not much longer.
func checkLeaseRanOut(t *testing.T, events audit.Events, dead, successor *framework.Manager) {
	t.Helper()
	renewals := leaseWritesOf(events, dead)
	writes := writesOf(events, successor)
	if len(renewals) == 0 || len(writes) == 0 {
		t.Fatalf("%d renewals of %s, %d writes of %s", len(renewals), dead.Name(), len(writes), successor.Name())
	}
	idle := writes[0].Received().Sub(renewals[len(renewals)-1].Answered())
	// Two looks of the successor (jittered by 1.2) may pass: one to see the last
	// renewal, one after the lease has run out; and then controllers start.
	longest := leaseDuration + 2*retryPeriod*12/10 + 4*time.Second
	t.Logf("first write %v after the last renewal of a lease of %v", idle.Round(time.Millisecond), leaseDuration)
	if idle < leaseDuration || idle > longest {
		t.Errorf("the successor wrote %v after the last renewal, want %v to %v", idle, leaseDuration, longest)
	}
}

func TestFrozenLeaderDoesNotWriteWhenItThaws(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	leader, standby := startPair(t, env, quickElection()...)
	stop := churn(t, env)
	waitForWrites(t, env, mark, leader)

	leader.Signal(t, syscall.SIGSTOP)
	waitForWrites(t, env, mark, standby)
	thawed := env.AuditMark(t)
	leader.Signal(t, syscall.SIGCONT)
	if code := leader.Wait(t, timeout); code != 1 {
		t.Errorf("exit code after a lost lease is %d, want 1", code)
	}
	stop()
	if writes := writesOf(env.AuditSince(t, thawed), leader); len(writes) > 0 {
		t.Errorf("after its lease was lost the old leader wrote\n%s", writes)
	}
	events := env.AuditSince(t, mark)
	checkHandover(t, events, leader, standby)
	checkLeaseRanOut(t, events, leader, standby)
}

func TestPartitionedLeaderStopsBeforeItsLeaseEnds(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	proxy := env.Proxy(t, "")
	mark := env.AuditMark(t)
	leader := env.StartManager(t, framework.ManagerOptions{Name: "kcm-a", Args: append(quickElection(), "--kubeconfig="+proxyKubeconfig(t, env, proxy))})
	env.WaitFor(t, "first manager to lead", timeout, func(ctx context.Context) (bool, error) { return leads(ctx, env, leader) })
	standby := env.StartManager(t, framework.ManagerOptions{Name: "kcm-b", Args: quickElection()})
	stop := churn(t, env)
	waitForWrites(t, env, mark, leader)

	// Only the lease is cut off: whatever else the leader sends would arrive.
	proxy.Add(faultproxy.Rule{Drop: faultproxy.DropBefore, Match: faultproxy.Match{Path: regexp.MustCompile("/leases/" + framework.ManagerLease)}})
	if code := leader.Wait(t, timeout); code != 1 {
		t.Errorf("exit code after a lost lease is %d, want 1", code)
	}
	waitForWrites(t, env, mark, standby)
	stop()
	events := env.AuditSince(t, mark)
	checkHandover(t, events, leader, standby)
	checkLeaseRanOut(t, events, leader, standby)

	renewals, writes := leaseWritesOf(events, leader), writesOf(events, leader)
	lastRenewal, lastWrite := renewals[len(renewals)-1].Received(), writes[len(writes)-1].Received()
	// Renewals are timed by the client when it sends them: allow what a request takes.
	if late := lastWrite.Sub(lastRenewal); late > renewDeadline+500*time.Millisecond {
		t.Errorf("the leader wrote %v after its last renewal, its renew deadline is %v", late, renewDeadline)
	} else {
		t.Logf("last write %v after the last renewal; renew deadline %v, lease %v", late.Round(time.Millisecond), renewDeadline, leaseDuration)
	}
}

func TestLeaseIsGivenBackAndTakenUpAgain(t *testing.T) {
	env := framework.New(t)
	env.ReleaseLease(t)
	leases := env.Client.CoordinationV1().Leases(metav1.NamespaceSystem)
	first := env.StartManager(t, framework.ManagerOptions{Name: "kcm-a"})
	env.WaitFor(t, "first manager to lead", timeout, func(ctx context.Context) (bool, error) { return leads(ctx, env, first) })
	lease, err := leases.Get(t.Context(), framework.ManagerLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := lease.Spec; s.HolderIdentity == nil || *s.HolderIdentity == "" || s.LeaseDurationSeconds == nil || *s.LeaseDurationSeconds != 15 ||
		s.AcquireTime == nil || s.RenewTime == nil || s.LeaseTransitions == nil {
		t.Errorf("lease of a leader: %+v", s)
	}
	transitions := *lease.Spec.LeaseTransitions
	first.Signal(t, syscall.SIGINT)
	if code := first.Wait(t, timeout); code != 0 {
		t.Errorf("exit code after SIGINT is %d, want 0", code)
	}
	if holder, err := env.Leader(t.Context()); err != nil || holder != "" {
		t.Errorf("after the leader's end the lease is held by %q, %v", holder, err)
	}
	second := env.StartManager(t, framework.ManagerOptions{Name: "kcm-b"})
	env.WaitFor(t, "second manager to lead", 5*time.Second, func(ctx context.Context) (bool, error) { return leads(ctx, env, second) })
	lease, err = leases.Get(t.Context(), framework.ManagerLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *lease.Spec.LeaseTransitions; got != transitions+1 && got != transitions+2 {
		t.Errorf("lease transitions went from %d to %d", transitions, got)
	}
}

// informersOf are the informers of a manager by resource, as its debug page shows them.
func informersOf(ctx context.Context, env *framework.Env, m *framework.Manager) (map[string]cache.Status, error) {
	code, body, err := m.Get(ctx, env.Config(), "/debug/informers?format=json")
	if err != nil || code != http.StatusOK {
		return nil, fmt.Errorf("/debug/informers of %s: %d %w", m.Name(), code, err)
	}
	var statuses []cache.Status
	if err := json.Unmarshal([]byte(body), &statuses); err != nil {
		return nil, fmt.Errorf("/debug/informers of %s: %w", m.Name(), err)
	}
	informers := make(map[string]cache.Status, len(statuses))
	for _, s := range statuses {
		informers[s.Resource] = s
	}
	return informers, nil
}

// A warm standby has every cache of the leader, full and once each, before it leads. Nobody listens to them yet.
func TestWarmStandbyHoldsTheLeadersCaches(t *testing.T) {
	env := framework.New(t)
	leader, standby := startPair(t, env)
	if _, err := env.Client.CoreV1().ConfigMaps(env.Namespace(t, "warm")).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "the standby to hold the leader's caches", timeout, func(ctx context.Context) (bool, error) {
		leaders, err := informersOf(ctx, env, leader)
		if err != nil {
			return false, err
		}
		standbys, err := informersOf(ctx, env, standby)
		if err != nil {
			return false, err
		}
		if !leaders["metadata/roles.rbac.authorization.k8s.io"].Synced {
			return false, errors.New("the leader's garbage collector watches nothing yet")
		}
		for resource, of := range leaders {
			own, ok := standbys[resource]
			if !ok || own.Watching == nil || own.Objects != of.Objects || own.Bytes != of.Bytes {
				return false, fmt.Errorf("%s: the leader has %d objects of %d bytes, the standby %d of %d bytes (watched: %t)",
					resource, of.Objects, of.Bytes, own.Objects, own.Bytes, own.Watching != nil)
			}
		}
		for resource, own := range standbys {
			if _, ok := leaders[resource]; !ok || len(own.Handlers) > 0 {
				return false, fmt.Errorf("%s: the leader has it: %t, handlers in the standby: %v", resource, ok, own.Handlers)
			}
		}
		return true, nil
	})
}

// A cold standby asks for nothing but the lease until it leads, and then does all that a warm one does.
func TestColdStandby(t *testing.T) {
	env := framework.New(t)
	mark := env.AuditMark(t)
	leader, standby := startPair(t, env, "--leader-elect-standby=cold")
	stop := churn(t, env)
	waitForWrites(t, env, mark, leader)
	if code, body, err := standby.Get(t.Context(), env.Config(), "/readyz"); err != nil || code != http.StatusOK {
		t.Errorf("/readyz of the standby: %d %s %v", code, body, err)
	}
	if informers, err := informersOf(t.Context(), env, standby); err != nil || len(informers) > 0 {
		t.Errorf("the standby has informers: %v %v", informers, err)
	}
	reads := env.AuditSince(t, mark).Where(audit.Agent("^"+regexp.QuoteMeta(standby.Name())+"/"), audit.Verb("list", "watch"),
		audit.Not(audit.Resource("leases.coordination.k8s.io")), audit.Not(isServing))
	if len(reads) > 0 {
		t.Errorf("the standby asked for\n%s", reads)
	}

	leader.Signal(t, syscall.SIGTERM)
	waitForWrites(t, env, mark, standby)
	stop()
	checkHandover(t, env.AuditSince(t, mark), leader, standby)
}

// isServing selects what the secure port needs: the certificates of those whose requests it authenticates.
func isServing(e audit.Event) bool {
	return e.Resource() == "configmaps" && strings.HasPrefix(e.Object(), metav1.NamespaceSystem+"/extension-apiserver-authentication")
}
