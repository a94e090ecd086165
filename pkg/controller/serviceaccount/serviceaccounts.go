// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const accountsControllerName = "serviceaccount-controller"

// ServiceAccountsControllerOptions configures a ServiceAccountsController.
type ServiceAccountsControllerOptions struct {
	// ServiceAccounts are made sure to exist in every active namespace. Their namespace is ignored.
	ServiceAccounts []v1.ServiceAccount
	// ServiceAccountResync is how often all service accounts are looked at although nothing
	// happened. Default 0: never.
	ServiceAccountResync time.Duration
	// NamespaceResync is the same for namespaces.
	NamespaceResync time.Duration
}

// DefaultServiceAccountsControllerOptions returns options for one service account, "default".
func DefaultServiceAccountsControllerOptions() ServiceAccountsControllerOptions {
	return ServiceAccountsControllerOptions{
		ServiceAccounts: []v1.ServiceAccount{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
	}
}

// ServiceAccountsController makes sure that every active namespace has certain service accounts.
// Create it with NewServiceAccountsController. The worker's key is a namespace.
type ServiceAccountsController struct {
	client   clientset.Interface
	wanted   []v1.ServiceAccount
	accounts corelisters.ServiceAccountLister
	spaces   corelisters.NamespaceLister
	synced   []cache.InformerSynced
	worker   *worker.Worker[cache.ObjectName]
}

// NewServiceAccountsController returns a controller for the service accounts that options name. The
// logger is part of upstream's signature and not used. The error is that an informer was stopped.
func NewServiceAccountsController(_ klog.Logger, saInformer coreinformers.ServiceAccountInformer,
	nsInformer coreinformers.NamespaceInformer, cl clientset.Interface,
	options ServiceAccountsControllerOptions) (*ServiceAccountsController, error) {
	c := &ServiceAccountsController{
		client:   cl,
		wanted:   options.ServiceAccounts,
		accounts: saInformer.Lister(),
		spaces:   nsInformer.Lister(),
		synced:   []cache.InformerSynced{saInformer.Informer().HasSynced, nsInformer.Informer().HasSynced},
	}
	c.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: accountsControllerName,
		Queue:      "serviceaccount",
		Sync:       c.sync,
	})

	accountHandler := worker.Handler(accountsControllerName, worker.HandlerFuncs[*v1.ServiceAccount]{
		Delete: func(sa *v1.ServiceAccount) { c.worker.Add(cache.ObjectName{Name: sa.Namespace}) },
	})
	if _, err := saInformer.Informer().AddEventHandlerWithResyncPeriod(accountHandler, options.ServiceAccountResync); err != nil {
		return nil, fmt.Errorf("watching service accounts: %w", err)
	}
	spaceHandler := worker.Handler(accountsControllerName, worker.HandlerFuncs[*v1.Namespace]{
		Add: func(ns *v1.Namespace, initial bool) {
			c.worker.AddEvent(cache.ObjectName{Name: ns.Name}, initial)
		},
		Update: func(_, ns *v1.Namespace) { c.worker.Add(cache.ObjectName{Name: ns.Name}) },
		Resync: true,
	})
	if _, err := nsInformer.Informer().AddEventHandlerWithResyncPeriod(spaceHandler, options.NamespaceResync); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return c, nil
}

// Run works on the given number of namespaces at a time until ctx is done.
func (c *ServiceAccountsController) Run(ctx context.Context, workers int) {
	worker.Start(ctx, accountsControllerName, c.synced, c.worker.Runner(workers))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (c *ServiceAccountsController) Workers() []worker.Reporter {
	return []worker.Reporter{c.worker}
}

// sync creates what is missing in one namespace. One account's failure does not keep the others.
func (c *ServiceAccountsController) sync(ctx context.Context, key cache.ObjectName) error {
	ns, err := c.spaces.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up namespace %s: %w", key.Name, err)
	}
	if ns.Status.Phase != v1.NamespaceActive {
		return nil
	}

	var errs []error
	for i := range c.wanted {
		if err := c.ensure(ctx, ns.Name, &c.wanted[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.Flatten(utilerrors.NewAggregate(errs))
}

// ensure creates one service account unless it exists, or the namespace is going away.
func (c *ServiceAccountsController) ensure(ctx context.Context, namespace string, wanted *v1.ServiceAccount) error {
	_, err := c.accounts.ServiceAccounts(namespace).Get(wanted.Name)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking up service account %s/%s: %w", namespace, wanted.Name, err)
	}
	sa := wanted.DeepCopy()
	sa.Namespace = namespace
	_, err = c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, sa, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("creating service account %s/%s: %w", namespace, wanted.Name, err)
}
