// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// stageNodes are the nodes that every stage has.
func stageNodes() []string { return []string{"node-0", "node-1", "node-2"} }

// Stage is a cluster on which scenarios are played, several at a time.
type Stage struct {
	*cluster.Cluster
	Kubelet *fakekubelet.Kubelet
	// Timeout of each wait. Machines are busy, and some conditions come by the clock.
	Timeout time.Duration

	dynamic    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	namespaced []schema.GroupVersionResource

	mu sync.Mutex // guards the following
	// held are the selectors of pods that must not end, by namespace.
	held map[string]labels.Selector
}

// NewStage prepares a cluster: its nodes, and what it takes to read all objects of a namespace.
func NewStage(ctx context.Context, c *cluster.Cluster) (*Stage, error) {
	s := &Stage{Cluster: c, held: map[string]labels.Selector{}, Timeout: time.Minute}
	var err error
	if s.dynamic, err = dynamic.NewForConfig(c.Config()); err != nil {
		return nil, fmt.Errorf("preparing a stage: %w", err)
	}
	if err := s.discover(); err != nil {
		return nil, err
	}
	s.Kubelet, err = c.Kubelet(ctx, fakekubelet.Options{Nodes: stageNodes(), Place: place, Workers: 16})
	if err != nil {
		return nil, err
	}
	s.Kubelet.HoldDeletion(s.isHeld)
	return s, nil
}

// place binds a pod where its affinity or its node selector wants it, else to the first node: which node it is must not
// depend on what else is played.
func place(pod *corev1.Pod) string {
	if pod.Spec.NodeSelector != nil {
		host := pod.Spec.NodeSelector[corev1.LabelHostname]
		if slices.Contains(stageNodes(), host) {
			return host
		}
		return "" // nobody has these labels
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == "metadata.name" && len(field.Values) == 1 && slices.Contains(stageNodes(), field.Values[0]) {
					return field.Values[0]
				}
			}
		}
		return ""
	}
	return stageNodes()[0]
}

func (s *Stage) isHeld(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	selector, held := s.held[pod.Namespace]
	return held && selector.Matches(labels.Set(pod.Labels))
}

// discover finds the resources whose objects a snapshot holds.
func (s *Stage) discover() error {
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(cachedDiscovery(s.Client.Discovery()))
	lists, err := s.Client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return fmt.Errorf("discovering resources: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("discovering resources: %w", err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && r.Name != "events" && r.Name != "leases" {
				s.namespaced = append(s.namespaced, gv.WithResource(r.Name))
			}
		}
	}
	return nil
}

// client returns the client of a kind in a namespace; of a cluster-scoped kind, in none. The kind is "Deployment", or with
// its group "Ingress.networking.k8s.io".
func (s *Stage) client(kind, namespace string) (dynamic.ResourceInterface, error) {
	name, group, _ := strings.Cut(kind, ".")
	gvk, err := s.findKind(name, group)
	if err != nil {
		return nil, err
	}
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	if mapping.Scope.Name() == "namespace" {
		return s.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return s.dynamic.Resource(mapping.Resource), nil
}

// wellKnown are the groups of kinds that files name without one.
var wellKnown = map[string]string{
	"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "ControllerRevision": "apps",
	"Job": "batch", "CronJob": "batch", "PodDisruptionBudget": "policy", "EndpointSlice": "discovery.k8s.io",
	"HorizontalPodAutoscaler": "autoscaling", "ClusterRole": "rbac.authorization.k8s.io", "Role": "rbac.authorization.k8s.io",
	"CustomResourceDefinition": "apiextensions.k8s.io", "Lease": "coordination.k8s.io", "CertificateSigningRequest": "certificates.k8s.io",
	"ResourceClaim": "resource.k8s.io", "ResourceClaimTemplate": "resource.k8s.io", "StorageClass": "storage.k8s.io",
	"VolumeAttachment": "storage.k8s.io", "VolumeAttributesClass": "storage.k8s.io", "CSINode": "storage.k8s.io",
	"ServiceCIDR": "networking.k8s.io", "IPAddress": "networking.k8s.io", "ValidatingAdmissionPolicy": "admissionregistration.k8s.io",
}

func (s *Stage) findKind(name, group string) (schema.GroupVersionKind, error) {
	if group == "" {
		group = wellKnown[name]
	}
	mapping, err := s.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: name})
	if err != nil {
		s.mapper.Reset() // a CRD of the scenario
		if mapping, err = s.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: name}); err != nil {
			return schema.GroupVersionKind{}, fmt.Errorf("kind %s: %w", name, err)
		}
	}
	return mapping.GroupVersionKind, nil
}
