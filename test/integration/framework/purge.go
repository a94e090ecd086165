// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// purger deletes what tests leave behind. Tests run without a namespace
// controller more often than with one, so it does that work itself.
type purger struct {
	dynamic   dynamic.Interface
	client    kubernetes.Interface
	resources []schema.GroupVersionResource // namespaced ones that can be listed and deleted
}

func newPurger(cfg *rest.Config, client kubernetes.Interface) (*purger, error) {
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("dynamic client: %w", err)
	}
	lists, err := client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("discovering resources: %w", err)
	}
	p := &purger{dynamic: dyn, client: client}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovering resources: %w", err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && (gv.Group != "events.k8s.io") {
				p.resources = append(p.resources, gv.WithResource(r.Name))
			}
		}
	}
	return p, nil
}

// list returns the objects of a namespace by kind, and what could not be listed.
func (p *purger) list(ctx context.Context, ns string) ([]unstructured.Unstructured, error) {
	found := make([][]unstructured.Unstructured, len(p.resources))
	failed := make([]error, len(p.resources))
	var group errgroup.Group
	group.SetLimit(8)
	for i, gvr := range p.resources {
		group.Go(func() error {
			list, err := p.dynamic.Resource(gvr).Namespace(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				failed[i] = fmt.Errorf("listing %s: %w", gvr.GroupResource(), err)
				return nil
			}
			found[i] = list.Items
			return nil
		})
	}
	_ = group.Wait() // errors are in failed
	return slices.Concat(found...), errors.Join(failed...)
}

// namespace deletes everything in a namespace, at once and whatever finalizers
// say, and then the namespace.
func (p *purger) namespace(ctx context.Context, name string) error {
	err := p.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the test did it
	}
	if err != nil && !apierrors.IsConflict(err) { // conflict: it is being deleted already
		return err
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, gvr := range p.resources {
		group.Go(func() error { return p.empty(ctx, gvr, name) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	ns, err := p.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(ns.Finalizers) > 0 {
		if _, err := p.client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, noFinalizers, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	ns.ResourceVersion, ns.Finalizers, ns.Spec.Finalizers = "", nil, nil
	_, err = p.client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

var noFinalizers = []byte(`{"metadata":{"finalizers":null}}`)

// empty deletes all objects of one resource in a namespace.
func (p *purger) empty(ctx context.Context, gvr schema.GroupVersionResource, ns string) error {
	client := p.dynamic.Resource(gvr).Namespace(ns)
	list, err := client.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the resource is gone: a CRD of the test
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", gvr.GroupResource(), err)
	}
	for _, obj := range list.Items {
		if len(obj.GetFinalizers()) > 0 {
			_, err := client.Patch(ctx, obj.GetName(), types.MergePatchType, noFinalizers, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("taking the finalizers from %s %s: %w", gvr.GroupResource(), obj.GetName(), err)
			}
		}
		// Orphan nothing, wait for nobody: background deletion sets no finalizer.
		err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			PropagationPolicy:  ptr.To(metav1.DeletePropagationBackground),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s: %w", gvr.GroupResource(), obj.GetName(), err)
		}
	}
	return nil
}

// node deletes a node and its lease.
func (p *purger) node(ctx context.Context, name string) error {
	return errors.Join(
		ignoreNotFound(p.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})),
		ignoreNotFound(p.client.CoordinationV1().Leases("kube-node-lease").Delete(ctx, name, metav1.DeleteOptions{})),
	)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
