// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// SlowStartInitialBatchSize is the size of the first batch of SlowStartBatch in the
// workload controllers. A quota or an admission plugin that refuses every Pod of a
// set is then found out with one request instead of hundreds.
const SlowStartInitialBatchSize = 1

// ResyncPeriodFunc gives the period after which an informer hands all objects to its
// handlers again.
type ResyncPeriodFunc func() time.Duration

// StaticResyncPeriodFunc returns a ResyncPeriodFunc that always gives d.
func StaticResyncPeriodFunc(d time.Duration) ResyncPeriodFunc {
	return func() time.Duration { return d }
}

// NoResyncPeriodFunc is the ResyncPeriodFunc of informers that never resync.
func NoResyncPeriodFunc() time.Duration {
	return 0
}

// KeyFunc returns the "namespace/name" key of an object, also of one wrapped in a
// cache.DeletedFinalStateUnknown.
func KeyFunc(obj any) (string, error) {
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// PodKey returns "namespace/name" of a Pod, for logs and messages. It is no identity:
// the next Pod of that name has the same.
func PodKey(pod *v1.Pod) string {
	return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name)
}

// SlowStartBatch calls fn for 0 … count-1, in batches of initialBatchSize and then
// twice as many each time, the calls of a batch in parallel. It stops after the first
// batch in which a call failed, and returns the number of calls that succeeded and the
// first error of that batch. Calls that were never made are in neither number.
func SlowStartBatch(ctx context.Context, count, initialBatchSize int, fn func(ctx context.Context, i int) error) (successes int, err error) {
	next := 0
	for size := min(count, max(initialBatchSize, 1)); size > 0; size = min(2*size, count-next) {
		errs := make([]error, size)
		var wg sync.WaitGroup
		for i := range size {
			wg.Go(func() { errs[i] = fn(ctx, next+i) })
		}
		wg.Wait()

		next += size
		for _, e := range errs {
			if e == nil {
				successes++
			} else if err == nil {
				err = e
			}
		}
		if err != nil {
			return successes, err
		}
	}
	return successes, nil
}
