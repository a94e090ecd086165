// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// The functions of this file are for tools and tests. Their signatures, upstream's, have no
// context: they use one of their own, and the controller does not call them.

// RsListFunc lists the ReplicaSets of a namespace.
type RsListFunc func(string, metav1.ListOptions) ([]*apps.ReplicaSet, error)

// podListFunc lists the Pods of a namespace.
type podListFunc func(string, metav1.ListOptions) (*v1.PodList, error)

// RsListFromClient returns an RsListFunc that asks the API server.
func RsListFromClient(c appsclient.AppsV1Interface) RsListFunc {
	return func(namespace string, options metav1.ListOptions) ([]*apps.ReplicaSet, error) {
		list, err := c.ReplicaSets(namespace).List(context.TODO(), options)
		if err != nil {
			return nil, err
		}
		var sets []*apps.ReplicaSet
		for i := range list.Items {
			sets = append(sets, &list.Items[i])
		}
		return sets, nil
	}
}

// ListReplicaSets returns the ReplicaSets that the Deployment selects and owns.
func ListReplicaSets(deployment *apps.Deployment, getRSList RsListFunc) ([]*apps.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	all, err := getRSList(deployment.Namespace, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return controller.FilterReplicaSets(all, func(rs *apps.ReplicaSet) bool {
		return metav1.IsControlledBy(rs, deployment)
	}), nil
}

// ListPods returns the Pods that the Deployment selects and one of the ReplicaSets owns.
func ListPods(deployment *apps.Deployment, rsList []*apps.ReplicaSet, getPodList podListFunc) (*v1.PodList, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	all, err := getPodList(deployment.Namespace, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	owners := sets.New[types.UID]()
	for _, rs := range rsList {
		owners.Insert(rs.UID)
	}
	owned := &v1.PodList{Items: make([]v1.Pod, 0, len(all.Items))}
	for i := range all.Items {
		if ref := metav1.GetControllerOfNoCopy(&all.Items[i]); ref != nil && owners.Has(ref.UID) {
			owned.Items = append(owned.Items, all.Items[i])
		}
	}
	return owned, nil
}

// WaitForObservedDeployment asks for the Deployment, at once and then every interval, until its
// status speaks of at least desiredGeneration. It returns an error after timeout, and the first
// that getDeploymentFunc returns.
func WaitForObservedDeployment(getDeploymentFunc func() (*apps.Deployment, error), desiredGeneration int64, interval, timeout time.Duration) error {
	return wait.PollUntilContextTimeout(context.TODO(), interval, timeout, true, func(context.Context) (bool, error) {
		deployment, err := getDeploymentFunc()
		if err != nil {
			return false, err
		}
		return deployment.Status.ObservedGeneration >= desiredGeneration, nil
	})
}
