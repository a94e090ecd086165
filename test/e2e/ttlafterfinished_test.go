// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var _ = Describe("A finished Job", Label("ttl-after-finished-controller"), func() {
	c := useCluster()

	It("goes when its time to live has passed, and not before", func(ctx SpecContext) {
		const ttl = 3
		start := time.Now()
		c.createFinishedJob(ctx, "short", ptr.To[int32](ttl))
		c.createFinishedJob(ctx, "long", ptr.To[int32](3600))
		c.createFinishedJob(ctx, "endless", nil)
		waitForGone(ctx, c.BatchV1().Jobs(c.namespace).Get, "short")
		// Finished at a time of whole seconds.
		Expect(time.Since(start)).To(BeNumerically(">=", (ttl-1)*time.Second))
		Expect(c.BatchV1().Jobs(c.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", ConsistOf(
			HaveField("Name", "long"), HaveField("Name", "endless"))))
	}, specTimeout)
})

// createFinishedJob makes a Job that the cluster's job-controller leaves alone, and plays its part.
func (c *cluster) createFinishedJob(ctx context.Context, name string, ttl *int32) {
	GinkgoHelper()
	template := podTemplate(nil)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job, err := c.BatchV1().Jobs(c.namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			ManagedBy: ptr.To("kcm-e2e.example.com/test"), TTLSecondsAfterFinished: ttl, Template: template,
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	now := metav1.Now()
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1,
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	_, err = c.BatchV1().Jobs(c.namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
