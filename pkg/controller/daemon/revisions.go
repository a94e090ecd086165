// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/history"
)

var revisionResource = apps.Resource("controllerrevisions")

// revisions is the history of a DaemonSet.
type revisions struct {
	current *apps.ControllerRevision
	old     []*apps.ControllerRevision // oldest first
}

// hash is what the Pods of the current template are labelled with.
func (r *revisions) hash() string { return r.current.Labels[apps.DefaultDaemonSetUniqueLabelKey] }

// readRevisions returns the DaemonSet's history, after adopting, with one revision, of the highest
// number, for the current template.
func (s *syncer) readRevisions(ctx context.Context, pods []*v1.Pod) (*revisions, error) {
	all, err := s.claimRevisions(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := s.snapshot(all)
	if err != nil {
		return nil, err
	}
	var same, old []*apps.ControllerRevision
	for _, revision := range all {
		if history.EqualRevision(revision, wanted) || history.SameTemplate(revision, &s.ds.Spec.Template) {
			same = append(same, revision)
		} else {
			old = append(old, revision)
		}
	}
	r := &revisions{old: old}
	next := history.NextRevision(old)
	switch len(same) {
	case 0:
		wanted.Revision = next
		r.current, err = s.create(ctx, wanted)
	case 1:
		r.current, err = s.renumber(ctx, same[0], next)
	default:
		if r.current, err = s.dedupe(ctx, same, pods); err == nil {
			r.current, err = s.renumber(ctx, r.current, next)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// claimRevisions returns the DaemonSet's revisions, newest last. Each has the label with its hash.
func (s *syncer) claimRevisions(ctx context.Context) ([]*apps.ControllerRevision, error) {
	listed, err := s.history.ListControllerRevisions(s.ds, controllerKind, s.selector)
	if err != nil {
		return nil, err
	}
	control := controller.RealControllerRevisionControl{KubeClient: s.client}
	manager := controller.NewControllerRevisionControllerRefManager(control, s.ds, s.selector, controllerKind, s.canAdopt)
	claimed, err := manager.ClaimControllerRevisions(ctx, listed)
	if err != nil {
		return nil, err
	}
	for i, revision := range claimed {
		if _, ok := revision.Labels[apps.DefaultDaemonSetUniqueLabelKey]; ok {
			continue
		}
		labelled := revision.DeepCopy()
		if labelled.Labels == nil {
			labelled.Labels = map[string]string{}
		}
		labelled.Labels[apps.DefaultDaemonSetUniqueLabelKey] = labelled.Name
		if claimed[i], err = s.updateRevision(ctx, labelled); err != nil {
			return nil, err
		}
	}
	history.SortControllerRevisions(claimed)
	return claimed, nil
}

func (s *syncer) updateRevision(ctx context.Context, revision *apps.ControllerRevision) (*apps.ControllerRevision, error) {
	updated, err := s.client.AppsV1().ControllerRevisions(revision.Namespace).Update(ctx, revision, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("updating controller revision %s: %w", revision.Name, err)
	}
	s.wrote(revisionResource, updated)
	return updated, nil
}

// snapshot returns the revision of the current template as it would be created.
func (s *syncer) snapshot(all []*apps.ControllerRevision) (*apps.ControllerRevision, error) {
	patch, err := history.TemplatePatch(&s.ds.Spec.Template)
	if err != nil {
		return nil, err
	}
	hash := controller.ComputeHash(&s.ds.Spec.Template, s.ds.Status.CollisionCount)
	labels := map[string]string{}
	for key, value := range s.ds.Spec.Template.Labels {
		labels[key] = value
	}
	labels[apps.DefaultDaemonSetUniqueLabelKey] = hash
	return &apps.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.ds.Namespace,
			Name:            s.ds.Name + "-" + hash,
			Labels:          labels,
			Annotations:     s.ds.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.ds, controllerKind)},
		},
		Data:     runtime.RawExtension{Raw: patch},
		Revision: history.NextRevision(all),
	}, nil
}

