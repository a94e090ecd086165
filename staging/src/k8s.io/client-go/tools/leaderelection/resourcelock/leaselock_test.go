// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var when = metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC))

func TestNew(t *testing.T) {
	client := fake.NewClientset().CoordinationV1()
	for _, tc := range []struct{ kind, namespace, name, identity, want string }{
		{"leases", "ns", "n", "me", ""},
		{"endpoints", "ns", "n", "me", `creating lock "ns/n" of type "endpoints": resourceLock value must be "leases": "endpoints" was removed in Kubernetes 1.28, a cluster that still uses it migrates through "endpointsleases" first`},
		{"configmaps", "ns", "n", "me", `creating lock "ns/n" of type "configmaps": resourceLock value must be "leases": "configmaps" was removed in Kubernetes 1.28, a cluster that still uses it migrates through "configmapsleases" first`},
		{"endpointsleases", "ns", "n", "me", `creating lock "ns/n" of type "endpointsleases": resourceLock value must be "leases": "endpointsleases" was removed in Kubernetes 1.28`},
		{"configmapsleases", "ns", "n", "me", `creating lock "ns/n" of type "configmapsleases": resourceLock value must be "leases": "configmapsleases" was removed in Kubernetes 1.28`},
		{"", "ns", "n", "me", `creating lock "ns/n" of type "": resourceLock value must be "leases"`},
		{"leases", "", "n", "me", `lock "/n": both a namespace and a name are required`},
		{"leases", "ns", "n", "", "lock identity is empty: each candidate needs a unique one"},
	} {
		lock, err := New(tc.kind, tc.namespace, tc.name, client, ResourceLockConfig{Identity: tc.identity})
		got := ""
		if err != nil {
			got = err.Error()
		} else if lock.Describe() != "ns/n" || lock.Identity() != "me" {
			t.Errorf("lock %q of %q, want ns/n of me", lock.Describe(), lock.Identity())
		}
		if got != tc.want {
			t.Errorf("%q: error %q, want %q", tc.kind, got, tc.want)
		}
	}
}

