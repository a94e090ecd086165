// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// parallelOrphans is how many dependents of one owner are patched at a time.
const parallelOrphans = 50

// syncOrphan lets the dependents of an owner that is deleted with the policy Orphan go on without
// it, then lets the owner go.
func (gc *GarbageCollector) syncOrphan(ctx context.Context, id identity) error {
	b := gc.builder
	m := b.monitorOf(id.kind)
	if m == nil {
		return nil
	}
	owner := m.get(id.namespace, id.name, id.uid)
	if owner == nil || !objectOf(id, owner).orphaning {
		return nil
	}
	if b.anyPending() {
		// A dependent that is not known yet would be deleted when its owner is gone.
		return worker.RequeueAfter(pendingRecheck)
	}
	if err := gc.orphanDependents(ctx, id, b.graph.dependentsOf(id)); err != nil {
		return err
	}
	return gc.removeFinalizer(ctx, target{m.gvr, id}, owner, metav1.FinalizerOrphanDependents)
}

func (gc *GarbageCollector) orphanDependents(ctx context.Context, owner identity, dependents []identity) error {
	klog.FromContext(ctx).V(2).Info("Orphaning", "owner", owner, "dependents", len(dependents))
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelOrphans)
	errs := make([]error, len(dependents))
	for i, d := range dependents {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := gc.orphan(ctx, owner.uid, d); err != nil {
				errs[i] = fmt.Errorf("orphaning %s: %w", d, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("failed to orphan dependents of owner %s, got errors: %w", owner, err)
	}
	return nil
}

// orphan takes the references to an owner away from one dependent.
func (gc *GarbageCollector) orphan(ctx context.Context, owner types.UID, id identity) error {
	m := gc.builder.monitorOf(id.kind)
	if m == nil {
		return errStale
	}
	t := target{m.gvr, id}
	obj := m.get(id.namespace, id.name, id.uid)
	for try := 1; ; try++ {
		if obj != nil {
			refs := obj.GetOwnerReferences()
			isOwner := func(ref metav1.OwnerReference) bool { return ref.UID == owner }
			if !slices.ContainsFunc(refs, isOwner) {
				return nil
			}
			rest := slices.DeleteFunc(slices.Clone(refs), isOwner)
			strategic := deleteRefsBody{UID: id.uid, Refs: []deleteRef{{Patch: "delete", UID: owner}}}
			merge := mergeBody{UID: id.uid, RV: obj.GetResourceVersion(), Refs: &rest}
			_, err := gc.patchStrategic(ctx, t, strategic.json(), merge.json())
			if err == nil || apierrors.IsNotFound(err) {
				return nil
			}
			if !apierrors.IsConflict(err) || try == conflictTries {
				return err
			}
		}
		current, err := gc.getLive(ctx, t.gvr, id)
		if err != nil || current == nil {
			return err
		}
		obj = current
	}
}
