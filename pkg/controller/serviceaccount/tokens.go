// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/pkg/serviceaccount"
)

const (
	tokensControllerName = "serviceaccount-token-controller"
	// tokensQueueName is upstream's name of both queues.
	tokensQueueName = "serviceaccount_tokens_service"
	// defaultMaxRetries is how often a failing key is retried before it waits for its next event.
	defaultMaxRetries = 10
)

// TokensControllerOptions configures a TokensController.
type TokensControllerOptions struct {
	// TokenGenerator signs the tokens. Required.
	TokenGenerator serviceaccount.TokenGenerator
	// ServiceAccountResync and SecretResync are how often all objects are looked at although nothing
	// happened. Default 0: never.
	ServiceAccountResync time.Duration
	SecretResync         time.Duration
	// RootCA is what ca.crt of each token secret is kept equal to, PEM. Empty: ca.crt is left alone.
	RootCA []byte
	// MaxRetries is how often a failing key is retried. Default (0): 10.
	MaxRetries int
}

// TokensController fills token secrets and deletes those whose service account is gone. Create it
// with NewTokensController.
type TokensController struct {
	client    clientset.Interface
	generator serviceaccount.TokenGenerator
	rootCA    []byte

	accounts corelisters.ServiceAccountLister
	secrets  corelisters.SecretLister
	synced   []cache.InformerSynced

	deletedAccounts *worker.Worker[accountKey]
	tokenSecrets    *worker.Worker[secretKey]
}

// NewTokensController returns a controller for token secrets. The logger is part of upstream's
// signature and not used. The error is that an informer was stopped.
func NewTokensController(_ klog.Logger, serviceAccounts coreinformers.ServiceAccountInformer,
	secrets coreinformers.SecretInformer, cl clientset.Interface, options TokensControllerOptions) (*TokensController, error) {
	maxRetries := options.MaxRetries
	if maxRetries == 0 {
		maxRetries = defaultMaxRetries
	}
	e := &TokensController{
		client:    cl,
		generator: options.TokenGenerator,
		rootCA:    options.RootCA,
		accounts:  serviceAccounts.Lister(),
		secrets:   secrets.Lister(),
		synced:    []cache.InformerSynced{serviceAccounts.Informer().HasSynced, secrets.Informer().HasSynced},
	}
	e.deletedAccounts = worker.New(worker.Options[accountKey]{
		Controller: tokensControllerName, Queue: tokensQueueName, Sync: e.syncAccount, MaxRetries: maxRetries,
	})
	e.tokenSecrets = worker.New(worker.Options[secretKey]{
		Controller: tokensControllerName, Queue: tokensQueueName, Sync: e.syncSecret, MaxRetries: maxRetries,
	})
	if _, err := serviceAccounts.Informer().AddEventHandlerWithResyncPeriod(e.accountHandler(), options.ServiceAccountResync); err != nil {
		return nil, fmt.Errorf("watching service accounts: %w", err)
	}
	if _, err := secrets.Informer().AddEventHandlerWithResyncPeriod(e.secretHandler(), options.SecretResync); err != nil {
		return nil, fmt.Errorf("watching secrets: %w", err)
	}
	return e, nil
}

func (e *TokensController) accountHandler() cache.ResourceEventHandler {
	return worker.Handler(tokensControllerName, worker.HandlerFuncs[*v1.ServiceAccount]{
		// A deletion and a creation that the watch missed look like one update.
		Update: func(old, cur *v1.ServiceAccount) {
			if old.UID != cur.UID {
				e.deletedAccounts.Add(keyOfAccount(old))
			}
		},
		Delete: func(sa *v1.ServiceAccount) { e.deletedAccounts.Add(keyOfAccount(sa)) },
	})
}

func (e *TokensController) secretHandler() cache.ResourceEventHandler {
	return worker.Handler(tokensControllerName, worker.HandlerFuncs[*v1.Secret]{
		Add: func(secret *v1.Secret, initial bool) {
			if key, ok := keyOfSecret(secret); ok {
				e.tokenSecrets.AddEvent(key, initial)
			}
		},
		Update: func(old, cur *v1.Secret) {
			if old.UID != cur.UID {
				e.enqueueSecret(old)
			}
			e.enqueueSecret(cur)
		},
		Delete: e.enqueueSecret,
		Resync: true,
	})
}

func (e *TokensController) enqueueSecret(secret *v1.Secret) {
	if key, ok := keyOfSecret(secret); ok {
		e.tokenSecrets.Add(key)
	}
}

// Run works on up to workers deleted service accounts and as many secrets at a time until ctx is
// done.
func (e *TokensController) Run(ctx context.Context, workers int) {
	worker.Start(ctx, tokensControllerName, e.synced, e.deletedAccounts.Runner(workers), e.tokenSecrets.Runner(workers))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (e *TokensController) Workers() []worker.Reporter {
	return []worker.Reporter{e.deletedAccounts, e.tokenSecrets}
}
