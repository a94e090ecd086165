// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// jobs: many Jobs are created, and their Pods succeed as soon as they run.
func jobs(name string, parallelism int32) benchmark.Scenario {
	const completions = 10
	return benchmark.Scenario{
		Name:        name,
		Title:       fmt.Sprintf("500 Jobs of 10 completions, %d at a time, whose pods succeed at once: until all are complete", parallelism),
		Controllers: []string{names.JobController},
		Nodes:       10,
		Kubelet:     fakekubelet.Options{Workers: 32},
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			e.Kubelet.Set(fakekubelet.Succeeded, nil)
			e.Informers.Batch().V1().Jobs().Lister()
			return e.Sync(ctx)
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			return e.Measure(ctx, "", func(ctx context.Context) error {
				for i := range e.N(500) {
					if _, err := e.Client.BatchV1().Jobs(namespace).Create(ctx, newJob(fmt.Sprintf("work-%d", i), completions, parallelism), metav1.CreateOptions{}); err != nil {
						return err
					}
				}
				return e.Wait(ctx, "all jobs to be complete", jobsComplete(e, e.N(500), completions))
			})
		},
	}
}

func newJob(name string, completions, parallelism int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Completions: &completions,
			Parallelism: &parallelism,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "example.com/job:1"}},
			}},
		},
	}
}

func jobsComplete(e *benchmark.Env, count int, completions int32) func(context.Context) (bool, error) {
	lister := e.Informers.Batch().V1().Jobs().Lister()
	return func(context.Context) (bool, error) {
		all, err := lister.Jobs(namespace).List(labels.Everything())
		if err != nil || len(all) < count {
			return false, err
		}
		for _, job := range all {
			if job.Status.CompletionTime == nil {
				return false, nil
			}
			if job.Status.Succeeded != completions {
				return false, fmt.Errorf("job %s is complete with %d of %d", job.Name, job.Status.Succeeded, completions)
			}
		}
		return true, nil
	}
}
