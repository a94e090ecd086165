// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/history"
)

// revisions is a set's history, and the two of it that count.
type revisions struct {
	all             []*apps.ControllerRevision // sorted
	current, update *apps.ControllerRevision
	collisionCount  int32
}

// readRevisions lists the set's history, adopting what is nobody's.
func (s *syncer) readRevisions(ctx context.Context) ([]*apps.ControllerRevision, error) {
	all, err := s.history.ListControllerRevisions(s.set, controllerKind, s.selector)
	if err != nil {
		return nil, err
	}
	if s.set.DeletionTimestamp == nil {
		if err := s.adoptRevisions(ctx, all); err != nil {
			return nil, err
		}
	}
	history.SortControllerRevisions(all)
	return all, nil
}

// adoptRevisions replaces the orphans in the list by what they are after the adoption.
func (s *syncer) adoptRevisions(ctx context.Context, all []*apps.ControllerRevision) error {
	asked := false
	for i, revision := range all {
		if metav1.GetControllerOfNoCopy(revision) != nil {
			continue
		}
		if !asked {
			if err := s.canAdopt(ctx); err != nil {
				return fmt.Errorf("can't adopt ControllerRevisions: %w", err)
			}
			asked = true
		}
		adopted, err := s.history.AdoptControllerRevision(ctx, s.set, controllerKind, revision)
		if err != nil {
			return err
		}
		s.wrote(apps.Resource("controllerrevisions"), adopted)
		all[i] = adopted
	}
	return nil
}

// canAdopt reads the set live: see controller.BaseControllerRefManager.
func (s *syncer) canAdopt(ctx context.Context) error {
	return controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := s.client.AppsV1().StatefulSets(s.set.Namespace).Get(ctx, s.set.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != s.set.UID {
			return nil, controller.UIDMismatchError(controllerKind.Kind, s.set, fresh.UID)
		}
		return fresh, nil
	})(ctx)
}

// chooseRevisions finds the revisions that the set comes from and goes to. It writes
// one where the template is new, or an older one is wanted back.
func (s *syncer) chooseRevisions(ctx context.Context, all []*apps.ControllerRevision) (*revisions, error) {
	r := &revisions{all: all}
	if s.set.Status.CollisionCount != nil {
		r.collisionCount = *s.set.Status.CollisionCount
	}
	var err error
	if r.update, err = s.updateRevision(ctx, r); err != nil {
		return nil, err
	}
	r.current = r.update
	for _, revision := range all {
		if revision.Name == s.set.Status.CurrentRevision {
			r.current = revision
		}
	}
	return r, nil
}

func (s *syncer) updateRevision(ctx context.Context, r *revisions) (*apps.ControllerRevision, error) {
	patch, err := s.memory.templatePatch(s.set)
	if err != nil {
		return nil, err
	}
	next := history.NextRevision(r.all)
	wanted := history.NewControllerRevision(s.set, controllerKind, s.set.Spec.Template.Labels, runtime.RawExtension{Raw: patch}, next, &r.collisionCount)
	wanted.Annotations = s.set.Annotations
	if len(r.all) > 0 {
		if newest := r.all[len(r.all)-1]; s.holdsTemplate(newest, wanted) {
			return newest, nil
		}
	}
	if equal := history.FindEqualRevisions(r.all, wanted); len(equal) > 0 {
		// Back to an older template.
		return s.renumber(ctx, r.all, equal[len(equal)-1], next)
	}
	created, err := s.history.CreateControllerRevision(ctx, s.set, wanted, &r.collisionCount)
	if err != nil {
		return nil, err
	}
	s.wrote(apps.Resource("controllerrevisions"), created)
	return created, nil
}

// holdsTemplate says whether the newest revision is one of the set's template, or one
// that makes the same Pods.
func (s *syncer) holdsTemplate(newest, wanted *apps.ControllerRevision) bool {
	if string(newest.Data.Raw) == string(wanted.Data.Raw) {
		return true
	}
	if s.memory.same == newest.UID && newest.UID != "" {
		return true
	}
	if !history.EqualRevision(newest, wanted) && !(s.gates.semanticComparison && history.SameTemplate(newest, &s.set.Spec.Template)) {
		return false
	}
	s.memory.same = newest.UID
	return true
}

func (s *syncer) renumber(ctx context.Context, all []*apps.ControllerRevision, older *apps.ControllerRevision, number int64) (*apps.ControllerRevision, error) {
	updated, err := s.history.UpdateControllerRevision(ctx, older, number)
	if err != nil {
		return nil, err
	}
	s.wrote(apps.Resource("controllerrevisions"), updated)
	for i := range all {
		if all[i] == older {
			all[i] = updated
		}
	}
	history.SortControllerRevisions(all)
	return updated, nil
}

// templateOf returns the pod template of a revision, with which a Pod is created. What
// the update revision holds is what the set says.
func (s *syncer) templateOf(r *revisions, revision *apps.ControllerRevision) (*v1.PodTemplateSpec, error) {
	if revision == r.update {
		return &s.set.Spec.Template, nil
	}
	return history.Template(revision)
}

// truncateHistory deletes the oldest of the revisions that no Pod is of and that are
// more than the set wants to keep.
func (s *syncer) truncateHistory(ctx context.Context, r *revisions, pods []*v1.Pod) error {
	var errs []error
	for _, revision := range expired(s.set, r, pods) {
		if s.guard.IsDeleting(s.name, revision.UID) {
			continue
		}
		s.guard.Deleting(s.name, s.set.UID, revision.UID)
		err := s.history.DeleteControllerRevision(ctx, revision)
		if err != nil && !apierrors.IsNotFound(err) {
			s.guard.DeleteFailed(s.name, revision.UID)
			errs = append(errs, fmt.Errorf("deleting controller revision %s: %w", revision.Name, err))
			continue
		}
		klog.FromContext(ctx).V(4).Info("Deleted an old revision", "revision", revision.Name)
	}
	return errors.Join(errs...)
}

// expired returns the revisions that the set keeps no longer, the oldest first.
func expired(set *apps.StatefulSet, r *revisions, pods []*v1.Pod) []*apps.ControllerRevision {
	limit := 10
	if set.Spec.RevisionHistoryLimit != nil {
		limit = int(*set.Spec.RevisionHistoryLimit)
	}
	if limit < 0 || len(r.all) <= limit {
		return nil
	}
	live := map[string]struct{}{r.current.Name: {}, r.update.Name: {}}
	for _, pod := range pods {
		live[revisionOf(pod)] = struct{}{}
	}
	var past []*apps.ControllerRevision
	for _, revision := range r.all {
		if _, ok := live[revision.Name]; !ok {
			past = append(past, revision)
		}
	}
	return past[:max(len(past)-limit, 0)]
}
