// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
)

// verdict is what a node means to a DaemonSet.
type verdict struct {
	// wants: there should be a Pod.
	wants bool
	// tolerates: a Pod that is there may stay. True wherever wants is.
	tolerates bool
}

// predicate decides on nodes for one DaemonSet.
type predicate struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []v1.Toleration
	// comparisons admits the operators Lt and Gt in tolerations.
	comparisons bool
}

func newPredicate(ds *apps.DaemonSet, comparisons bool) *predicate {
	spec := v1.PodSpec{HostNetwork: ds.Spec.Template.Spec.HostNetwork}
	spec.Tolerations = append(spec.Tolerations, ds.Spec.Template.Spec.Tolerations...)
	util.AddOrUpdateDaemonPodTolerations(&spec)
	return &predicate{
		nodeName:    ds.Spec.Template.Spec.NodeName,
		affinity:    nodeaffinity.NewRequiredNodeAffinity(ds.Spec.Template.Spec.NodeSelector, ds.Spec.Template.Spec.Affinity),
		tolerations: spec.Tolerations,
		comparisons: comparisons,
	}
}

// judge returns the verdict on a node. What it looks at of a node is its name, labels and taints.
func (p *predicate) judge(logger klog.Logger, node *v1.Node) verdict {
	if p.nodeName != "" && p.nodeName != node.Name {
		return verdict{}
	}
	// An affinity that does not parse matches nothing.
	if fits, err := p.affinity.Match(node); err != nil || !fits {
		return verdict{}
	}
	if !p.untolerated(logger, node, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute) {
		return verdict{wants: true, tolerates: true}
	}
	return verdict{tolerates: !p.untolerated(logger, node, v1.TaintEffectNoExecute)}
}

// untolerated says whether the node has a taint of one of the effects that is not tolerated.
func (p *predicate) untolerated(logger klog.Logger, node *v1.Node, effects ...v1.TaintEffect) bool {
	_, found := corev1helpers.FindMatchingUntoleratedTaint(logger, node.Spec.Taints, p.tolerations, func(taint *v1.Taint) bool {
		for _, effect := range effects {
			if taint.Effect == effect {
				return true
			}
		}
		return false
	}, p.comparisons)
	return found
}
