// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const (
	// staleRecheck is the wait for the cache to show what a conflict told.
	staleRecheck = 200 * time.Millisecond
	// versionRecheck is the wait for an API version that a reference names and nobody serves.
	versionRecheck = 30 * time.Second
	// conflictTries is how often a write is tried that others' writes get ahead of.
	conflictTries = 4
)

// errStale says that the cached object is older than the live one in a way that matters.
var errStale = errors.New("the cache is behind the API server")

// syncDelete decides about one object of the graph and does it. What no informer shows is looked up.
func (gc *GarbageCollector) syncDelete(ctx context.Context, id identity) error {
	s, version, ok := gc.builder.graph.status(id)
	if !ok {
		return nil
	}
	switch s {
	case unknown, live:
		return gc.verify(ctx, id, version)
	case observed:
		return gc.collect(ctx, id)
	case absent, invalid:
	}
	return nil
}

// collect decides about an observed object. What it knows of the object is the informer's; every
// write is refused by the API server when that is not the object's present state.
func (gc *GarbageCollector) collect(ctx context.Context, id identity) error {
	m := gc.builder.monitorOf(id.kind)
	if m == nil {
		return nil // No longer watched: the graph is about to forget it.
	}
	if !m.ready.Load() && m.replaces {
		return worker.RequeueAfter(pendingRecheck)
	}
	obj := m.get(id.namespace, id.name, id.uid)
	if obj == nil {
		return nil // Its deletion is in the queue of the graph.
	}
	if gc.showsWritten(id, obj) {
		// The decision would be the same, and the request change nothing.
		return worker.RequeueAfter(staleRecheck)
	}
	f := gc.builder.graph.facts(id, obj.GetOwnerReferences())
	f.deleting, f.finalizers = obj.GetDeletionTimestamp() != nil, obj.GetFinalizers()
	if wait, err := gc.checkVersions(&f); err != nil || wait > 0 {
		return errors.Join(err, requeue(wait))
	}
	p := planItem(f)
	if p.finish && gc.builder.anyPending() {
		// A resource whose first list is yet to come may hold a dependent.
		return worker.RequeueAfter(pendingRecheck)
	}
	if !p.writes() {
		return nil
	}
	gc.noteWrite(id, obj) // before the event that follows from it can come
	err := gc.apply(ctx, target{m.gvr, id}, obj, p)
	if err != nil {
		gc.forgetWrite(id)
	}
	if errors.Is(err, errStale) {
		return worker.RequeueAfter(staleRecheck)
	}
	return err
}

// noteWrite remembers that an object will no longer be what the cache shows.
func (gc *GarbageCollector) noteWrite(id identity, shown metav1.Object) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	gc.written[id] = shown.GetResourceVersion()
}

// showsWritten tells whether the cache shows an object still as it was before the last write.
func (gc *GarbageCollector) showsWritten(id identity, shown metav1.Object) bool {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	version, known := gc.written[id]
	return known && version == shown.GetResourceVersion()
}

// shown forgets the last write to an object once the cache shows what came of it; nil: it is gone.
func (gc *GarbageCollector) shown(id identity, obj metav1.Object) {
	if obj == nil || !gc.showsWritten(id, obj) {
		gc.forgetWrite(id)
	}
}

func (gc *GarbageCollector) forgetWrite(id identity) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	delete(gc.written, id)
}

func requeue(d time.Duration) error {
	if d == 0 {
		return nil
	}
	return worker.RequeueAfter(d)
}

// checkVersions makes dangling references unknown whose API version is not served, while the kind is
// in another: whoever wrote it may know more than the API server does now (a rollback, say).
func (gc *GarbageCollector) checkVersions(f *itemFacts) (time.Duration, error) {
	var wait time.Duration
	for i := range f.refs {
		r := &f.refs[i]
		if r.state != refDangling || r.version == gc.builder.versionOf(r.kind) {
			continue
		}
		_, err := gc.mapper.RESTMapping(r.kind.GroupKind, r.version)
		if err == nil {
			continue
		}
		if !meta.IsNoMatchError(err) {
			return 0, fmt.Errorf("unable to get REST mapping for %s %s: %w", r.kind, r.version, err)
		}
		if _, err := gc.mapper.RESTMapping(r.kind.GroupKind); err == nil {
			r.state, wait = refUnknown, versionRecheck
		}
	}
	return wait, nil
}

// target is an object and the resource by which it is written.
type target struct {
	gvr schema.GroupVersionResource
	id  identity
}

func (gc *GarbageCollector) apply(ctx context.Context, t target, obj metav1.Object, p itemPlan) error {
	switch {
	case p.finish:
		return gc.removeFinalizer(ctx, t, obj, metav1.FinalizerDeleteDependents)
	case len(p.drop) > 0:
		return gc.dropRefs(ctx, t, obj, p.drop)
	}
	if p.unblock {
		updated, err := gc.unblock(ctx, t, obj)
		if err != nil || updated == nil {
			return err
		}
		obj = updated
	}
	return gc.delete(ctx, t, obj, p.delete)
}

