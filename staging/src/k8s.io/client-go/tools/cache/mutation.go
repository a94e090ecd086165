// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
)

const (
	// mutationDetectorVariable switches the detector on, as for client-go's informers.
	mutationDetectorVariable = "KUBE_CACHE_MUTATION_DETECTOR"
	mutationCheckPeriod      = time.Second
	// mutationWindow is how long an object is looked at, at least.
	mutationWindow = 2 * time.Minute
)

// mutationDetector finds out who changes cached objects, in tests: it keeps a copy of each object
// for a while and panics when the two differ. A nil detector does nothing.
type mutationDetector struct {
	name string
	fail func(message string)

	// mu guards the following fields.
	mu sync.Mutex
	// young and old are the objects of the present and the last window.
	young, old []original
	turned     time.Time
}

type original struct {
	cached any
	copied runtime.Object
}

// newMutationDetector returns a detector if the environment asks for one.
func newMutationDetector(name string) *mutationDetector {
	if on, err := strconv.ParseBool(os.Getenv(mutationDetectorVariable)); err != nil || !on {
		return nil
	}
	return &mutationDetector{name: name, fail: func(message string) { panic(message) }}
}

func (d *mutationDetector) add(obj any) {
	if d == nil {
		return
	}
	o, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.young = append(d.young, original{obj, o.DeepCopyObject()})
}

// run checks until ctx is done.
func (d *mutationDetector) run(ctx context.Context) {
	ticker := time.NewTicker(mutationCheckPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.check()
			d.turn(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// turn forgets objects that have been looked at for a whole window.
func (d *mutationDetector) turn(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turned.IsZero() {
		d.turned = now
	}
	if now.Sub(d.turned) >= mutationWindow {
		d.old, d.young, d.turned = d.young, nil, now
	}
}

// check fails if an object has changed.
func (d *mutationDetector) check() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, window := range [][]original{d.old, d.young} {
		for _, o := range window {
			if !reflect.DeepEqual(o.cached, any(o.copied)) {
				d.fail(fmt.Sprintf("cache of %s: someone has changed a cached object, which others read. Before and after:\n%s",
					d.name, diff.Diff(o.copied, o.cached)))
			}
		}
	}
}
