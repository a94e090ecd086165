// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/kcm-dev/kcm/pkg/controller/namespace/deletion"
)

var (
	pods       = v1.SchemeGroupVersion.WithResource("pods")
	configMaps = v1.SchemeGroupVersion.WithResource("configmaps")
)

// fakeCaches counts the same objects in each namespace; a resource that is not in it is not known.
type fakeCaches struct {
	mu     sync.Mutex
	counts map[schema.GroupVersionResource]int
}

func (c *fakeCaches) Count(resource schema.GroupVersionResource, _ string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count, known := c.counts[resource]
	return count, known
}

func (c *fakeCaches) set(resource schema.GroupVersionResource, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[resource] = count
}

func cachesWith(resource schema.GroupVersionResource, count int) *fakeCaches {
	return &fakeCaches{counts: map[schema.GroupVersionResource]int{resource: count}}
}

func left(resources ...schema.GroupVersionResource) error {
	return &deletion.ResourcesRemainingError{Estimate: 60, Resources: resources}
}

func TestHeadStartComesAtOnceAndTheFirstFullRoundAfterTheGracePeriod(t *testing.T) {
	r := &rounds{caches: cachesWith(pods, 0)}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.headStarts(); len(got) != 1 {
			t.Errorf("head starts at %v, want one as soon as the controller runs", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, times := r.seen(); !slices.Equal(times, []time.Duration{deletion.GracePeriod}) {
			t.Errorf("full rounds at %v, want one after the grace period", times)
		}
		if got := r.headStarts(); len(got) != 1 {
			t.Errorf("head starts at %v, want no second", got)
		}
	}, terminating("doomed"))
}

// The back-off of a head start that fails takes the place of the timer for the end of the grace period.
func TestFullRoundComesAfterAHeadStartThatFailed(t *testing.T) {
	for _, answer := range []error{nil, left(pods)} {
		r := &rounds{caches: cachesWith(pods, 1), earlyAnswer: answer, earlyFailures: 1}
		run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
			time.Sleep(deletion.GracePeriod + time.Second)
			synctest.Wait()
			if got := r.headStarts(); len(got) != 2 {
				t.Errorf("answer %v: head starts at %v, want one that fails and one more", answer, got)
			}
			if _, times := r.seen(); len(times) != 1 || times[0] < deletion.GracePeriod {
				t.Errorf("answer %v: full rounds at %v, want one when the grace period is over", answer, times)
			}
		}, terminating("doomed"))
	}
}

func TestPodsThatGoWithinTheGracePeriodBringTheNextHeadStart(t *testing.T) {
	caches := cachesWith(pods, 3)
	r := &rounds{caches: caches, earlyAnswer: left(pods)}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(2 * time.Second)
		caches.set(pods, 0)
		time.Sleep(2*lookPeriod - time.Millisecond) // a third look would bring a third
		synctest.Wait()
		if got := r.headStarts(); len(got) != 2 {
			t.Errorf("head starts at %v, want another when the pods are gone", got)
		}
	}, terminating("doomed"))
}

func TestLastObjectBringsTheNextRound(t *testing.T) {
	caches := cachesWith(configMaps, 1)
	r := &rounds{caches: caches, answers: []error{left(configMaps), nil}}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(deletion.GracePeriod + 500*time.Millisecond)
		synctest.Wait()
		if _, times := r.seen(); len(times) != 1 {
			t.Fatalf("rounds at %v, want none before the object is gone", times)
		}
		caches.set(configMaps, 0)
		time.Sleep(lookPeriod)
		synctest.Wait()
		if _, times := r.seen(); len(times) != 2 {
			t.Errorf("rounds at %v, want one when the object is gone", times)
		}
	}, terminating("doomed"))
}

// A cache that does not see what the API server lists must not make rounds follow each other.
func TestBlindCacheBringsFewRounds(t *testing.T) {
	r := &rounds{caches: cachesWith(configMaps, 0), answers: []error{left(configMaps)}}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, times := r.seen(); len(times) > 75 {
			t.Errorf("%d rounds in ten minutes", len(times))
		}
	}, terminating("doomed"))
}

// Where a kind is in no cache the rounds come by time, as without caches.
func TestUnknownKindWaitsForTheTimer(t *testing.T) {
	r := &rounds{caches: cachesWith(pods, 0), answers: []error{left(configMaps, pods)}}
	run(t, r, 0, func(t *testing.T, _ *fake.Clientset) {
		time.Sleep(deletion.GracePeriod + 900*time.Millisecond)
		synctest.Wait()
		if _, times := r.seen(); len(times) != 1 {
			t.Errorf("rounds at %v, want the second a second after the first", times)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, times := r.seen(); len(times) != 2 {
			t.Errorf("rounds at %v, want the second a second after the first", times)
		}
	}, terminating("doomed"))
}

func TestNothingIsKeptOfANamespaceThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrains(cachesWith(pods, 1), clock.RealClock{}, func(string) {})
		ns := terminating("doomed")
		if !d.begin(ns) || d.begin(ns) {
			t.Error("a namespace is to be begun once")
		}
		anew := terminating("doomed")
		anew.UID = "another"
		if !d.begin(anew) {
			t.Error("another namespace of the name is to be begun, too")
		}
		d.await("doomed", []schema.GroupVersionResource{pods})
		d.await("unknown", []schema.GroupVersionResource{pods})
		if !d.look() {
			t.Error("the namespace does not wait")
		}
		d.end("doomed")
		if d.look() || d.graceLeft("doomed") > 0 || len(d.byName) != 0 {
			t.Errorf("%v is kept", d.byName)
		}
	})
}
