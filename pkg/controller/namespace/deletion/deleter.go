// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1clientset "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// conflictRetries bounds the attempts at one write within a round; the next round tries again.
const conflictRetries = 5

// NamespacedResourcesDeleterInterface deletes a namespace that is terminating, with all it holds.
type NamespacedResourcesDeleterInterface interface {
	// Delete does one round for the namespace of that name. nil means that there is nothing (more)
	// to do; *ResourcesRemainingError, that content is going away and another round is needed after
	// a while; any other error, that something failed and another round is needed.
	Delete(ctx context.Context, nsName string) error
}

// EarlyDeleter can begin before a namespace's GracePeriod is over.
type EarlyDeleter interface {
	NamespacedResourcesDeleterInterface
	// HeadStart deletes what can be deleted early; Delete must follow when the GracePeriod is over.
	HeadStart(ctx context.Context, nsName string, caches Caches) error
}

// ResourcesRemainingError says that a round went well and left content that needs time to go.
type ResourcesRemainingError struct {
	// Estimate is how long it may take, in seconds.
	Estimate int64
	// Resources are the kinds of what is left, sorted.
	Resources []schema.GroupVersionResource
}

func (e *ResourcesRemainingError) Error() string {
	return fmt.Sprintf("some content remains in the namespace, estimate %d seconds before it is removed", e.Estimate)
}

// NewNamespacedResourcesDeleter returns a deleter that removes finalizerToken from spec.finalizers
// when a namespace is empty. discoverResourcesFn lists the namespaced resources, as
// discovery.ServerPreferredNamespacedResources does; it may return what it found beside an error.
// The context and podsGetter are part of upstream's signature and not used: no discovery is done
// here, and the pods' metadata tell how long they will take.
func NewNamespacedResourcesDeleter(_ context.Context, nsClient v1clientset.NamespaceInterface,
	metadataClient metadata.Interface, _ v1clientset.PodsGetter,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error),
	finalizerToken v1.FinalizerName) NamespacedResourcesDeleterInterface {
	return NewEarlyDeleter(nsClient, metadataClient, discoverResourcesFn, finalizerToken)
}

// NewEarlyDeleter is NewNamespacedResourcesDeleter for those who can give a namespace a head start.
func NewEarlyDeleter(nsClient v1clientset.NamespaceInterface, metadataClient metadata.Interface,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error), finalizerToken v1.FinalizerName) EarlyDeleter {
	return newDeleter(nsClient, metadataClient, discoverResourcesFn, finalizerToken, clock.RealClock{})
}

func newDeleter(nsClient v1clientset.NamespaceInterface, metadataClient metadata.Interface,
	discoverResourcesFn func() ([]*metav1.APIResourceList, error),
	finalizerToken v1.FinalizerName, c clock.PassiveClock) *namespacedResourcesDeleter {
	return &namespacedResourcesDeleter{
		namespaces: nsClient,
		metadata:   metadataClient,
		discovery:  &discoverer{discover: discoverResourcesFn, clock: c},
		token:      finalizerToken,
		clock:      c,
	}
}

type namespacedResourcesDeleter struct {
	namespaces v1clientset.NamespaceInterface
	metadata   metadata.Interface
	discovery  *discoverer
	token      v1.FinalizerName
	clock      clock.PassiveClock
}

