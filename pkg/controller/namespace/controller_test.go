// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller/namespace/deletion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds is a deleter that notes when it is called, and answers from a list; the last answer stays.
type rounds struct {
	start   time.Time
	answers []error

	// caches are given to the controller when they are not nil; earlyAnswer is what a head start returns, after earlyFailures ones that fail.
	caches        deletion.Caches
	earlyAnswer   error
	earlyFailures int

	mu    sync.Mutex
	times []time.Duration
	names []string
	early []time.Duration
}

func (r *rounds) HeadStart(context.Context, string, deletion.Caches) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.early = append(r.early, time.Since(r.start))
	if len(r.early) <= r.earlyFailures {
		return errors.New("no answer")
	}
	return r.earlyAnswer
}

// headStarts returns the times of the head starts so far.
func (r *rounds) headStarts() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.early)
}

func (r *rounds) Delete(_ context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, time.Since(r.start))
	r.names = append(r.names, name)
	if len(r.answers) == 0 {
		return nil
	}
	answer := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	return answer
}

// seen returns the names and the times of the rounds so far.
func (r *rounds) seen() (names []string, times []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names), slices.Clone(r.times)
}

// run starts a controller in a synctest bubble over objects, and calls check. Times are since then.
func run(t *testing.T, r *rounds, resync time.Duration, check func(t *testing.T, client *fake.Clientset), objects ...*v1.Namespace) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r.start = time.Now()
		for _, ns := range objects {
			if ns.DeletionTimestamp != nil {
				ns.DeletionTimestamp = ptr.To(metav1.Now())
			}
			if err := client.Tracker().Add(ns); err != nil {
				t.Fatal(err)
			}
		}
		factory := informers.NewSharedInformerFactory(client, 12*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		nm := newController(ctx, r, factory.Core().V1().Namespaces(), resync, v1.FinalizerKubernetes, r.caches, clock.RealClock{})
		if got := len(nm.Workers()); got != 1 {
			t.Errorf("%d workers, want 1", got)
		}
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			nm.Run(ctx, 2)
		}()
		synctest.Wait()
		check(t, client)
		cancel()
		<-done
		factory.Shutdown()
	})
}

func terminating(name string) *v1.Namespace {
	ns := active(name)
	ns.DeletionTimestamp = ptr.To(metav1.Now())
	return ns
}

func active(name string) *v1.Namespace {
	return &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "1"},
		Spec:       v1.NamespaceSpec{Finalizers: []v1.FinalizerName{v1.FinalizerKubernetes}},
	}
}

func update(t *testing.T, client *fake.Clientset, ns *v1.Namespace, change func(*v1.Namespace)) *v1.Namespace {
	t.Helper()
	ns = ns.DeepCopy()
	change(ns)
	ns.ResourceVersion += "1"
	if err := client.Tracker().Update(v1.SchemeGroupVersion.WithResource("namespaces"), ns, ""); err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestWhichNamespacesAreWorkedOn(t *testing.T) {
	r := &rounds{}
	finalized := terminating("finalized")
	finalized.Spec.Finalizers = nil
	run(t, r, 0, func(t *testing.T, client *fake.Clientset) {
		if names, _ := r.seen(); len(names) != 0 {
			t.Errorf("rounds for %v before the grace period ended", names)
		}
		time.Sleep(deletion.GracePeriod)
		synctest.Wait()
		names, _ := r.seen()
		if diff := cmp.Diff([]string{"terminating"}, names); diff != "" {
			t.Fatalf("rounds (-want +got):\n%s", diff)
		}

		deleted := update(t, client, active("active"), func(ns *v1.Namespace) { ns.DeletionTimestamp = ptr.To(metav1.Now()) })
		time.Sleep(deletion.GracePeriod - time.Millisecond)
		synctest.Wait()
		if names, _ := r.seen(); len(names) != 1 {
			t.Error("a round began within the grace period")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		names, _ = r.seen()
		if diff := cmp.Diff([]string{"terminating", "active"}, names); diff != "" {
			t.Fatalf("rounds (-want +got):\n%s", diff)
		}

		// A change of a terminating namespace is no reason for a round.
		update(t, client, deleted, func(ns *v1.Namespace) { ns.Status.Phase = v1.NamespaceTerminating })
		time.Sleep(time.Hour)
		synctest.Wait()
		if names, _ := r.seen(); len(names) != 2 {
			t.Errorf("rounds for %v, want no more than 2", names)
		}
	}, terminating("terminating"), active("active"), finalized)
}

func TestRemainingContentIsAskedForAgain(t *testing.T) {
	r := &rounds{answers: []error{&deletion.ResourcesRemainingError{Estimate: 15}}}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		_, times := r.seen()
		if times[0] != deletion.GracePeriod {
			t.Errorf("first round after %s", times[0])
		}
		for i := 1; i < len(times); i++ {
			pause := times[i] - times[i-1]
			if pause < time.Second || pause > 8*time.Second {
				t.Errorf("pause of %s before round %d, want 1 s to 8 s", pause, i)
			}
			if pause < 8*time.Second && i > 10 {
				t.Errorf("pause of %s before round %d, want it to have grown to 8 s", pause, i)
			}
		}
	}, terminating("blocked"))
}

