// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// clockCheck is how often the wall clock is compared with the one that timers run by.
	clockCheck = 5 * time.Second
	// clockJump is a difference between the two that is no mere adjustment.
	clockJump = 2 * time.Second
)

// watchClock looks at all CronJobs anew when the wall clock was set: the timers that wait for their
// next times run by the monotonic clock and do not notice (a virtual machine that was resumed, a
// first answer of a time server).
func (c *ControllerV2) watchClock(ctx context.Context) {
	ticker := time.NewTicker(clockCheck)
	defer ticker.Stop()
	start := time.Now()
	offset := c.now().Sub(start)
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		// Since start by the wall clock, less that by the monotonic one.
		drift := c.now().Round(0).Sub(start.Round(0)) - time.Since(start)
		if jump := drift - offset; jump.Abs() > clockJump {
			klog.FromContext(ctx).Info("The clock was set: looking at all cron jobs anew", "controller", controllerName, "by", jump)
			c.enqueueAll(ctx)
			offset = drift
		}
	}
}

func (c *ControllerV2) enqueueAll(ctx context.Context) {
	all, err := c.cronJobs.List(labels.Everything())
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not list cron jobs from the cache", "controller", controllerName)
		return
	}
	for _, cj := range all {
		c.queue.AddInitial(cache.MetaObjectToName(cj))
	}
}
