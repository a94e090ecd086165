// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// KwokNodeAnnotation marks the Nodes whose kubelet kwok plays, with the value "fake".
const KwokNodeAnnotation = "kwok.x-k8s.io/node"

// nodeLease is how long a fake node may be silent, in seconds, as kubelet's default.
const nodeLease = 40

// kwokStages say what kwok does with nodes and pods.
//
//go:embed kwok-stages.yaml
var kwokStages []byte

func (c *ControlPlane) kwok() (*component, error) {
	stages := c.path("kwok-stages.yaml")
	if err := writeFile(stages, kwokStages, 0o600); err != nil {
		return nil, err
	}
	server := loopback + ":" + strconv.Itoa(c.ports.Kwok)
	args := []string{
		"--kubeconfig=" + c.kwokKubeconfig,
		"--manage-nodes-with-annotation-selector=" + KwokNodeAnnotation + "=fake",
		"--node-lease-duration-seconds=" + strconv.Itoa(nodeLease),
		// Of pods on nodes that nobody gave a range.
		"--cidr=" + c.options.PodCIDR,
		"--node-ip=" + loopback,
		"--node-port=" + strconv.Itoa(c.ports.Kwok),
		"--server-address=" + server,
		"--config=" + stages,
	}
	return &component{
		program: program{name: ComponentKwok, path: c.options.Binaries.Kwok, args: args},
		port:    c.ports.Kwok,
		ready: func(ctx context.Context) error {
			return ask(ctx, "http://"+server+"/healthz", nil)
		},
	}, nil
}

// NewFakeNode returns a Node for kwok, of the size of a small server.
func NewFakeNode(name string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{KwokNodeAnnotation: "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
				"type":                 "kwok",
			},
		},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
}

// createNodes creates the fake nodes that are missing.
func (c *ControlPlane) createNodes(ctx context.Context) error {
	if c.options.Nodes == 0 {
		return nil
	}
	return c.withClient(func(client kubernetes.Interface) error {
		for i := range c.options.Nodes {
			node := NewFakeNode("node-" + strconv.Itoa(i))
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
		}
		return nil
	})
}

// dropLeases removes the node leases that an ended kwok has left. The next one would wait for their end before it
// touches these nodes and their pods, and the nodes would look Ready meanwhile.
func (c *ControlPlane) dropLeases(ctx context.Context) error {
	if c.runsAlready(ComponentKwok) {
		return nil
	}
	return c.withClient(func(client kubernetes.Interface) error {
		err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("removing the node leases of an earlier kwok: %w", err)
		}
		return nil
	})
}

// waitForNodes waits until the fake nodes are Ready and kwok holds their leases: a Ready condition alone may be an
// earlier kwok's.
func (c *ControlPlane) waitForNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.StartTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	return c.withClient(func(client kubernetes.Interface) error {
		for i := range c.options.Nodes {
			name := "node-" + strconv.Itoa(i)
			for {
				if isAlive(ctx, client, name) {
					break
				}
				select {
				case <-ctx.Done():
					return fmt.Errorf("node %s did not become Ready (%v); kwok's log is %s", name, ctx.Err(), c.LogPath(ComponentKwok))
				case <-c.died:
					return c.Err()
				case <-ticker.C:
				}
			}
		}
		fmt.Fprintf(c.options.Log, "%d fake nodes are Ready\n", c.options.Nodes)
		return nil
	})
}

func isAlive(ctx context.Context, client kubernetes.Interface, name string) bool {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || !isReady(node) {
		return false
	}
	_, err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	return err == nil
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// withClient lends an administrator's client and closes its connections afterwards.
func (c *ControlPlane) withClient(do func(kubernetes.Interface) error) error {
	config := c.RESTConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	defer utilnet.CloseIdleConnectionsFor(httpClient.Transport)
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return do(client)
}
