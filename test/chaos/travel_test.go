// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// archive remembers which lists the manager asks for, takes them at a moment, and answers with them later: an API server
// that is behind. Watches from there on are the real server's, and bring the present.
type archive struct {
	mu sync.Mutex // guards the following
	// asked are the requests by URL and form of the answer.
	asked map[archiveKey]bool
	taken map[archiveKey]archived
	// serving says that lists are answered from taken, each once.
	serving  bool
	answered int
}

type archived struct {
	mediaType string
	data      []byte
}

type archiveKey struct{ path, accept string }

// rule sees all lists. Watches that would list, too, are refused: clients then list.
func (a *archive) rule() faultproxy.Rule {
	return faultproxy.Rule{
		Match: faultproxy.Match{Verbs: []string{"list", "watch"}},
		Intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				refuseStreaming(w)
				return true
			}
			if r.URL.Query().Get("watch") != "" {
				return false
			}
			key := archiveKey{r.URL.Path, r.Header.Get("Accept")}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.asked[key] = true
			body, old := a.taken[key]
			if !a.serving || !old {
				return false
			}
			delete(a.taken, key)
			a.answered++
			w.Header().Set("Content-Type", body.mediaType)
			_, _ = w.Write(body.data) // the client may be gone
			return true
		},
	}
}

// refuseStreaming answers as an API server without streaming lists.
func refuseStreaming(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: "no streaming of lists here",
	}
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// take lists all that has been asked for.
func (a *archive) take(ctx context.Context, config *rest.Config) error {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = map[archiveKey]archived{}
	for key := range a.asked {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+key.path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", key.accept)
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // read to its end
		if err != nil {
			return err
		}
		if response.StatusCode == http.StatusOK {
			a.taken[key] = archived{response.Header.Get("Content-Type"), body}
		}
	}
	if len(a.taken) == 0 {
		return fmt.Errorf("the manager has asked for no list")
	}
	return nil
}

func (a *archive) serve(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serving = is
}

// TestTimeTravel plays a scenario, keeps what the lists were at its first checkpoint, and restarts the manager at its
// end on those lists: it must do nothing about what is no longer so.
func TestTimeTravel(t *testing.T) {
	past := &archive{asked: map[archiveKey]bool{}}
	th := newTheatre(t, past.rule())
	for _, s := range chosen(t, th, "deployment-scale", "deployment-orphan-adopt", "replicaset-scale") {
		if len(s.Checkpoints()) < 2 {
			continue
		}
		ctx := t.Context()
		namespace := s.Name + "-travel"
		first, last := s.Checkpoints()[0], ""
		err := th.Play(ctx, s, namespace, func(ctx context.Context, checkpoint string) (err error) {
			if last, err = th.settled(ctx, namespace, nil, checkpoint); err != nil || checkpoint != first {
				return err
			}
			return past.take(ctx, th.Config())
		})
		if err != nil {
			t.Fatalf("%s: %v\nthe manager's log:\n%s", s.Name, err, th.manager.Log())
		}
		if err := th.manager.Kill(); err != nil {
			t.Fatal(err)
		}
		mark, err := th.Audit.Mark(ctx)
		if err != nil {
			t.Fatal(err)
		}
		past.serve(true)
		if err := th.restart(ctx); err != nil {
			t.Fatal(err)
		}
		// The manager must have gone through the past and be in the present: what it is asked now, it does.
		if err := th.probe(ctx, "probe-"+s.Name); err != nil {
			t.Fatalf("%s: %v\nthe manager's log:\n%s", s.Name, err, th.manager.Log())
		}
		past.serve(false)
		want := &played{objects: map[string]string{"after": last}}
		if _, err := th.settled(ctx, namespace, want, "after"); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if past.answered == 0 {
			t.Errorf("%s: the restarted manager was shown nothing of the past", s.Name)
		}
		writes, err := th.podWrites(ctx, mark, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if writes.created+writes.deleted > 0 {
			events, _ := th.Audit.Since(ctx, mark)
			t.Errorf("%s: shown the past, the manager has created %d pods and deleted %d:\n%s", s.Name, writes.created, writes.deleted,
				events.Where(audit.Writes(), audit.Namespace(namespace)))
		}
		past.answered = 0
	}
}

// probe waits until a new namespace gets what all have, and a ReplicaSet in it its pod.
func (th *theatre) probe(ctx context.Context, namespace string) error {
	s, err := scenarios.Parse("probe", []byte(`
about: a ReplicaSet of one pod
steps:
- create:
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: probe}
    spec: {selector: {matchLabels: {app: probe}}, template: {metadata: {labels: {app: probe}}, spec: {containers: [{name: main, image: example.com/app:1}]}}}
- wait: {kind: ReplicaSet, name: probe, is: {status.availableReplicas: 1}}
- checkpoint: works
`))
	if err != nil {
		return err
	}
	return th.Play(ctx, s, namespace, func(context.Context, string) error { return nil })
}

// TestPartition takes the API server from the leader until a standby leads, and gives it back: the old leader writes
// nothing after the new one has begun, and the scenario that the standby took over ends as undisturbed.
func TestPartition(t *testing.T) {
	th := newTheatre(t)
	all := chosen(t, th, "deployment-scale")
	// The old leader ends with its lease, so there is one scenario.
	s := all[slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == "deployment-scale" })]
	want := th.reference(t, s)
	ctx := t.Context()
	leader, err := th.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := th.Cluster.Proxy("standby")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(direct.Close)
	standby := th.start(t, direct)
	mark, err := th.Audit.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}

	// In the middle of the scenario's work: at its third write.
	namespace := s.Name + "-partition"
	trigger := th.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: faultproxy.WriteVerbs(), Path: within(namespace)}})
	type end struct {
		got *played
		err error
	}
	done := make(chan end, 1)
	go func() {
		got, err := th.play(ctx, s, namespace, want)
		done <- end{got, err}
	}()
	if err := trigger.WaitHits(ctx, 3); err != nil {
		t.Fatal(err)
	}
	partition := th.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{}, Hold: true})
	silence := th.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verbs: []string{"watch"}}, WithholdEvents: true})
	if _, err := th.WaitForLeader(ctx, time.Minute, leader); err != nil {
		t.Fatal(err)
	}
	// It heals when the standby has begun to work.
	result := <-done
	partition.Remove()
	silence.Remove()
	if result.err == nil {
		result.err = result.got.check(want, 1) // what the leader sent last may have been answered to nobody
	}
	if result.err != nil {
		t.Errorf("%s: %v\nthe standby's log:\n%s", s.Name, result.err, standby.Log())
	}
	time.Sleep(2 * time.Second) // time to do wrong: nothing tells that a manager does nothing
	events, err := th.Audit.Since(ctx, mark)
	if err != nil {
		t.Fatal(err)
	}
	writes := events.Where(audit.Writes(), audit.Namespace(namespace), audit.Code(200, 201, 202))
	if err := audit.CheckHandover(writes.Where(audit.Agent("via/chaos")), writes.Where(audit.Agent("via/standby"))); err != nil {
		t.Errorf("%s: %v", s.Name, err)
	}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
}
