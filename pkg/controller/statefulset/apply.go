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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// apply carries out the plan, step by step, and returns the first error. The replicas of
// the state are kept up to date.
func (s *syncer) apply(ctx context.Context, state *state, plan plan, r *revisions) error {
	for _, step := range plan.steps {
		do := func(ctx context.Context, i int) error { return s.do(ctx, step.actions[i], r) }
		if step.together {
			if _, err := controller.SlowStartBatch(ctx, len(step.actions), controller.SlowStartInitialBatchSize, do); err != nil {
				return s.excuse(ctx, err)
			}
			continue
		}
		for i := range step.actions {
			if err := do(ctx, i); err != nil {
				return s.excuse(ctx, err)
			}
		}
	}
	return nil
}

// excuse drops an error that is no failure of the set's: its namespace is in deletion,
// and the set will be deleted too.
func (s *syncer) excuse(ctx context.Context, err error) error {
	if !s.isNoNews(err) {
		return err
	}
	klog.FromContext(ctx).V(2).Info("Not creating pods in a namespace that is being deleted")
	s.memory.namespaceTerminating = s.clock.Now()
	return nil
}

func (s *syncer) do(ctx context.Context, a action, r *revisions) error {
	switch a.verb {
	case create:
		return s.createPod(ctx, a.replica, r)
	case provide:
		return s.createClaims(ctx, a.replica, a.replica.pod.Name)
	case mend:
		return s.mendPod(ctx, a.replica)
	case retire:
		_, err := s.setClaimOwners(ctx, a.replica)
		return err
	default:
		return s.removePod(ctx, a.replica)
	}
}

