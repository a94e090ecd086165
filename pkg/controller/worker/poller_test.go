// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestPollerLooksWhileThereIsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var looks []time.Duration
		left := 2
		p := NewPoller(clock.RealClock{}, time.Second, func(context.Context) bool {
			looks = append(looks, time.Since(start))
			left--
			return left > 0
		})
		p.Wake() // before Run
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx)
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(looks, want) {
			t.Errorf("looks at %v, want %v", looks, want)
		}
		left = 1
		p.Wake()
		synctest.Wait()
		if want := []time.Duration{0, time.Second, 10 * time.Second}; !slices.Equal(looks, want) {
			t.Errorf("woken again it looks at %v, want %v", looks, want)
		}
		left = 1000
		p.Wake()
		synctest.Wait()
		cancel()
		<-done
	})
}