func TestRecordInLease(t *testing.T) {
	for _, tc := range []struct {
		name   string
		record LeaderElectionRecord
		want   string
	}{
		{"held", LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, AcquireTime: when, RenewTime: when, LeaderTransitions: 3},
			`{"holderIdentity":"me","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.000678Z","renewTime":"2026-01-02T03:04:05.000678Z","leaseTransitions":3}`},
		{"released", LeaderElectionRecord{LeaseDurationSeconds: 1, AcquireTime: when, RenewTime: when},
			`{"holderIdentity":"","leaseDurationSeconds":1,"acquireTime":"2026-01-02T03:04:05.000678Z","renewTime":"2026-01-02T03:04:05.000678Z","leaseTransitions":0}`},
		{"coordinated", LeaderElectionRecord{HolderIdentity: "me", RenewTime: when, AcquireTime: when, Strategy: coordinationv1.OldestEmulationVersion, PreferredHolder: "other"},
			`{"holderIdentity":"me","leaseDurationSeconds":0,"acquireTime":"2026-01-02T03:04:05.000678Z","renewTime":"2026-01-02T03:04:05.000678Z","leaseTransitions":0,"strategy":"OldestEmulationVersion","preferredHolder":"other"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := LeaderElectionRecordToLeaseSpec(&tc.record)
			data, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(data)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if back := LeaseSpecToLeaderElectionRecord(&spec); !back.Equal(tc.record) {
				t.Errorf("read back %+v", back)
			}
		})
	}
	if empty := LeaseSpecToLeaderElectionRecord(&coordinationv1.LeaseSpec{}); !empty.Equal(LeaderElectionRecord{}) {
		t.Errorf("an empty spec reads %+v", empty)
	}
}

func TestRecordEqual(t *testing.T) {
	base := LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, AcquireTime: when, RenewTime: when, LeaderTransitions: 3}
	nanos := base
	nanos.RenewTime = metav1.NewMicroTime(when.Add(999 * time.Nanosecond))
	if !base.Equal(nanos) {
		t.Error("nanoseconds, which a Lease does not store, count")
	}
	for name, change := range map[string]func(*LeaderElectionRecord){
		"holder":      func(r *LeaderElectionRecord) { r.HolderIdentity = "other" },
		"duration":    func(r *LeaderElectionRecord) { r.LeaseDurationSeconds++ },
		"acquire":     func(r *LeaderElectionRecord) { r.AcquireTime = metav1.NewMicroTime(when.Add(time.Microsecond)) },
		"renew":       func(r *LeaderElectionRecord) { r.RenewTime = metav1.NewMicroTime(when.Add(time.Microsecond)) },
		"transitions": func(r *LeaderElectionRecord) { r.LeaderTransitions++ },
		"strategy":    func(r *LeaderElectionRecord) { r.Strategy = coordinationv1.OldestEmulationVersion },
		"preferred":   func(r *LeaderElectionRecord) { r.PreferredHolder = "x" },
	} {
		changed := base
		change(&changed)
		if changed.Equal(base) {
			t.Errorf("a change of %s does not count", name)
		}
	}
}

// An update carries what it builds on, and leaves alone what others put on the Lease.
func TestUpdate(t *testing.T) {
	client := fake.NewClientset()
	lock, err := NewWithLabels("leases", "ns", "n", client.CoordinationV1(), ResourceLockConfig{Identity: "me"}, map[string]string{"holder": "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Fatalf("got %v, want a not-found error", err)
	}
	if _, err := lock.Update(t.Context(), nil, LeaderElectionRecord{}); err == nil {
		t.Error("an update without a base passed")
	}
	existing := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("other"), Strategy: ptr.To(coordinationv1.OldestEmulationVersion)},
	}
	if err := client.Tracker().Add(existing); err != nil {
		t.Fatal(err)
	}
	base, err := lock.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	record := LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, AcquireTime: when, RenewTime: when}
	after, err := lock.Update(t.Context(), base, record)
	if err != nil {
		t.Fatal(err)
	}
	if len(client.Actions()) != 1 {
		t.Fatalf("actions: %v", client.Actions())
	}
	sent := client.Actions()[0].(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
	want := existing.DeepCopy()
	want.Labels["holder"] = "mine"
	want.Spec = LeaderElectionRecordToLeaseSpec(&record)
	if diff := cmp.Diff(want.ObjectMeta.Labels, sent.Labels); diff != "" {
		t.Errorf("labels: -want +got:\n%s", diff)
	}
	if sent.UID != "u" || sent.ResourceVersion != "7" || sent.Annotations["c"] != "d" {
		t.Errorf("sent %+v, want UID, version and annotations of the base", sent.ObjectMeta)
	}
	if !after.Record.Equal(record) || base.Record.HolderIdentity != "other" {
		t.Errorf("after %+v, base %+v", after.Record, base.Record)
	}
}

// What is watched is one Lease, from its present state on.
func TestWatch(t *testing.T) {
	client := fake.NewClientset()
	lock, err := New("leases", "ns", "n", client.CoordinationV1(), ResourceLockConfig{Identity: "me"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string)
	done := make(chan error)
	watching := make(chan struct{})
	client.PrependWatchReactor("leases", func(action clienttesting.Action) (bool, watch.Interface, error) {
		options := action.(clienttesting.WatchActionImpl).ListOptions
		if options.FieldSelector != "metadata.name=n" || options.ResourceVersion != "" || ptr.Deref(options.TimeoutSeconds, 0) < watchSeconds {
			t.Errorf("watch options %+v", options)
		}
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		close(watching)
		return true, w, err
	})
	go func() {
		done <- lock.Watch(ctx, func(o *Observation) {
			if o == nil {
				seen <- "deleted"
			} else {
				seen <- o.Record.HolderIdentity
			}
		})
	}()
	<-watching
	leases := client.CoordinationV1().Leases("ns")
	lease := func(name, holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := <-seen; got != want {
			t.Errorf("saw %q, want %q", got, want)
		}
	}
	must(leases.Create(ctx, lease("another", "x"), metav1.CreateOptions{}))
	must(leases.Create(ctx, lease("n", "a"), metav1.CreateOptions{}))
	expect("a")
	must(leases.Update(ctx, lease("n", "b"), metav1.UpdateOptions{}))
	expect("b")
	must(nil, leases.Delete(ctx, "n", metav1.DeleteOptions{}))
	expect("deleted")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a watch that was called off returned %v", err)
	}
}

func TestRecordEvent(t *testing.T) {
	recorder := &eventRecorder{}
	lock := &LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}, LockConfig: ResourceLockConfig{Identity: "me", EventRecorder: recorder}}
	lock.RecordEvent("became leader")
	lock.LockConfig.EventRecorder = nil
	lock.RecordEvent("stopped leading")
	want := []string{"coordination.k8s.io/v1 Lease ns/n: Normal LeaderElection me became leader"}
	if diff := cmp.Diff(want, recorder.events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var _ EventRecorder = record.NewFakeRecorder(1)
}

type eventRecorder struct{ events []string }

func (r *eventRecorder) Eventf(obj runtime.Object, eventType, reason, message string, args ...interface{}) {
	lease := obj.(*coordinationv1.Lease)
	fake := record.NewFakeRecorder(1)
	fake.Eventf(obj, eventType, reason, message, args...)
	r.events = append(r.events, lease.APIVersion+" "+lease.Kind+" "+lease.Namespace+"/"+lease.Name+": "+<-fake.Events)
}

// The client of the election has a user agent of its own and no timeout that would cut its watch.
func TestNewFromKubeconfig(t *testing.T) {
	var agent, query string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent, query = r.UserAgent(), r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n"},"spec":{"holderIdentity":"x"}}`))
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	config := &rest.Config{Host: server.URL, Timeout: time.Minute, Transport: transport}
	lock, err := NewFromKubeconfig("leases", "ns", "n", ResourceLockConfig{Identity: "me"}, config)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := lock.Get(t.Context())
	if err != nil || seen.Record.HolderIdentity != "x" {
		t.Fatalf("got %+v, %v", seen, err)
	}
	if !strings.HasSuffix(agent, "/leader-election") || query != "" || config.Timeout != time.Minute {
		t.Errorf("user agent %q, query %q", agent, query)
	}
	if _, err := NewFromKubeconfig("endpoints", "ns", "n", ResourceLockConfig{Identity: "me"}, config); err == nil {
		t.Error("a retired lock was made")
	}
}
