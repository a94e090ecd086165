// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// Interface reads and writes the history of parents of one kind.
type Interface interface {
	// ListControllerRevisions returns, from the cache, the revisions that selector matches
	// and that parent, an object of the given kind, controls or nobody does. They are
	// read-only.
	ListControllerRevisions(parent metav1.Object, parentKind schema.GroupVersionKind, selector labels.Selector) ([]*apps.ControllerRevision, error)
	// CreateControllerRevision creates the revision under a name made of the parent's, the
	// data and *collisionCount, which it raises while the name is taken by other data. A
	// revision with the same data under that name is returned as it is, even one that a
	// deleted parent of the same name left: when that is collected, the next sync makes a new one.
	CreateControllerRevision(ctx context.Context, parent metav1.Object, revision *apps.ControllerRevision, collisionCount *int32) (*apps.ControllerRevision, error)
	// UpdateControllerRevision gives a revision another number. It sends nothing when the
	// revision has that number.
	UpdateControllerRevision(ctx context.Context, revision *apps.ControllerRevision, newRevision int64) (*apps.ControllerRevision, error)
	// DeleteControllerRevision deletes exactly this revision. A Conflict is no proof that
	// it is gone: another one may have its name, or the API server a reason of its own.
	DeleteControllerRevision(ctx context.Context, revision *apps.ControllerRevision) error
	// AdoptControllerRevision makes parent, which is of the given kind, the controller of
	// an orphan.
	AdoptControllerRevision(ctx context.Context, parent metav1.Object, parentKind schema.GroupVersionKind, revision *apps.ControllerRevision) (*apps.ControllerRevision, error)
	// ReleaseControllerRevision removes parent from the revision's owners. It returns nil
	// and no error where there was nothing to release.
	ReleaseControllerRevision(ctx context.Context, parent metav1.Object, revision *apps.ControllerRevision) (*apps.ControllerRevision, error)
}

// NewHistory returns the history in a cluster. The indexer is the one of the revisions'
// informer and must have controller.ControllerRevisionControllerIndex
// (controller.AddControllerRevisionControllerIndexer).
func NewHistory(client clientset.Interface, indexer cache.Indexer) Interface {
	return &realHistory{client: client, indexer: indexer}
}

type realHistory struct {
	client  clientset.Interface
	indexer cache.Indexer
}

func (h *realHistory) ListControllerRevisions(parent metav1.Object, parentKind schema.GroupVersionKind, selector labels.Selector) ([]*apps.ControllerRevision, error) {
	owner := metav1.NewControllerRef(parent, parentKind)
	var revisions []*apps.ControllerRevision
	for _, key := range []string{
		controller.PodControllerIndexKey(parent.GetNamespace(), owner),
		controller.PodControllerIndexKey(parent.GetNamespace(), nil),
	} {
		objs, err := h.indexer.ByIndex(controller.ControllerRevisionControllerIndex, key)
		if err != nil {
			return nil, fmt.Errorf("looking up controller revisions in index %s: %w", controller.ControllerRevisionControllerIndex, err)
		}
		for _, obj := range objs {
			if revision, ok := obj.(*apps.ControllerRevision); ok && selector.Matches(labels.Set(revision.Labels)) {
				revisions = append(revisions, revision)
			}
		}
	}
	return revisions, nil
}

func (h *realHistory) CreateControllerRevision(ctx context.Context, parent metav1.Object, revision *apps.ControllerRevision, collisionCount *int32) (*apps.ControllerRevision, error) {
	if collisionCount == nil {
		return nil, errors.New("collisionCount should not be nil")
	}
	wanted := revision.DeepCopy()
	revisions := h.client.AppsV1().ControllerRevisions(parent.GetNamespace())
	for {
		// The hash label stays the one of the first try, as upstream leaves it.
		wanted.Name = ControllerRevisionName(parent.GetName(), HashControllerRevision(revision, collisionCount))
		created, err := revisions.Create(ctx, wanted, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			if err != nil {
				return nil, fmt.Errorf("creating controller revision %s: %w", wanted.Name, err)
			}
			return created, nil
		}
		existing, err := revisions.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading controller revision %s, whose name is wanted: %w", wanted.Name, err)
		}
		if EqualRevision(existing, revision) {
			return existing, nil
		}
		*collisionCount++
	}
}

func (h *realHistory) UpdateControllerRevision(ctx context.Context, revision *apps.ControllerRevision, newRevision int64) (*apps.ControllerRevision, error) {
	updated := revision.DeepCopy()
	revisions := h.client.AppsV1().ControllerRevisions(revision.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if updated.Revision == newRevision {
			return nil
		}
		next := updated.DeepCopy()
		next.Revision = newRevision
		written, err := revisions.Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			updated = written
			return nil
		}
		if apierrors.IsConflict(err) {
			// Read live: the cache that was too old once may still be.
			if live, getErr := revisions.Get(ctx, revision.Name, metav1.GetOptions{}); getErr == nil && live.UID == revision.UID {
				updated = live
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("giving controller revision %s the number %d: %w", revision.Name, newRevision, err)
	}
	return updated, nil
}

func (h *realHistory) DeleteControllerRevision(ctx context.Context, revision *apps.ControllerRevision) error {
	options := metav1.DeleteOptions{}
	if revision.UID != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(revision.UID))
	}
	return h.client.AppsV1().ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name, options)
}

func (h *realHistory) AdoptControllerRevision(ctx context.Context, parent metav1.Object, parentKind schema.GroupVersionKind, revision *apps.ControllerRevision) (*apps.ControllerRevision, error) {
	if owner := metav1.GetControllerOf(revision); owner != nil {
		return nil, fmt.Errorf("attempt to adopt revision owned by %v", owner)
	}
	patcher := &patcher{client: h.client}
	manager := controller.NewControllerRevisionControllerRefManager(patcher, parent, labels.Nothing(), parentKind, nil)
	if err := manager.AdoptControllerRevision(ctx, revision); err != nil {
		return nil, fmt.Errorf("adopting controller revision %s: %w", revision.Name, err)
	}
	return patcher.patched, nil
}

func (h *realHistory) ReleaseControllerRevision(ctx context.Context, parent metav1.Object, revision *apps.ControllerRevision) (*apps.ControllerRevision, error) {
	patcher := &patcher{client: h.client}
	manager := controller.NewControllerRevisionControllerRefManager(patcher, parent, labels.Nothing(), schema.GroupVersionKind{}, nil)
	if err := manager.ReleaseControllerRevision(ctx, revision); err != nil {
		return nil, fmt.Errorf("releasing controller revision %s: %w", revision.Name, err)
	}
	return patcher.patched, nil
}

// patcher is what a ref manager writes through, and remembers what came of it.
type patcher struct {
	client  clientset.Interface
	patched *apps.ControllerRevision
}

var _ controller.ControllerRevisionControlInterface = &patcher{}

func (p *patcher) PatchControllerRevision(ctx context.Context, namespace, name string, data []byte) error {
	patched, err := p.client.AppsV1().ControllerRevisions(namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	if err == nil {
		p.patched = patched
	}
	return err
}