// createPod creates the Pod of a replica, after the claims that it misses.
func (s *syncer) createPod(ctx context.Context, replica *replica, r *revisions) error {
	refused := s.memory.namespaceTerminating
	if !refused.IsZero() && s.clock.Since(refused) < terminatingMemory {
		return nil
	}
	revision := r.update
	if wantsCurrent(s.set, replica.ordinal) {
		revision = r.current
	}
	template, err := s.templateOf(r, revision)
	if err != nil {
		return err
	}
	pod, err := newPod(s.set, template, revision.Name, replica.ordinal)
	if err != nil {
		return err
	}
	if err := s.createClaims(ctx, replica, pod.Name); err != nil {
		s.recordPod("Create", pod.Name, err)
		return err
	}
	created, err := s.client.CoreV1().Pods(s.set.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// The cache does not show it yet, or it is somebody else's.
		return err
	}
	s.recordPod("Create", pod.Name, err)
	if err != nil {
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	s.wrote(v1.Resource("pods"), created)
	replica.pod = created
	_, err = s.setClaimOwners(ctx, replica)
	return err
}

// mendPod brings a Pod and its claims to what they must be. There is one event for all.
func (s *syncer) mendPod(ctx context.Context, replica *replica) error {
	changedPod, err := s.mendPodItself(ctx, replica)
	changedClaims := false
	if err == nil {
		changedClaims, err = s.setClaimOwners(ctx, replica)
	}
	if changedPod || changedClaims || err != nil {
		s.recordPod("Update", replica.pod.Name, err)
	}
	return err
}

// mendPodItself patches: the Pod in the cache lacks fields that an update would take away.
func (s *syncer) mendPodItself(ctx context.Context, replica *replica) (changed bool, err error) {
	pod := replica.pod
	mounted := storageMatches(s.set, pod, replica.ordinal)
	if mounted && identityMatches(pod, replica.ordinal) {
		return false, nil
	}
	if !mounted {
		if err := s.createClaims(ctx, replica, pod.Name); err != nil {
			return true, fmt.Errorf("updating pod %s: %w", pod.Name, err)
		}
	}
	patch, err := mendingPatch(s.set, pod, replica.ordinal, mounted)
	if err != nil {
		return true, fmt.Errorf("updating pod %s: %w", pod.Name, err)
	}
	written, err := s.client.CoreV1().Pods(s.set.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return true, fmt.Errorf("updating pod %s: %w", pod.Name, err)
	}
	s.wrote(v1.Resource("pods"), written)
	replica.pod = written
	return true, nil
}

// removePod deletes exactly the replica's Pod.
func (s *syncer) removePod(ctx context.Context, replica *replica) error {
	pod := replica.pod
	s.guard.Deleting(s.name, s.set.UID, pod.UID)
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		replica.going = true
		return nil
	}
	if apierrors.IsConflict(err) {
		// Another one has its name, or the API server had a reason of its own: the next sync tells.
		s.guard.DeleteFailed(s.name, pod.UID)
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	s.recordPod("Delete", pod.Name, err)
	if err != nil {
		s.guard.DeleteFailed(s.name, pod.UID)
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	replica.going = true
	return nil
}

// createClaims creates the claims that a Pod misses, and fails where one is going.
func (s *syncer) createClaims(ctx context.Context, replica *replica, podName string) error {
	var errs []error
	for i := range replica.claims {
		c := &replica.claims[i]
		switch {
		case c.held == nil:
			created, err := s.client.CoreV1().PersistentVolumeClaims(s.set.Namespace).Create(ctx, newClaim(s.set, *c), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			s.recordClaim("Create", podName, c.name, err)
			if err != nil {
				errs = append(errs, fmt.Errorf("failed to create PVC %s: %w", c.name, err))
				continue
			}
			s.wrote(v1.Resource("persistentvolumeclaims"), created)
			c.held = created
		case c.held.DeletionTimestamp != nil:
			errs = append(errs, fmt.Errorf("pvc %s is being deleted", c.name))
		}
	}
	return errors.Join(errs...)
}

// setClaimOwners gives the replica's claims the owners that the retention policy wants.
func (s *syncer) setClaimOwners(ctx context.Context, replica *replica) (changed bool, err error) {
	rule := retention{set: s.set, pod: replica.pod, condemned: replica.condemned}
	for i := range replica.claims {
		c := &replica.claims[i]
		if c.held == nil {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			refs, found := rule.refs(c.held)
			if found != outdated {
				return nil
			}
			changed = true
			return s.updateClaim(ctx, c, refs)
		})
		if err != nil {
			return changed, fmt.Errorf("could not update claim %s for delete policy ownerRefs: %w", c.name, err)
		}
	}
	return changed, nil
}

func (s *syncer) updateClaim(ctx context.Context, c *claim, refs []metav1.OwnerReference) error {
	claims := s.client.CoreV1().PersistentVolumeClaims(s.set.Namespace)
	next := c.held.DeepCopy()
	next.OwnerReferences = refs
	written, err := claims.Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		s.wrote(v1.Resource("persistentvolumeclaims"), written)
		c.held = written
		return nil
	}
	if apierrors.IsConflict(err) {
		if live, getErr := claims.Get(ctx, c.name, metav1.GetOptions{}); getErr == nil && live.UID == c.held.UID {
			c.held = live
		}
	}
	return err
}

// statusTries is how often a status is written before the sync fails.
const statusTries = 2

// writeStatus writes the status if it differs from the one the set has. When somebody
// else was faster, it is tried once more on what is there by then.
func (s *syncer) writeStatus(ctx context.Context, status apps.StatefulSetStatus) error {
	sets := s.client.AppsV1().StatefulSets(s.set.Namespace)
	set := s.set
	for try := 1; statusDiffers(set, &status); try++ {
		klog.FromContext(ctx).V(4).Info("Updating the status", "from", set.Status, "to", status, "generation", set.Generation)
		next := *set
		next.Status = status
		written, err := sets.UpdateStatus(ctx, &next, metav1.UpdateOptions{})
		if err == nil {
			s.wrote(apps.Resource("statefulsets"), written)
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if try == statusTries {
			return fmt.Errorf("updating the status: %w", err)
		}
		if set, err = sets.Get(ctx, s.set.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the set to update its status: %w", err)
		}
		if set.UID != s.set.UID {
			return nil // another one, which has a sync of its own
		}
		// The next sync is to start from no older state than this: the first write may have
		// been carried out after all.
		s.wrote(apps.Resource("statefulsets"), set)
	}
	return nil
}
