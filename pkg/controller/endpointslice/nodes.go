// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/util/selectorindex"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// nodeKey is the name of a node that has appeared or moved, or allNodes.
type nodeKey string

// allNodes stands for the share of CPU that each zone has.
const allNodes nodeKey = ""

func (c *Controller) nodeHandler() cache.ResourceEventHandler {
	return worker.Handler(name, worker.HandlerFuncs[*v1.Node]{
		Add: func(node *v1.Node, initial bool) {
			if initial {
				return // Run begins with all nodes, and then syncs all Services
			}
			c.nodes.Add(allNodes)
			c.nodes.Add(nodeKey(node.Name))
		},
		Update: func(old, cur *v1.Node) {
			if zoneOf(old) != zoneOf(cur) {
				c.nodes.Add(nodeKey(cur.Name))
			}
			if sharesChanged(old, cur) {
				c.nodes.Add(allNodes)
			}
		},
		Delete: func(*v1.Node) { c.nodes.Add(allNodes) },
	})
}

// syncNode enqueues the Services that a change of nodes concerns.
func (c *Controller) syncNode(ctx context.Context, key nodeKey) error {
	if key == allNodes {
		return c.checkNodeTopologyDistribution(ctx)
	}
	objs, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, string(key))
	if err != nil {
		return fmt.Errorf("looking up the pods on node %s: %w", key, err)
	}
	concerned := sets.New[cache.ObjectName]()
	for _, obj := range objs {
		if pod, ok := obj.(*v1.Pod); ok {
			concerned.Insert(c.selectors.Affected(selectorindex.FromPod(pod))...)
		}
	}
	for service := range concerned {
		c.services.Add(service)
	}
	return nil
}

// checkNodeTopologyDistribution enqueues the Services whose hints do not fit the zones any more.
func (c *Controller) checkNodeTopologyDistribution(ctx context.Context) error {
	if err := c.setNodes(ctx); err != nil {
		return err
	}
	for _, key := range c.topologyCache.GetOverloadedServices() {
		service, err := cache.ParseObjectName(key)
		if err != nil {
			return fmt.Errorf("a service of the topology cache: %w", err)
		}
		klog.FromContext(ctx).V(2).Info("Queuing a service whose zones are out of balance", "service", service)
		c.services.Add(service)
	}
	return nil
}

// setNodes tells the topology cache what nodes there are.
func (c *Controller) setNodes(ctx context.Context) error {
	nodes, err := c.nodeLister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing nodes from the cache: %w", err)
	}
	c.topologyCache.SetNodes(klog.FromContext(ctx), nodes)
	return nil
}

// sharesChanged says whether the update changes which share of CPU a zone has.
func sharesChanged(old, cur *v1.Node) bool {
	return isReady(old) != isReady(cur) || zoneOf(old) != zoneOf(cur) || isControlPlane(old) != isControlPlane(cur) ||
		old.Status.Allocatable.Cpu().Cmp(*cur.Status.Allocatable.Cpu()) != 0
}

func isReady(node *v1.Node) bool {
	_, condition := nodeutil.GetNodeCondition(&node.Status, v1.NodeReady)
	return condition != nil && condition.Status == v1.ConditionTrue
}

func zoneOf(node *v1.Node) string { return node.Labels[v1.LabelTopologyZone] }

// isControlPlane says whether the node does not count, by the labels that the library looks at.
func isControlPlane(node *v1.Node) bool {
	_, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]
	_, master := node.Labels["node-role.kubernetes.io/master"]
	return controlPlane || master
}
