// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/test/benchmark"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// jobs: many Jobs are created, and their Pods succeed as soon as they run. Until all are complete, which is what users
// wait for, and from then until no Pod has the finalizer any more.
func jobs(name string, parallelism int32) benchmark.Scenario {
	const completions = 10
	return benchmark.Scenario{
		Name:        name,
		Title:       fmt.Sprintf("500 Jobs of 10 completions, %d at a time, whose pods succeed at once: until all are complete, and until no pod has a finalizer", parallelism),
		Controllers: []string{names.JobController},
		Nodes:       10,
		Kubelet:     fakekubelet.Options{Workers: 32},
		// Upstream's default limit lets 20 of 25,000 requests a second through.
		Timeout: 30 * time.Minute,
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			e.Kubelet.Set(fakekubelet.Succeeded, nil)
			e.Informers.Batch().V1().Jobs().Lister()
			return e.Sync(ctx)
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			err := e.Measure(ctx, "complete", func(ctx context.Context) error {
				for i := range e.N(500) {
					if _, err := e.Client.BatchV1().Jobs(namespace).Create(ctx, newJob(fmt.Sprintf("work-%d", i), completions, parallelism), metav1.CreateOptions{}); err != nil {
						return err
					}
				}
				return e.Wait(ctx, "all jobs to be complete", jobsComplete(e, e.N(500), completions))
			})
			if err != nil {
				return err
			}
			return e.Measure(ctx, "finalizers", func(ctx context.Context) error {
				return e.Wait(ctx, "no pod to have a finalizer", noPodHasFinalizers(e))
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

// noPodHasFinalizers looks at all Pods in the API server's cache: at once, and then once a second, because that is work
// for the API server that is measured too.
func noPodHasFinalizers(e *benchmark.Env) func(context.Context) (bool, error) {
	var asked time.Time
	return func(ctx context.Context) (bool, error) {
		if time.Since(asked) < time.Second {
			return false, nil
		}
		asked = time.Now()
		all, err := e.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(all.Items, func(pod corev1.Pod) bool { return len(pod.Finalizers) > 0 }), nil
	}
}
