// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package clientbuilder

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	clientset "k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// DynamicControllerClientBuilder gives each controller the identity of a ServiceAccount of its name.
type DynamicControllerClientBuilder struct {
	ctx        context.Context
	config     *rest.Config
	coreClient corev1client.CoreV1Interface
	namespace  string
	gate       *gate.Gate

	// mu guards tokens.
	mu sync.Mutex
	// tokens holds the token of each ServiceAccount, which all clients of a name share.
	tokens map[string]*tokenSource
}

var _ ControllerClientBuilder = (*DynamicControllerClientBuilder)(nil)

// NewDynamicClientBuilder makes a builder that finds or creates ServiceAccounts in namespace, and requests their
// tokens, by coreClient. config is what every configuration is a copy of; it must not carry credentials of its own
// (rest.AnonymousClientConfig). ctx bounds the look-ups of ServiceAccounts. g may be nil.
func NewDynamicClientBuilder(ctx context.Context, config *rest.Config, coreClient corev1client.CoreV1Interface, namespace string, g *gate.Gate) *DynamicControllerClientBuilder {
	return &DynamicControllerClientBuilder{
		ctx:        ctx,
		config:     config,
		coreClient: coreClient,
		namespace:  namespace,
		gate:       g,
		tokens:     map[string]*tokenSource{},
	}
}

// Config implements ControllerClientBuilder. It creates the ServiceAccount if there is none; the first token is
// requested with the first request.
func (b *DynamicControllerClientBuilder) Config(name string) (*rest.Config, error) {
	tokens, err := b.tokenSource(name)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(b.config)
	config.Wrap(tokens.wrap)
	return wrap(config, name, b.gate), nil
}

// Client implements ControllerClientBuilder.
func (b *DynamicControllerClientBuilder) Client(name string) (clientset.Interface, error) {
	return newClient(b, name)
}

// DiscoveryClient implements ControllerClientBuilder.
func (b *DynamicControllerClientBuilder) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	return newDiscoveryClient(b, name)
}

// MetadataClient implements ControllerClientBuilder.
func (b *DynamicControllerClientBuilder) MetadataClient(name string) (metadata.Interface, error) {
	return newMetadataClient(b, name)
}

func (b *DynamicControllerClientBuilder) tokenSource(name string) (*tokenSource, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tokens, ok := b.tokens[name]; ok {
		return tokens, nil
	}
	if err := ensureServiceAccount(b.ctx, b.coreClient, b.namespace, name); err != nil {
		return nil, err
	}
	tokens := newTokenSource(b.coreClient, b.namespace, name)
	b.tokens[name] = tokens
	return tokens, nil
}

// ensureServiceAccount creates a ServiceAccount, and its namespace, unless they exist.
func ensureServiceAccount(ctx context.Context, client corev1client.CoreV1Interface, namespace, name string) error {
	_, err := client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ServiceAccount %s/%s: %w", namespace, name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	_, err = client.ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, nsErr := client.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); nsErr != nil && !apierrors.IsAlreadyExists(nsErr) {
			return fmt.Errorf("creating namespace %s for ServiceAccount %s: %w", namespace, name, nsErr)
		}
		_, err = client.ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}
