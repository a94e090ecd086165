// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package util makes the Pods of DaemonSets, and reads what such Pods say of where they belong and of
// what they were made. Nothing here changes what it is given, unless its name says so.
package util

import (
	"fmt"
	"strconv"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeNameField is the field of a node that a DaemonSet's Pod is bound to by affinity.
const nodeNameField = metav1.ObjectNameField

// templateGenerationLabel is extensions/v1beta1's DaemonSetTemplateGenerationKey.
const templateGenerationLabel = "pod-template-generation"

// GetTemplateGeneration returns the number in the annotation that DaemonSets before apps/v1 counted
// their templates with; nil when there is none.
func GetTemplateGeneration(ds *apps.DaemonSet) (*int64, error) {
	text, ok := ds.Annotations[apps.DeprecatedTemplateGeneration]
	if !ok {
		return nil, nil
	}
	generation, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", apps.DeprecatedTemplateGeneration, err)
	}
	return &generation, nil
}

// AddOrUpdateDaemonPodTolerations adds what lets a DaemonSet's Pod run on nodes with trouble that the
// Pod may be there to mend.
func AddOrUpdateDaemonPodTolerations(spec *v1.PodSpec) {
	add := func(key string, effect v1.TaintEffect) {
		addOrUpdateToleration(spec, v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: effect})
	}
	add(v1.TaintNodeNotReady, v1.TaintEffectNoExecute)
	add(v1.TaintNodeUnreachable, v1.TaintEffectNoExecute)
	add(v1.TaintNodeDiskPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodeMemoryPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodePIDPressure, v1.TaintEffectNoSchedule)
	add(v1.TaintNodeUnschedulable, v1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(v1.TaintNodeNetworkUnavailable, v1.TaintEffectNoSchedule)
	}
}

// addOrUpdateToleration replaces the toleration that matches, or appends.
func addOrUpdateToleration(spec *v1.PodSpec, toleration v1.Toleration) {
	for i := range spec.Tolerations {
		if toleration.MatchToleration(&spec.Tolerations[i]) {
			spec.Tolerations[i] = toleration
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, toleration)
}

// CreatePodTemplate returns the template of the DaemonSet's Pods: the given one with the tolerations
// and the labels that all of them have. generation is nil for DaemonSets that do not count.
func CreatePodTemplate(template v1.PodTemplateSpec, generation *int64, hash string) v1.PodTemplateSpec {
	made := *template.DeepCopy()
	AddOrUpdateDaemonPodTolerations(&made.Spec)
	if made.Labels == nil {
		made.Labels = map[string]string{}
	}
	if generation != nil {
		made.Labels[templateGenerationLabel] = strconv.FormatInt(*generation, 10)
	}
	if hash != "" {
		made.Labels[apps.DefaultDaemonSetUniqueLabelKey] = hash
	}
	return made
}

// IsPodUpdated says whether the Pod was made of the template with this hash, or, for DaemonSets that
// count their templates, this number.
func IsPodUpdated(pod *v1.Pod, hash string, generation *int64) bool {
	byGeneration := generation != nil && pod.Labels[templateGenerationLabel] == strconv.FormatInt(*generation, 10)
	byHash := hash != "" && pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] == hash
	return byGeneration || byHash
}

// ReplaceDaemonSetPodNodeNameNodeAffinity returns affinity with the required terms replaced by one for
// the node of that name. Preferences stay. The given affinity may be changed.
func ReplaceDaemonSetPodNodeNameNodeAffinity(affinity *v1.Affinity, nodeName string) *v1.Affinity {
	only := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: nodeNameField, Operator: v1.NodeSelectorOpIn, Values: []string{nodeName}}},
	}}}
	if affinity == nil {
		affinity = &v1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = only
	return affinity
}

// GetTargetNodeName returns the node that the Pod is on or, before it is scheduled, is bound to. Each
// Pod of a DaemonSet has one; the error says that this Pod was not made as such.
func GetTargetNodeName(pod *v1.Pod) (string, error) {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName, nil
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == nodeNameField && field.Operator == v1.NodeSelectorOpIn {
					if len(field.Values) == 1 {
						return field.Values[0], nil
					}
					return "", fmt.Errorf("spec.affinity.nodeAffinity of pod %s/%s is bound to nodes %v, not to one", pod.Namespace, pod.Name, field.Values)
				}
			}
		}
	}
	return "", fmt.Errorf("no node name found for pod %s/%s", pod.Namespace, pod.Name)
}
