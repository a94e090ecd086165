// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// apply carries a plan out and reports. It stops at the first write that fails; what was done
// until then is reported all the same, so that a Deployment whose ReplicaSet cannot be changed
// still tells its state and runs into its deadline.
func (dc *DeploymentController) apply(ctx context.Context, s snapshot, p plan) error {
	d := s.deployment
	if p.warning != nil {
		dc.emit(d, *p.warning)
	}
	done := outcome{family: s.family.clone()}
	if p.create != nil {
		created, err := dc.createReplicaSet(ctx, s, p.create)
		if err != nil || created == nil {
			return err
		}
		done.family.newRS, done.created = created, true
	}
	err := dc.writeReplicaSets(ctx, d, p, &done.family)
	if stale(err) || ctx.Err() != nil {
		return err // what was decided on is not so any more; decide anew
	}
	if p.rollback != nil {
		if err != nil {
			return err
		}
		return dc.rollBack(ctx, d, *p.rollback)
	}
	r := makeReport(s, p.report, done)
	if err := errors.Join(err, dc.writeStatus(ctx, r)); err != nil {
		return err
	}
	if r.checkAfter > 0 {
		return worker.RequeueAfter(r.checkAfter)
	}
	return nil
}

// stale says whether a write was refused because its object has changed or is gone.
func stale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// writeReplicaSets makes the plan's updates and deletions and notes in f what became of each.
func (dc *DeploymentController) writeReplicaSets(ctx context.Context, d *apps.Deployment, p plan, f *family) error {
	for _, u := range p.updates {
		updated, err := dc.client.AppsV1().ReplicaSets(d.Namespace).Update(ctx, u.is, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("updating replica set %s: %w", klog.KObj(u.is), err)
		}
		dc.wroteReplicaSet(d, updated)
		f.replace(u.was, updated)
		if from, to := sizeOf(u.was), sizeOf(u.is); from != to {
			dc.emit(d, scaled(u.is.Name, from, to))
			klog.FromContext(ctx).V(2).Info("Scaled a replica set", "replicaSet", klog.KObj(u.is), "from", from, "to", to)
		}
	}
	for _, rs := range p.deletes {
		if err := dc.deleteReplicaSet(ctx, d, rs); err != nil {
			return err
		}
		f.remove(rs)
	}
	return nil
}

// deleteReplicaSet deletes an old ReplicaSet if it still is as the plan saw it: one that somebody
// scales up at this moment stays.
func (dc *DeploymentController) deleteReplicaSet(ctx context.Context, d *apps.Deployment, rs *apps.ReplicaSet) error {
	owner := nameOf(d)
	dc.guard.Deleting(owner, d.UID, rs.UID)
	err := dc.client.AppsV1().ReplicaSets(d.Namespace).Delete(ctx, rs.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &rs.UID, ResourceVersion: &rs.ResourceVersion},
	})
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("Deleted a replica set beyond the revision history limit", "replicaSet", klog.KObj(rs))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	dc.guard.DeleteFailed(owner, rs.UID)
	return fmt.Errorf("deleting replica set %s: %w", klog.KObj(rs), err)
}

// createReplicaSet creates the new ReplicaSet, or reports why it cannot. It returns nil without an
// error when the name was taken and the next round will try another.
func (dc *DeploymentController) createReplicaSet(ctx context.Context, s snapshot, rs *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	d := s.deployment
	created, err := dc.client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, rs, metav1.CreateOptions{})
	switch {
	case err == nil:
		dc.wroteReplicaSet(d, created)
		klog.FromContext(ctx).V(2).Info("Created a replica set", "replicaSet", klog.KObj(created), "replicas", sizeOf(created))
		if size := sizeOf(created); size > 0 {
			dc.emit(d, scaled(created.Name, 0, size))
		}
		return created, nil
	case apierrors.IsAlreadyExists(err):
		return nil, dc.nameTaken(ctx, s, rs, err)
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), errors.Is(err, gate.ErrFenced), ctx.Err() != nil:
		// No news for the Deployment's owner: the namespace goes, or this manager does.
		return nil, fmt.Errorf("creating replica set %s: %w", klog.KObj(rs), err)
	}
	m := createFailed(rs.Name, err)
	statusErr := dc.writeStatus(ctx, reportCreateFailure(s, m.text))
	dc.emit(d, m)
	return nil, errors.Join(fmt.Errorf("creating replica set %s: %w", klog.KObj(rs), err), statusErr)
}

// nameTaken finds out who has the name of the ReplicaSet that could not be created. It is either
// what we wanted, which the cache showed too late, or something else: then the hashes have
// collided, and the next one gets another.
func (dc *DeploymentController) nameTaken(ctx context.Context, s snapshot, wanted *apps.ReplicaSet, createErr error) error {
	d := s.deployment
	rs, err := dc.rsLister.ReplicaSets(d.Namespace).Get(wanted.Name)
	if err != nil {
		return errors.Join(fmt.Errorf("creating replica set %s: %w", klog.KObj(wanted), createErr), err)
	}
	if metav1.IsControlledBy(rs, d) && util.EqualIgnoreHash(&d.Spec.Template, &rs.Spec.Template) {
		return worker.RequeueAfter(soon)
	}
	r := reportCollision(s)
	klog.FromContext(ctx).V(2).Info("The hash of the pod template collides, trying another",
		"replicaSet", klog.KObj(rs), "collisionCount", *r.deployment.Status.CollisionCount)
	// The event of this write brings the Deployment back, with the new count.
	return dc.writeStatus(ctx, r)
}

func (dc *DeploymentController) rollBack(ctx context.Context, d *apps.Deployment, r rollback) error {
	updated, err := dc.client.AppsV1().Deployments(d.Namespace).Update(ctx, r.deployment, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("rolling back deployment %s: %w", klog.KObj(d), err)
	}
	dc.guard.WroteAt(nameOf(d), d.UID, deploymentResource, updated.ResourceVersion)
	dc.emit(d, r.message)
	return nil
}

func (dc *DeploymentController) writeStatus(ctx context.Context, r report) error {
	if r.deployment == nil {
		return nil
	}
	updated, err := dc.client.AppsV1().Deployments(r.deployment.Namespace).UpdateStatus(ctx, r.deployment, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(2).Info("The deployment is gone, its status goes with it")
		return nil
	}
	if err != nil {
		return fmt.Errorf("updating status of deployment %s: %w", klog.KObj(r.deployment), err)
	}
	dc.guard.WroteAt(nameOf(updated), updated.UID, deploymentResource, updated.ResourceVersion)
	return nil
}

func (dc *DeploymentController) wroteReplicaSet(d *apps.Deployment, rs *apps.ReplicaSet) {
	dc.guard.WroteAt(nameOf(d), d.UID, replicaSetResource, rs.ResourceVersion)
}
