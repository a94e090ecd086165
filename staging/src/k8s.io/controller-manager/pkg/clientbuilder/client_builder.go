// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package clientbuilder

import (
	"fmt"

	"k8s.io/client-go/discovery"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// Discovery asks for a hundred documents at a time, once in a while: with a fixed limit it gets one of its own.
const (
	discoveryQPS   = 20
	discoveryBurst = 200
)

// ControllerClientBuilder makes clients for the controller, or other user of the API, called name.
type ControllerClientBuilder interface {
	// Config returns a configuration that the caller may change.
	Config(name string) (*rest.Config, error)
	// Client returns a client for the typed APIs.
	Client(name string) (clientset.Interface, error)
	// DiscoveryClient returns a client for discovery, uncached.
	DiscoveryClient(name string) (discovery.DiscoveryInterface, error)
	// MetadataClient returns a client for the metadata of any resource.
	MetadataClient(name string) (metadata.Interface, error)
}

// SimpleControllerClientBuilder gives all controllers one identity and tells them apart by user agent.
type SimpleControllerClientBuilder struct {
	// ClientConfig is what every configuration is a copy of.
	ClientConfig *rest.Config
	// Gate, if not nil, is what the requests go through.
	Gate *gate.Gate
}

var _ ControllerClientBuilder = SimpleControllerClientBuilder{}

// Config implements ControllerClientBuilder.
func (b SimpleControllerClientBuilder) Config(name string) (*rest.Config, error) {
	return wrap(b.ClientConfig, name, b.Gate), nil
}

// Client implements ControllerClientBuilder.
func (b SimpleControllerClientBuilder) Client(name string) (clientset.Interface, error) {
	return newClient(b, name)
}

// DiscoveryClient implements ControllerClientBuilder.
func (b SimpleControllerClientBuilder) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	return newDiscoveryClient(b, name)
}

// MetadataClient implements ControllerClientBuilder.
func (b SimpleControllerClientBuilder) MetadataClient(name string) (metadata.Interface, error) {
	return newMetadataClient(b, name)
}

func wrap(config *rest.Config, name string, g *gate.Gate) *rest.Config {
	if g == nil {
		return rest.AddUserAgent(rest.CopyConfig(config), name)
	}
	return g.WrapConfig(config, name)
}

func newClient(b ControllerClientBuilder, name string) (clientset.Interface, error) {
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client of %s: %w", name, err)
	}
	return client, nil
}

func newDiscoveryClient(b ControllerClientBuilder, name string) (discovery.DiscoveryInterface, error) {
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	if config.QPS >= 0 {
		config.QPS, config.Burst = discoveryQPS, discoveryBurst
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client of %s: %w", name, err)
	}
	return client, nil
}

func newMetadataClient(b ControllerClientBuilder, name string) (metadata.Interface, error) {
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the metadata client of %s: %w", name, err)
	}
	return client, nil
}
