// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	// completionIndexEnv is the variable that tells containers their Pod's index.
	completionIndexEnv = "JOB_COMPLETION_INDEX"
	// maxNamePrefix is what the API server keeps of generateName.
	maxNamePrefix = 58
)

// podTemplate returns a template for the Job's Pods, with all that they have in common.
func podTemplate(job *batch.Job) *v1.PodTemplateSpec {
	template := job.Spec.Template.DeepCopy()
	if !slices.Contains(template.Finalizers, batch.JobTrackingFinalizer) {
		template.Finalizers = append(template.Finalizers, batch.JobTrackingFinalizer)
	}
	if isIndexed(job) {
		addIndexVariable(template.Spec.InitContainers)
		addIndexVariable(template.Spec.Containers)
	}
	return template
}

func addIndexVariable(containers []v1.Container) {
	for i := range containers {
		c := &containers[i]
		if slices.ContainsFunc(c.Env, func(e v1.EnvVar) bool { return e.Name == completionIndexEnv }) {
			continue
		}
		c.Env = append(c.Env, v1.EnvVar{
			Name: completionIndexEnv,
			ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{
				FieldPath: fmt.Sprintf("metadata.labels['%s']", batch.JobCompletionIndexAnnotation),
			}},
		})
	}
}

// indexTemplate returns the template of one Pod. It shares with the common one what it does
// not change: a template is only read when a Pod is made of it.
func indexTemplate(common *v1.PodTemplateSpec, job *batch.Job, next creation) *v1.PodTemplateSpec {
	if next.index == noIndex {
		return common
	}
	template := *common
	template.Labels, template.Annotations = maps.Clone(common.Labels), maps.Clone(common.Annotations)
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	index := strconv.Itoa(next.index)
	template.Labels[batch.JobCompletionIndexAnnotation] = index
	template.Annotations[batch.JobCompletionIndexAnnotation] = index
	template.Spec.Hostname = job.Name + "-" + index
	if job.Spec.BackoffLimitPerIndex != nil {
		template.Annotations[batch.JobIndexFailureCountAnnotation] = strconv.Itoa(next.failures)
		if next.ignored > 0 {
			template.Annotations[batch.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(next.ignored)
		}
	}
	return &template
}

// podNamePrefix is the generateName of a Pod; "" for that of pod control.
func podNamePrefix(job *batch.Job, next creation) string {
	if next.index == noIndex {
		return ""
	}
	suffix := "-" + strconv.Itoa(next.index) + "-"
	name := job.Name
	if len(name)+len(suffix) > maxNamePrefix {
		name = name[:maxNamePrefix-len(suffix)]
	}
	return name + suffix
}
