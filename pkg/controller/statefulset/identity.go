// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller"
)

// parentAndOrdinal splits the name of a Pod into that of its set and its ordinal, which
// is -1 when the name is not of that form.
func parentAndOrdinal(podName string) (string, int) {
	digits := len(podName)
	for digits > 0 && podName[digits-1] >= '0' && podName[digits-1] <= '9' {
		digits--
	}
	if digits == len(podName) || digits == 0 || podName[digits-1] != '-' {
		return "", -1
	}
	ordinal, err := strconv.ParseInt(podName[digits:], 10, 32)
	if err != nil {
		return podName[:digits-1], -1
	}
	return podName[:digits-1], int(ordinal)
}

func ordinalOf(pod *v1.Pod) int {
	_, ordinal := parentAndOrdinal(pod.Name)
	return ordinal
}

func podName(set *apps.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// isMemberOf says whether the Pod's name is one that the set gives.
func isMemberOf(set *apps.StatefulSet, pod *v1.Pod) bool {
	parent, _ := parentAndOrdinal(pod.Name)
	return parent == set.Name
}

// claimName is the name of the claim that the template is for in the Pod of an ordinal.
func claimName(set *apps.StatefulSet, template *v1.PersistentVolumeClaim, ordinal int) string {
	return fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal)
}

// revisionOf returns the name of the revision that a Pod was made from.
func revisionOf(pod *v1.Pod) string {
	return pod.Labels[apps.StatefulSetRevisionLabel]
}

// newPod returns the Pod of an ordinal, made from a revision's template.
func newPod(set *apps.StatefulSet, template *v1.PodTemplateSpec, revision string, ordinal int) (*v1.Pod, error) {
	pod, err := controller.GetPodFromTemplate(template, set, metav1.NewControllerRef(set, controllerKind))
	if err != nil {
		return nil, err
	}
	pod.Name = podName(set, ordinal)
	pod.Namespace = set.Namespace
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	setIdentity(pod, ordinal)
	setStorage(set, pod, ordinal)
	pod.Labels[apps.StatefulSetRevisionLabel] = revision
	return pod, nil
}

// setIdentity gives the Pod the labels that say which one of its set it is.
func setIdentity(pod *v1.Pod, ordinal int) {
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[apps.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[apps.PodIndexLabel] = strconv.Itoa(ordinal)
}

func identityMatches(pod *v1.Pod, ordinal int) bool {
	return pod.Labels[apps.StatefulSetPodNameLabel] == pod.Name &&
		pod.Labels[apps.PodIndexLabel] == strconv.Itoa(ordinal)
}

// setStorage points the Pod at its claims. A volume of the same name gives way.
func setStorage(set *apps.StatefulSet, pod *v1.Pod, ordinal int) {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return
	}
	volumes := make([]v1.Volume, 0, len(set.Spec.VolumeClaimTemplates)+len(pod.Spec.Volumes))
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		volumes = append(volumes, v1.Volume{Name: template.Name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, template, ordinal)},
		}})
	}
	claims := len(volumes)
	for _, volume := range pod.Spec.Volumes {
		if !slices.ContainsFunc(volumes[:claims], func(claim v1.Volume) bool { return claim.Name == volume.Name }) {
			volumes = append(volumes, volume)
		}
	}
	pod.Spec.Volumes = volumes
}

func storageMatches(set *apps.StatefulSet, pod *v1.Pod, ordinal int) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		mounted := slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool {
			return volume.Name == template.Name && volume.PersistentVolumeClaim != nil &&
				volume.PersistentVolumeClaim.ClaimName == claimName(set, template, ordinal)
		})
		if !mounted {
			return false
		}
	}
	return true
}

// mendingPatch returns the strategic merge patch that gives exactly this Pod its labels
// and, unless it has them, its claims.
func mendingPatch(set *apps.StatefulSet, pod *v1.Pod, ordinal int, mounted bool) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{
		"uid":    pod.UID,
		"labels": map[string]string{apps.StatefulSetPodNameLabel: pod.Name, apps.PodIndexLabel: strconv.Itoa(ordinal)},
	}}
	if !mounted {
		var volumes []any
		for i := range set.Spec.VolumeClaimTemplates {
			template := &set.Spec.VolumeClaimTemplates[i]
			volumes = append(volumes, map[string]any{
				"name":                  template.Name,
				"persistentVolumeClaim": map[string]string{"claimName": claimName(set, template, ordinal)},
				// Another source of a volume of this name gives way.
				"$retainKeys": []string{"name", "persistentVolumeClaim"},
			})
		}
		patch["spec"] = map[string]any{"volumes": volumes}
	}
	return json.Marshal(patch)
}

func isCreated(pod *v1.Pod) bool {
	return pod.Status.Phase != ""
}

func isRunningAndReady(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodRunning && podutil.IsPodReady(pod)
}

func isAvailable(pod *v1.Pod, minReadySeconds int32, now metav1.Time) bool {
	return isRunningAndReady(pod) && podutil.IsPodAvailable(pod, minReadySeconds, now)
}