func TestFailuresAreRetriedForEverWithBackOff(t *testing.T) {
	r := &rounds{answers: []error{errors.New("webhook is down")}}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(time.Hour)
		synctest.Wait()
		_, times := r.seen()
		n := len(times)
		if n < 60 || n > 100 {
			t.Errorf("%d rounds in an hour", n)
		}
		if last := times[n-1] - times[n-2]; last != maxDelay {
			t.Errorf("last pause %s, want %s", last, maxDelay)
		}
	}, terminating("broken"))
}

func TestResyncIsAReminder(t *testing.T) {
	r := &rounds{}
	run(t, r, 10*time.Minute, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(35 * time.Minute)
		synctest.Wait()
		_, times := r.seen()
		if len(times) < 3 || len(times) > 4 {
			t.Errorf("rounds at %v, want the first and one for each resync", times)
		}
	}, terminating("forgotten"), active("active"))
}

func TestConstructor(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	discovered := false
	nm := NewNamespaceController(t.Context(), client, metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()),
		func() ([]*metav1.APIResourceList, error) { discovered = true; return nil, nil },
		factory.Core().V1().Namespaces(), 5*time.Minute, v1.FinalizerKubernetes)
	if discovered {
		t.Error("the constructor did a discovery")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nm.Run(ctx, 1)
}

func TestStartsWork(t *testing.T) {
	base := terminating("x")
	other := terminating("x")
	other.ResourceVersion = "2"
	anew := terminating("x")
	anew.ResourceVersion, anew.UID = "3", "another"
	done := terminating("x")
	done.Spec.Finalizers = []v1.FinalizerName{"other"}
	alive := active("x")
	tests := map[string]struct {
		old, cur *v1.Namespace
		want     bool
	}{
		"deleted":                      {alive, other, true},
		"changed while terminating":    {base, other, false},
		"resync":                       {base, base, true},
		"resync of an active one":      {alive, alive, false},
		"another one, deleted as well": {base, anew, true},
		"finalized by us":              {base, done, false},
		"resync after we finalized":    {done, done, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := startsWork(tc.old, tc.cur, v1.FinalizerKubernetes); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNextRound(t *testing.T) {
	tests := map[string]struct {
		estimate int64
		elapsed  time.Duration
		want     time.Duration
	}{
		"at once":                      {15, 0, time.Second},
		"clocks differ":                {15, -time.Hour, time.Second},
		"in proportion":                {60, 20 * time.Second, 5 * time.Second},
		"upstream's wait is the bound": {15, time.Hour, 8 * time.Second},
		"short estimate":               {1, time.Hour, time.Second},
		"no estimate":                  {0, time.Hour, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextRound(tc.estimate, tc.elapsed); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