// Delete implements NamespacedResourcesDeleterInterface.
func (d *namespacedResourcesDeleter) Delete(ctx context.Context, nsName string) error {
	roundStart := d.clock.Now()
	ns, err := d.terminating(ctx, nsName)
	if err != nil || ns == nil {
		return err
	}

	o, err := d.deleteContent(ctx, ns, roundStart)
	if err != nil {
		return fmt.Errorf("deleting the content of namespace %s: %w", nsName, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the errors in o are about us, not about the namespace
	}
	if !o.empty() || outlives(ns) {
		ns = d.updateConditions(ctx, ns, o)
	}
	if err := o.err(); err != nil {
		return fmt.Errorf("deleting the content of namespace %s: %w", nsName, err)
	}
	if !o.empty() {
		return o.remainingError()
	}
	return ignoreNotFound(d.finalize(ctx, ns))
}

// terminating returns the live namespace, with its phase set; nil when there is nothing to do: it is
// gone, is not being deleted, or no longer waits for us.
func (d *namespacedResourcesDeleter) terminating(ctx context.Context, nsName string) (*v1.Namespace, error) {
	ns, err := d.namespaces.Get(ctx, nsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting namespace %s: %w", nsName, err)
	}
	if ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, d.token) {
		return nil, nil
	}
	if ns, err = d.markTerminating(ctx, ns); err != nil {
		return nil, ignoreNotFound(err)
	}
	return ns, nil
}

// outlives is true when the namespace does not vanish as soon as our finalizer is gone.
func outlives(ns *v1.Namespace) bool { return len(ns.Spec.Finalizers) > 1 || len(ns.Finalizers) > 0 }

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// markTerminating sets the phase where the API server has not done so already.
func (d *namespacedResourcesDeleter) markTerminating(ctx context.Context, ns *v1.Namespace) (*v1.Namespace, error) {
	return d.retryOnConflict(ctx, ns, func(ns *v1.Namespace) (*v1.Namespace, error) {
		if ns.DeletionTimestamp.IsZero() || ns.Status.Phase == v1.NamespaceTerminating {
			return ns, nil
		}
		updated := ns.DeepCopy()
		updated.Status.Phase = v1.NamespaceTerminating
		return d.namespaces.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	})
}

// finalize removes our finalizer and keeps all others.
func (d *namespacedResourcesDeleter) finalize(ctx context.Context, ns *v1.Namespace) error {
	_, err := d.retryOnConflict(ctx, ns, func(ns *v1.Namespace) (*v1.Namespace, error) {
		if !slices.Contains(ns.Spec.Finalizers, d.token) {
			return ns, nil
		}
		updated := ns.DeepCopy()
		updated.Spec.Finalizers = slices.DeleteFunc(updated.Spec.Finalizers, func(f v1.FinalizerName) bool { return f == d.token })
		return d.namespaces.Finalize(ctx, updated, metav1.UpdateOptions{})
	})
	if err != nil {
		return fmt.Errorf("finalizing namespace %s: %w", ns.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Namespace has been finalized", "namespace", klog.KObj(ns))
	return nil
}

// retryOnConflict calls write, again with the live namespace when the API server reports a conflict.
// It gives up when the namespace is another one by then.
func (d *namespacedResourcesDeleter) retryOnConflict(ctx context.Context, ns *v1.Namespace, write func(*v1.Namespace) (*v1.Namespace, error)) (*v1.Namespace, error) {
	uid := ns.UID
	for attempt := 1; ; attempt++ {
		updated, err := write(ns)
		if !apierrors.IsConflict(err) || attempt == conflictRetries {
			return updated, err
		}
		if ns, err = d.namespaces.Get(ctx, ns.Name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
		if ns.UID != uid {
			return nil, fmt.Errorf("namespace uid has changed across retries")
		}
	}
}

// updateConditions writes what the round learned, unless the namespace says so already. Deleting
// does not depend on it: a failure is logged, and the next round writes again.
func (d *namespacedResourcesDeleter) updateConditions(ctx context.Context, ns *v1.Namespace, o *outcome) *v1.Namespace {
	conditions, changed := mergeConditions(ns.Status.Conditions, conditionsFor(o), d.clock.Now())
	if !changed {
		return ns
	}
	updated := ns.DeepCopy()
	updated.Status.Conditions = conditions
	updated, err := d.namespaces.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not write the namespace's conditions, the next round will", "namespace", klog.KObj(ns))
		return ns
	}
	return updated
}
