// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// gather takes the snapshot of a Deployment from the caches, adopting and releasing ReplicaSets
// on the way.
func (dc *DeploymentController) gather(ctx context.Context, d *apps.Deployment) (snapshot, error) {
	s := snapshot{deployment: d, terminatingReplicas: dc.terminatingReplicas}
	if selectsEverything(d) {
		s.now = dc.clock.Now()
		return s, nil
	}
	owned, err := dc.claim(ctx, d)
	if err != nil {
		return s, err
	}
	dc.guard.Observe(nameOf(d), undeleted(owned))
	owned = controller.FilterReplicaSets(owned, func(rs *apps.ReplicaSet) bool {
		return !dc.guard.IsDeleting(nameOf(d), rs.UID)
	})
	s.family = familyOf(d, owned)
	if d.Spec.Strategy.Type == apps.RecreateDeploymentStrategyType {
		if s.pods, err = dc.podsOf(owned); err != nil {
			return s, err
		}
	}
	s.now = dc.clock.Now()
	return s, nil
}

func undeleted(replicaSets []*apps.ReplicaSet) sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	for _, rs := range replicaSets {
		if rs.DeletionTimestamp == nil {
			uids.Insert(rs.UID)
		}
	}
	return uids
}

// claim returns the ReplicaSets that the Deployment owns, after adopting orphans that its selector
// matches and releasing owned ones that it does not.
func (dc *DeploymentController) claim(ctx context.Context, d *apps.Deployment) ([]*apps.ReplicaSet, error) {
	if d.Spec.Selector == nil { // apps/v1 does not let it in
		return nil, worker.Terminal(fmt.Errorf("deployment %s/%s has no selector", d.Namespace, d.Name))
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, worker.Terminal(fmt.Errorf("deployment %s/%s has an invalid selector: %w", d.Namespace, d.Name, err))
	}
	var candidates []*apps.ReplicaSet
	for _, owner := range []*metav1.OwnerReference{metav1.NewControllerRef(d, controllerKind), nil} {
		objs, err := dc.rsIndexer.ByIndex(controller.ReplicaSetControllerIndex, controller.PodControllerIndexKey(d.Namespace, owner))
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			candidates = append(candidates, obj.(*apps.ReplicaSet))
		}
	}
	patcher := &replicaSetPatcher{dc: dc, owner: d, patched: map[string]*apps.ReplicaSet{}}
	canAdopt := controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := dc.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != d.UID {
			return nil, controller.UIDMismatchError(controllerKind.Kind, d, fresh.UID)
		}
		return fresh, nil
	})
	claimed, err := controller.NewReplicaSetControllerRefManager(patcher, d, selector, controllerKind, canAdopt).ClaimReplicaSets(ctx, candidates)
	for i, rs := range claimed {
		if patched, ok := patcher.patched[rs.Name]; ok {
			claimed[i] = patched
		}
	}
	return claimed, err
}

// replicaSetPatcher adopts and releases. It keeps what the API server returns: an adopted
// ReplicaSet is used in the same round, and its cached version would be refused in a write.
type replicaSetPatcher struct {
	dc      *DeploymentController
	owner   *apps.Deployment
	patched map[string]*apps.ReplicaSet
}

// PatchReplicaSet implements controller.RSControlInterface.
func (p *replicaSetPatcher) PatchReplicaSet(ctx context.Context, namespace, name string, data []byte) error {
	rs, err := p.dc.client.AppsV1().ReplicaSets(namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	p.dc.wroteReplicaSet(p.owner, rs)
	p.patched[name] = rs
	return nil
}

// podsOf returns the pods of each ReplicaSet.
func (dc *DeploymentController) podsOf(replicaSets []*apps.ReplicaSet) (map[types.UID][]*v1.Pod, error) {
	pods := map[types.UID][]*v1.Pod{}
	for _, rs := range replicaSets {
		owned, err := controller.FilterPodsByOwner(dc.podIndexer, &rs.ObjectMeta, replicaSetKind.Kind, false)
		if err != nil {
			return nil, fmt.Errorf("listing pods of replica set %s/%s: %w", rs.Namespace, rs.Name, err)
		}
		pods[rs.UID] = owned
	}
	return pods, nil
}
