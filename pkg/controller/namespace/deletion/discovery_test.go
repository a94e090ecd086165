// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// slowDiscovery takes a second, and counts.
func slowDiscovery(calls *int, err error) *discoverer {
	return &discoverer{clock: clock.RealClock{}, discover: func() ([]*metav1.APIResourceList, error) {
		*calls++ // discoverer runs one at a time: the race detector would tell
		time.Sleep(time.Second)
		return []*metav1.APIResourceList{resources("v1", "pods")}, err
	}}
}

func TestOneDiscoveryServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		d := slowDiscovery(&calls, nil)
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				s, err := d.since(t.Context(), start)
				if err != nil || len(s.targets) != 1 {
					t.Errorf("got %v and %v", s, err)
				}
			})
		}
		wg.Wait()
		if calls != 1 {
			t.Errorf("%d discoveries, want 1", calls)
		}
	})
}

func TestADiscoveryThatRunsAlreadyIsNotNewEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		d := slowDiscovery(&calls, nil)
		go func() { _, _ = d.recent(t.Context()) }()
		time.Sleep(time.Second / 2)
		asked := time.Now()
		s, err := d.since(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		if s.began.Before(asked) || calls != 2 {
			t.Errorf("discovery began %s before it was asked for; %d calls", asked.Sub(s.began), calls)
		}
	})
}

func TestDiscoveryAges(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		maxAge time.Duration
	}{"complete": {nil, discoveryMaxAge}, "incomplete": {errors.New("a group failed"), failedDiscoveryMaxAge}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				d := slowDiscovery(&calls, tc.err)
				for _, pause := range []time.Duration{0, tc.maxAge, time.Millisecond} {
					time.Sleep(pause)
					if _, err := d.recent(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if calls != 2 {
					t.Errorf("%d discoveries, want 2: one at first, one when it was older than %s", calls, tc.maxAge)
				}
			})
		})
	}
}

func TestWaitingForDiscoveryEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		d := slowDiscovery(&calls, nil)
		go func() { _, _ = d.recent(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		if _, err := d.recent(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		time.Sleep(time.Second)
	})
}

func TestAPanicInDiscoveryDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		d := &discoverer{clock: clock.RealClock{}, discover: func() ([]*metav1.APIResourceList, error) {
			if first {
				first = false
				panic("bug in a client")
			}
			return []*metav1.APIResourceList{resources("v1", "pods")}, nil
		}}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = d.recent(t.Context())
		}()
		if s, err := d.recent(t.Context()); err != nil || !s.complete() {
			t.Errorf("got %v and %v", s, err)
		}
	})
}
