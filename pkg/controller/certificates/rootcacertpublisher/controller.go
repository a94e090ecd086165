// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcacertpublisher

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

const controllerName = "root-ca-certificate-publisher-controller"

// Publisher keeps the root CA's ConfigMap in every namespace. Create it with NewPublisher.
type Publisher struct {
	client     clientset.Interface
	rootCA     []byte
	configMaps corelisters.ConfigMapLister
	spaces     corelisters.NamespaceLister
	synced     cache.InformerSynced
	worker     *worker.Worker[cache.ObjectName]
	metrics    *metrics
}

// NewPublisher returns a publisher of rootCA, a bundle in PEM. The error is that an informer was
// stopped.
func NewPublisher(cmInformer coreinformers.ConfigMapInformer, nsInformer coreinformers.NamespaceInformer,
	cl clientset.Interface, rootCA []byte) (*Publisher, error) {
	p := &Publisher{
		client:     cl,
		rootCA:     rootCA,
		configMaps: cmInformer.Lister(),
		spaces:     nsInformer.Lister(),
		synced:     cmInformer.Informer().HasSynced,
		metrics:    registeredMetrics(),
	}
	p.worker = worker.New(worker.Options[cache.ObjectName]{
		Controller: controllerName,
		Queue:      "root_ca_cert_publisher",
		Sync:       p.sync,
	})
	if _, err := cmInformer.Informer().AddEventHandler(p.configMapHandler()); err != nil {
		return nil, fmt.Errorf("watching config maps: %w", err)
	}
	if _, err := nsInformer.Informer().AddEventHandler(p.namespaceHandler()); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return p, nil
}

func (p *Publisher) configMapHandler() cache.ResourceEventHandler {
	enqueue := func(cm *v1.ConfigMap) {
		if cm.Name == RootCACertConfigMapName {
			p.worker.Add(cache.ObjectName{Name: cm.Namespace})
		}
	}
	return worker.Handler(controllerName, worker.HandlerFuncs[*v1.ConfigMap]{
		Update: func(_, cur *v1.ConfigMap) { enqueue(cur) },
		Delete: enqueue,
		Resync: true,
	})
}

func (p *Publisher) namespaceHandler() cache.ResourceEventHandler {
	return worker.Handler(controllerName, worker.HandlerFuncs[*v1.Namespace]{
		Add: func(ns *v1.Namespace, initial bool) {
			p.worker.AddEvent(cache.ObjectName{Name: ns.Name}, initial)
		},
		Update: func(_, cur *v1.Namespace) {
			if cur.Status.Phase == v1.NamespaceActive {
				p.worker.Add(cache.ObjectName{Name: cur.Name})
			}
		},
		Resync: true,
	})
}

// Run works on the given number of namespaces at a time until ctx is done. As upstream, it waits for
// the config maps only: a namespace is enqueued by the event that brings it into the cache.
func (p *Publisher) Run(ctx context.Context, workers int) {
	worker.Start(ctx, controllerName, []cache.InformerSynced{p.synced}, p.worker.Runner(workers))
}

// Workers returns the controller's workers, for health checks and debug pages.
func (p *Publisher) Workers() []worker.Reporter { return []worker.Reporter{p.worker} }

// sync restores one namespace's ConfigMap, and counts.
func (p *Publisher) sync(ctx context.Context, key cache.ObjectName) error {
	start := time.Now()
	err := p.syncNamespace(ctx, key.Name)
	p.metrics.record(time.Since(start), err)
	return err
}

func (p *Publisher) syncNamespace(ctx context.Context, namespace string) error {
	if ns, err := p.spaces.Get(namespace); err == nil && ns.Status.Phase == v1.NamespaceTerminating {
		return nil
	}
	cached, err := p.configMaps.ConfigMaps(namespace).Get(RootCACertConfigMapName)
	if apierrors.IsNotFound(err) {
		return p.create(ctx, namespace)
	}
	if err != nil {
		return fmt.Errorf("looking up config map %s/%s: %w", namespace, RootCACertConfigMapName, err)
	}
	repaired := repair(cached, p.rootCA)
	if repaired == nil {
		return nil
	}
	if _, err := p.client.CoreV1().ConfigMaps(namespace).Update(ctx, repaired, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating config map %s/%s: %w", namespace, RootCACertConfigMapName, err)
	}
	return nil
}

// create makes the ConfigMap, unless the namespace is gone or on its way.
func (p *Publisher) create(ctx context.Context, namespace string) error {
	_, err := p.client.CoreV1().ConfigMaps(namespace).Create(ctx, newConfigMap(namespace, p.rootCA), metav1.CreateOptions{})
	if err == nil || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("creating config map %s/%s: %w", namespace, RootCACertConfigMapName, err)
}