// create creates a revision. When another template has taken the name the collision count is raised,
// and the error has the sync retried with the next name.
func (s *syncer) create(ctx context.Context, revision *apps.ControllerRevision) (*apps.ControllerRevision, error) {
	revisions := s.client.AppsV1().ControllerRevisions(s.ds.Namespace)
	created, err := revisions.Create(ctx, revision, metav1.CreateOptions{})
	if err == nil {
		s.wrote(revisionResource, created)
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating controller revision %s: %w", revision.Name, err)
	}
	existing, getErr := revisions.Get(ctx, revision.Name, metav1.GetOptions{})
	if getErr != nil {
		return nil, fmt.Errorf("reading the controller revision of the same name: %w", getErr)
	}
	if history.EqualRevision(existing, revision) {
		return existing, nil
	}
	live, getErr := s.client.AppsV1().DaemonSets(s.ds.Namespace).Get(ctx, s.ds.Name, metav1.GetOptions{})
	if getErr != nil {
		return nil, fmt.Errorf("reading the daemon set's collision count: %w", getErr)
	}
	had, has := collisions(s.ds), collisions(live)
	if live.UID != s.ds.UID || had != has {
		return nil, fmt.Errorf("found a stale collision count (%d, expected %d) of DaemonSet %q while processing; will retry until it is updated", had, has, s.ds.Name)
	}
	live.Status.CollisionCount = new(has + 1)
	written, updateErr := s.client.AppsV1().DaemonSets(s.ds.Namespace).UpdateStatus(ctx, live, metav1.UpdateOptions{})
	if updateErr != nil {
		return nil, fmt.Errorf("raising the collision count: %w", updateErr)
	}
	s.wrote(daemonSetResource, written)
	klog.FromContext(ctx).V(2).Info("Found a hash collision for DaemonSet - bumping collisionCount to resolve it", "collisionCount", has+1)
	return nil, err
}

func collisions(ds *apps.DaemonSet) int32 {
	if ds.Status.CollisionCount == nil {
		return 0
	}
	return *ds.Status.CollisionCount
}

// renumber makes the revision the newest.
func (s *syncer) renumber(ctx context.Context, revision *apps.ControllerRevision, number int64) (*apps.ControllerRevision, error) {
	if revision.Revision >= number {
		return revision, nil
	}
	updated, err := s.history.UpdateControllerRevision(ctx, revision, number)
	if err != nil {
		return nil, err
	}
	s.wrote(revisionResource, updated)
	return updated, nil
}

// dedupe keeps the newest of several revisions of the same template, gives the Pods of the others its
// hash, and deletes the others.
func (s *syncer) dedupe(ctx context.Context, same []*apps.ControllerRevision, pods []*v1.Pod) (*apps.ControllerRevision, error) {
	keep := same[len(same)-1]
	hash := keep.Labels[apps.DefaultDaemonSetUniqueLabelKey]
	for _, revision := range same[:len(same)-1] {
		other := revision.Labels[apps.DefaultDaemonSetUniqueLabelKey]
		for _, pod := range pods {
			if pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] != other || other == hash {
				continue
			}
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, pod.UID, apps.DefaultDaemonSetUniqueLabelKey, hash)
			if err := s.relabel(ctx, pod, []byte(patch)); err != nil {
				return nil, err
			}
		}
		if err := s.history.DeleteControllerRevision(ctx, revision); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("deleting controller revision %s: %w", revision.Name, err)
		}
	}
	return keep, nil
}

// truncateHistory deletes the oldest revisions beyond the limit, except those that Pods are made of.
func (s *syncer) truncateHistory(ctx context.Context, r *revisions, pods []*v1.Pod) error {
	limit := 10
	if s.ds.Spec.RevisionHistoryLimit != nil {
		limit = int(*s.ds.Spec.RevisionHistoryLimit)
	}
	inUse := map[string]bool{}
	for _, pod := range pods {
		inUse[pod.Labels[apps.DefaultDaemonSetUniqueLabelKey]] = true
	}
	past := slices.DeleteFunc(slices.Clone(r.old), func(revision *apps.ControllerRevision) bool {
		return inUse[revision.Labels[apps.DefaultDaemonSetUniqueLabelKey]] || s.guard.IsDeleting(s.name, revision.UID)
	})
	excess := len(r.old) - limit
	var errs []error
	for _, revision := range past[:max(min(excess, len(past)), 0)] {
		s.guard.Deleting(s.name, s.ds.UID, revision.UID)
		err := s.history.DeleteControllerRevision(ctx, revision)
		if err != nil && !apierrors.IsNotFound(err) {
			s.guard.DeleteFailed(s.name, revision.UID)
			errs = append(errs, fmt.Errorf("deleting controller revision %s: %w", revision.Name, err))
		}
	}
	return errors.Join(errs...)
}