// delete deletes an object as it was when it was decided about. When it has changed since, in
// nothing that the decision rests on, only its UID is the precondition: an object that is written
// all the time would never go otherwise.
func (gc *GarbageCollector) delete(ctx context.Context, t target, obj metav1.Object, policy metav1.DeletionPropagation) error {
	klog.FromContext(ctx).V(2).Info("Deleting an object without owners", "object", t.id, "propagationPolicy", policy)
	client := gc.metadataClient.Resource(t.gvr).Namespace(t.id.namespace)
	opts := metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: ptr.To(t.id.uid), ResourceVersion: ptr.To(obj.GetResourceVersion())},
	}
	err := client.Delete(ctx, t.id.name, opts)
	if apierrors.IsConflict(err) {
		current, getErr := gc.getLive(ctx, t.gvr, t.id)
		if getErr != nil {
			return fmt.Errorf("reading %s after a conflict: %w", t.id, getErr)
		}
		if current == nil || current.DeletionTimestamp != nil {
			return nil
		}
		if !sameRefs(current.OwnerReferences, obj.GetOwnerReferences()) || !slices.Equal(current.Finalizers, obj.GetFinalizers()) {
			return errStale
		}
		opts.Preconditions.ResourceVersion = nil
		err = client.Delete(ctx, t.id.name, opts)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsConflict(err) {
		return errStale // Another object has the name.
	}
	return fmt.Errorf("deleting %s: %w", t.id, err)
}

// dropRefs takes owner references away.
func (gc *GarbageCollector) dropRefs(ctx context.Context, t target, obj metav1.Object, drop []*metav1.OwnerReference) error {
	rest, ambiguous := withoutRefs(obj.GetOwnerReferences(), drop)
	body := mergeBody{RV: obj.GetResourceVersion(), UID: t.id.uid, Refs: &rest}
	strategic := deleteRefsBody{UID: t.id.uid}
	for _, d := range drop {
		strategic.Refs = append(strategic.Refs, deleteRef{Patch: "delete", UID: d.UID})
	}
	var err error
	if ambiguous {
		_, err = gc.patch(ctx, t, types.MergePatchType, body.json())
	} else {
		_, err = gc.patchStrategic(ctx, t, strategic.json(), body.json())
	}
	return ignoreGone(err)
}

// unblock makes an object's references non-blocking and returns it as it is then; nil if it is gone.
func (gc *GarbageCollector) unblock(ctx context.Context, t target, obj metav1.Object) (metav1.Object, error) {
	rest := slices.Clone(obj.GetOwnerReferences())
	changed := false
	for i := range rest {
		if blocks(&rest[i]) {
			rest[i].BlockOwnerDeletion, changed = ptr.To(false), true
		}
	}
	if !changed {
		return obj, nil
	}
	updated, err := gc.patch(ctx, t, types.MergePatchType, mergeBody{RV: obj.GetResourceVersion(), UID: t.id.uid, Refs: &rest}.json())
	if err != nil {
		return nil, ignoreGone(err)
	}
	return updated, nil
}

// removeFinalizer takes a finalizer away, first as the cache shows the object, and after a conflict
// as it is.
func (gc *GarbageCollector) removeFinalizer(ctx context.Context, t target, obj metav1.Object, finalizer string) error {
	for try := 1; ; try++ {
		if !hasFinalizer(obj.GetFinalizers(), finalizer) {
			return nil
		}
		rest := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
		body := mergeBody{RV: obj.GetResourceVersion(), UID: t.id.uid, Finalizers: &rest}
		_, err := gc.patch(ctx, t, types.MergePatchType, body.json())
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == conflictTries:
			return fmt.Errorf("removing finalizer %s from %s: %w", finalizer, t.id, err)
		}
		current, err := gc.getLive(ctx, t.gvr, t.id)
		if err != nil {
			return fmt.Errorf("reading %s after a conflict: %w", t.id, err)
		}
		if current == nil {
			return nil
		}
		obj = current
	}
}

func (gc *GarbageCollector) patch(ctx context.Context, t target, pt types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error) {
	return gc.metadataClient.Resource(t.gvr).Namespace(t.id.namespace).Patch(ctx, t.id.name, pt, body, metav1.PatchOptions{})
}

// patchStrategic sends a strategic merge patch, or a merge patch to a resource that does not take it
// (custom resources), which is remembered.
func (gc *GarbageCollector) patchStrategic(ctx context.Context, t target, strategic, merge []byte) (*metav1.PartialObjectMetadata, error) {
	gc.mu.Lock()
	unsupported := gc.noStrategics[t.gvr]
	gc.mu.Unlock()
	if !unsupported {
		obj, err := gc.patch(ctx, t, types.StrategicMergePatchType, strategic)
		if !apierrors.IsUnsupportedMediaType(err) {
			return obj, err
		}
		gc.mu.Lock()
		gc.noStrategics[t.gvr] = true
		gc.mu.Unlock()
	}
	return gc.patch(ctx, t, types.MergePatchType, merge)
}

// ignoreGone makes of the error of a patch: nothing if the object is gone, errStale if it is not
// what it was.
func ignoreGone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return errStale
	}
	return err
}

// mergeBody is a JSON merge patch of an object's metadata. Its UID and resource version are
// preconditions.
type mergeBody struct {
	UID        types.UID
	RV         string
	Finalizers *[]string
	Refs       *[]metav1.OwnerReference
}

func (b mergeBody) json() []byte {
	fields := map[string]any{"resourceVersion": b.RV, "uid": b.UID}
	if b.Finalizers != nil {
		fields["finalizers"] = nonEmpty(*b.Finalizers)
	}
	if b.Refs != nil {
		fields["ownerReferences"] = nonEmpty(*b.Refs)
	}
	return marshal(map[string]any{"metadata": fields})
}

// nonEmpty returns what a merge patch has to say for a list: null removes it.
func nonEmpty[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// deleteRefsBody is a strategic merge patch that takes references away by their owners' UID.
type deleteRefsBody struct {
	UID  types.UID   `json:"uid"`
	Refs []deleteRef `json:"ownerReferences"`
}

type deleteRef struct {
	Patch string    `json:"$patch"`
	UID   types.UID `json:"uid"`
}

func (b deleteRefsBody) json() []byte { return marshal(map[string]any{"metadata": b}) }

// marshal encodes what is known to be encodable.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // Strings, lists and maps of them only.
	}
	return data
}
