// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
)

// namespaceDeletion: many full namespaces go at once.
func namespaceDeletion() benchmark.Scenario {
	const count, objects = 20, 500
	name := func(i int) string { return fmt.Sprintf("full-%d", i) }
	return benchmark.Scenario{
		Name:        "namespace-deletion",
		Title:       "20 namespaces of 500 ConfigMaps are deleted at once, until all are gone",
		Controllers: []string{names.NamespaceController},
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			for i := range count {
				if err := e.Namespace(ctx, name(i)); err != nil {
					return err
				}
				if err := createConfigMaps(ctx, e, name(i), e.N(objects)); err != nil {
					return err
				}
			}
			e.Informers.Core().V1().Namespaces().Informer()
			return e.Sync(ctx)
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.Measure(ctx, "", func(ctx context.Context) error {
				err := parallel(ctx, count, func(ctx context.Context, i int) error {
					return e.Client.CoreV1().Namespaces().Delete(ctx, name(i), metav1.DeleteOptions{})
				})
				if err != nil {
					return err
				}
				return e.Wait(ctx, "the namespaces to be gone", func(context.Context) (bool, error) {
					for i := range count {
						_, err := e.Informers.Core().V1().Namespaces().Lister().Get(name(i))
						if !apierrors.IsNotFound(err) {
							return false, err
						}
					}
					return true, nil
				})
			})
		},
	}
}

// cascade: one owner with very many dependents is deleted, in one of the three ways.
func cascade(how string) benchmark.Scenario {
	const owner, dependents = "owner", 5000
	policies := map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground,
		"orphan":     metav1.DeletePropagationOrphan,
	}
	titles := map[string]string{
		"background": "the owner of 5,000 ConfigMaps is deleted in the background, until all are gone",
		"foreground": "the owner of 5,000 ConfigMaps is deleted in the foreground, until it is gone",
		"orphan":     "the owner of 5,000 ConfigMaps is deleted and orphans them, until it is gone and none names it",
	}
	return benchmark.Scenario{
		Name:        "cascade-" + how,
		Title:       titles[how],
		Controllers: []string{names.GarbageCollectorController},
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			o, err := e.Client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: owner}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			block := true
			ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: owner, UID: o.UID, BlockOwnerDeletion: &block}
			if err := createConfigMaps(ctx, e, namespace, e.N(dependents), ref); err != nil {
				return err
			}
			e.Informers.Core().V1().Secrets().Informer()
			e.Informers.Core().V1().ConfigMaps().Informer()
			return e.Sync(ctx)
		},
		Warm: collectorRuns,
		Run: func(ctx context.Context, e *benchmark.Env) error {
			policy := policies[how]
			return e.Measure(ctx, "", func(ctx context.Context) error {
				if err := e.Client.CoreV1().Secrets(namespace).Delete(ctx, owner, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
					return err
				}
				return e.Wait(ctx, "the cascade's end", func(context.Context) (bool, error) {
					_, err := e.Informers.Core().V1().Secrets().Lister().Secrets(namespace).Get(owner)
					if !apierrors.IsNotFound(err) {
						return false, err
					}
					left, err := e.Informers.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace).List(labels.Everything())
					for _, c := range left {
						if len(c.OwnerReferences) > 0 {
							return false, err
						}
					}
					return err == nil, err
				})
			})
		},
	}
}

// graphMemory: what the garbage collector keeps of the objects of a cluster.
func graphMemory() benchmark.Scenario {
	const owners, each = 200, 100
	return benchmark.Scenario{
		Name:        "graph-memory",
		Title:       "20,000 ConfigMaps, a hundred each for 200 owners, come into the garbage collector's graph",
		Controllers: []string{names.GarbageCollectorController},
		Seed:        func(ctx context.Context, e *benchmark.Env) error { return e.Namespace(ctx, namespace) },
		Warm:        collectorRuns,
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.MeasureGrowth(ctx, "", func(ctx context.Context) error {
				for i := range e.N(owners) {
					o, err := e.Client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("owner-%d", i)}}, metav1.CreateOptions{})
					if err != nil {
						return err
					}
					ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: o.Name, UID: o.UID}
					if err := createNamed(ctx, e, namespace, o.Name+"-c-%d", each, ref); err != nil {
						return err
					}
				}
				// It comes after them in the collector's queue.
				return collects(ctx, e, e.Client.CoreV1().ConfigMaps(namespace).Create, e.Client.CoreV1().ConfigMaps(namespace).Get,
					&corev1.ConfigMap{ObjectMeta: ownerless("last")})
			})
		},
	}
}

// collectorRuns waits until the collector works: an object of an owner that never was is gone.
func collectorRuns(ctx context.Context, e *benchmark.Env) error {
	accounts := e.Client.CoreV1().ServiceAccounts(namespace)
	return collects(ctx, e, accounts.Create, accounts.Get, &corev1.ServiceAccount{ObjectMeta: ownerless("probe")})
}

// ownerless is the metadata of an object of an owner that never was.
func ownerless(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "00000000-0000-0000-0000-000000000001"}},
	}
}

// collects creates the object and waits until it is gone.
func collects[T metav1.Object](ctx context.Context, e *benchmark.Env, create func(context.Context, T, metav1.CreateOptions) (T, error),
	get func(context.Context, string, metav1.GetOptions) (T, error), object T) error {
	if _, err := create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	return e.Wait(ctx, "the garbage collector to take "+object.GetName(), func(ctx context.Context) (bool, error) {
		_, err := get(ctx, object.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
