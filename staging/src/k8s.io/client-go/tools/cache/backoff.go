// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// firstDelay is how long the first new attempt waits, about.
	firstDelay = 100 * time.Millisecond
	// maxDelay is the most that one waits for a server that answers with errors, or that ends
	// watches at once.
	maxDelay = 30 * time.Second
	// maxDelayUnreachable is the most that one waits for a server that nothing listens for: asking
	// costs nobody anything, and its return is what everything waits for.
	maxDelayUnreachable = 5 * time.Second
	// provenAfter is how long a watch must live to count as one that worked.
	provenAfter = 10 * time.Second
)

// backoff spaces attempts so that whatever a server does, it is not asked in a busy loop: only a
// watch that has lived for a while makes the next attempt prompt. The zero value is ready.
type backoff struct {
	failures int
}

// next returns how long to wait after an attempt that lived that long and ended with the error.
func (b *backoff) next(err error, lived time.Duration) time.Duration {
	if lived >= provenAfter {
		b.failures = 0
		if errors.Is(err, io.EOF) {
			return 0 // The ordinary end of a watch.
		}
	}
	limit := maxDelay
	if utilnet.IsConnectionRefused(err) {
		limit = maxDelayUnreachable
	}
	delay := min(firstDelay<<min(b.failures, 16), limit)
	b.failures++
	delay = jitter(delay)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	return delay
}

// jitter returns between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
