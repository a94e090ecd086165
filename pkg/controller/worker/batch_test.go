// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatcher(t *testing.T) {
	tests := []struct {
		name    string
		period  time.Duration
		changes []time.Duration // since the start
		syncs   []time.Duration
	}{
		{"no batching", 0, []time.Duration{0, 10, 100}, []time.Duration{0, 10, 100}},
		{"a change by itself", 1000, []time.Duration{0}, []time.Duration{0}},
		{"the others join", 1000, []time.Duration{0, 10, 100, 999}, []time.Duration{0, 1000}},
		{"two batches", 1000, []time.Duration{0, 10, 1100}, []time.Duration{0, 1000, 2000}},
		{"a pause", 1000, []time.Duration{0, 10, 3000, 3010}, []time.Duration{0, 1000, 3000, 4000}},
		{"just a period apart", 1000, []time.Duration{0, 1000, 2000}, []time.Duration{0, 1000, 2000}},
		{"steady", 100, []time.Duration{0, 40, 80, 120, 160, 200, 240, 280}, []time.Duration{0, 100, 200, 300}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var syncs []time.Duration
				w := New(Options[string]{Controller: "test", Sync: func(context.Context, string) error {
					syncs = append(syncs, time.Since(start)/time.Millisecond)
					return nil
				}})
				b := NewBatcher(w, tc.period*time.Millisecond)
				run(t, w, 1)
				for _, at := range tc.changes {
					time.Sleep(at*time.Millisecond - time.Since(start))
					synctest.Wait()
					b.Add("key")
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !slices.Equal(syncs, tc.syncs) {
					t.Errorf("synced at %d ms, want %d", syncs, tc.syncs)
				}
				b.Forget("key")
				if len(b.last) != 0 {
					t.Errorf("%v is remembered of a key that is gone", b.last)
				}
			})
		})
	}
}
