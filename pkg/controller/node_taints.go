// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// nodeUpdateBackoff paces the retries of a Node that somebody else changes at the same
// time: five tries, 100 to 200 ms apart.
func nodeUpdateBackoff() wait.Backoff {
	return wait.Backoff{Steps: 5, Duration: 100 * time.Millisecond, Jitter: 1.0}
}

// AddOrUpdateTaintOnNode gives the Node each of the taints, in place of the one with the
// same key and effect where there is one. It writes nothing if the Node has them all.
func AddOrUpdateTaintOnNode(ctx context.Context, c clientset.Interface, nodeName string, taints ...*v1.Taint) error {
	if len(taints) == 0 {
		return nil
	}
	return updateNodeTaints(ctx, c, nodeName, func(have []v1.Taint) []v1.Taint {
		for _, taint := range taints {
			have = withTaint(have, taint)
		}
		return have
	})
}

// RemoveTaintOffNode takes the taints off the Node, whatever their values are. node, when
// not nil, is the Node as a cache has it: if it has none of the taints, no request is made.
func RemoveTaintOffNode(ctx context.Context, c clientset.Interface, nodeName string, node *v1.Node, taints ...*v1.Taint) error {
	if len(taints) == 0 {
		return nil
	}
	remove := func(have v1.Taint) bool {
		return slices.ContainsFunc(taints, have.MatchTaint)
	}
	if node != nil && !slices.ContainsFunc(node.Spec.Taints, remove) {
		return nil
	}
	return updateNodeTaints(ctx, c, nodeName, func(have []v1.Taint) []v1.Taint {
		return slices.DeleteFunc(have, remove)
	})
}

// updateNodeTaints changes a Node's taints by change, which may modify what it is given,
// and tries again when somebody else has changed the Node meanwhile.
func updateNodeTaints(ctx context.Context, c clientset.Interface, nodeName string, change func([]v1.Taint) []v1.Taint) error {
	get := nodeGetter(c, nodeName)
	return retry.RetryOnConflict(nodeUpdateBackoff(), func() error {
		oldNode, err := get(ctx)
		if err != nil {
			return err
		}
		newNode := oldNode.DeepCopy()
		newNode.Spec.Taints = change(newNode.Spec.Taints)
		if equality.Semantic.DeepEqual(oldNode.Spec.Taints, newNode.Spec.Taints) {
			return nil
		}
		return PatchNodeTaints(ctx, c, nodeName, oldNode, newNode)
	})
}

// nodeGetter returns a function that reads a Node: the first time from the API server's
// cache, which is cheap and mostly current, and live when that was not good enough.
func nodeGetter(c clientset.Interface, nodeName string) func(context.Context) (*v1.Node, error) {
	options := metav1.GetOptions{ResourceVersion: "0"}
	return func(ctx context.Context) (*v1.Node, error) {
		node, err := c.CoreV1().Nodes().Get(ctx, nodeName, options)
		options = metav1.GetOptions{}
		return node, err
	}
}

// withTaint returns taints with taint in the place of its namesake, or at the end.
func withTaint(taints []v1.Taint, taint *v1.Taint) []v1.Taint {
	for i := range taints {
		if taint.MatchTaint(&taints[i]) {
			if !equality.Semantic.DeepEqual(taints[i], *taint) {
				taints[i] = *taint
			}
			return taints
		}
	}
	return append(taints, *taint)
}

// PatchNodeTaints changes the Node's taints from those of oldNode to those of newNode.
// A Node that is no longer as old as oldNode gives a conflict: a taint list is merged by
// key, and two writers could otherwise undo each other's work.
func PatchNodeTaints(ctx context.Context, c clientset.Interface, nodeName string, oldNode *v1.Node, newNode *v1.Node) error {
	// Without the version in the old document, the patch contains it: the precondition.
	old := oldNode.DeepCopy()
	old.ResourceVersion = ""
	wanted := oldNode.DeepCopy()
	wanted.Spec.Taints = newNode.Spec.Taints
	patch, err := nodePatch(old, wanted)
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Nodes().Patch(ctx, nodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// AddOrUpdateLabelsOnNode gives the Node the labels, and leaves its others alone. It
// writes nothing if the Node has them all.
func AddOrUpdateLabelsOnNode(ctx context.Context, c clientset.Interface, nodeName string, labelsToUpdate map[string]string) error {
	get := nodeGetter(c, nodeName)
	return retry.RetryOnConflict(nodeUpdateBackoff(), func() error {
		node, err := get(ctx)
		if err != nil {
			return err
		}
		newNode := node.DeepCopy()
		if newNode.Labels == nil {
			newNode.Labels = map[string]string{}
		}
		maps.Copy(newNode.Labels, labelsToUpdate)
		if maps.Equal(node.Labels, newNode.Labels) {
			return nil
		}
		patch, err := nodePatch(node, newNode)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Nodes().Patch(ctx, nodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func nodePatch(oldNode, newNode *v1.Node) ([]byte, error) {
	oldData, err := json.Marshal(oldNode)
	if err != nil {
		return nil, fmt.Errorf("encoding node %s: %w", oldNode.Name, err)
	}
	newData, err := json.Marshal(newNode)
	if err != nil {
		return nil, fmt.Errorf("encoding node %s: %w", oldNode.Name, err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(oldData, newData, v1.Node{})
	if err != nil {
		return nil, fmt.Errorf("creating a patch for node %s: %w", oldNode.Name, err)
	}
	return patch, nil
}
