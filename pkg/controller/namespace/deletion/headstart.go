// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// GracePeriod is how long after its deletion a namespace may still get objects, through API servers
// that have not seen the deletion. It is not let go before, nor is a round that begins earlier its
// last.
const GracePeriod = 5 * time.Second

// Caches tells what caches of this process, kept for others, know of a namespace's content.
type Caches interface {
	// Count returns how many objects of the resource are in the namespace. known is false when no
	// cache covers the resource, or it is not filled yet.
	Count(resource schema.GroupVersionResource, namespace string) (count int, known bool)
}

// HeadStart deletes content of a namespace whose GracePeriod is running: the pods, and when a live
// look shows that there are none, what caches know to be there. It asks for each kind once and looks
// for nothing, since Delete looks at everything afterwards: what it misses costs time and no more.
// *ResourcesRemainingError says that pods are left; nil, that there is nothing (more) to do early.
func (d *namespacedResourcesDeleter) HeadStart(ctx context.Context, nsName string, caches Caches) error {
	ns, err := d.terminating(ctx, nsName)
	if err != nil || ns == nil {
		return err
	}
	known, err := d.discovery.recent(ctx)
	if err != nil {
		return err
	}
	pods, others := splitPods(known.targets, known.complete())
	o := &outcome{}
	d.deleteGroup(ctx, ns, pods, o)
	if err := o.err(); err != nil {
		return fmt.Errorf("deleting the content of namespace %s: %w", nsName, err)
	}
	if !o.empty() {
		return o.remainingError()
	}
	return d.deleteCached(ctx, ns, others, caches)
}

// deleteCached sends one request for each target that has objects in a cache.
func (d *namespacedResourcesDeleter) deleteCached(ctx context.Context, ns *v1.Namespace, targets []target, caches Caches) error {
	var group errgroup.Group
	group.SetLimit(parallelTargets)
	errs := make([]error, len(targets))
	for i, t := range targets {
		if count, known := caches.Count(t.gvr, ns.Name); !known || count == 0 || !t.deleteCollection {
			continue
		}
		group.Go(func() error {
			errs[i] = d.deleteUnseen(ctx, d.metadata.Resource(t.gvr).Namespace(ns.Name), t)
			return nil
		})
	}
	_ = group.Wait() // its functions return no error: each target has its own
	if err := utilerrors.NewAggregate(errs); err != nil {
		return fmt.Errorf("deleting the content of namespace %s: %w", ns.Name, err)
	}
	return nil
}
