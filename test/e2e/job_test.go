// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const jobTimeout = 90 * time.Second

var _ = Describe("A Job", Label("job-controller"), func() {
	c := useCluster()

	It("waits while it is suspended, then runs each index once, and lets its pods go", func(ctx SpecContext) {
		template := podTemplate(nil)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		// On a real node the container has to end by itself.
		template.Spec.Containers[0].Image = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
		template.Spec.Containers[0].Command = []string{"true"}
		jobs := c.BatchV1().Jobs(c.namespace)
		_, err := jobs.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "work"},
			Spec: batchv1.JobSpec{
				Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](2), CompletionMode: ptr.To(batchv1.IndexedCompletion),
				Suspend: ptr.To(true), Template: template,
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		status := func(ctx context.Context) (batchv1.JobStatus, error) {
			job, err := jobs.Get(ctx, "work", metav1.GetOptions{})
			if err != nil {
				return batchv1.JobStatus{}, err
			}
			return job.Status, nil
		}
		isTrue := func(kind batchv1.JobConditionType) types.GomegaMatcher {
			return HaveField("Conditions", ContainElement(And(HaveField("Type", kind), HaveField("Status", corev1.ConditionTrue))))
		}
		Eventually(ctx, status).WithTimeout(jobTimeout).Should(And(isTrue(batchv1.JobSuspended), HaveField("StartTime", BeNil())))
		Expect(c.jobPods(ctx, "work")).To(BeEmpty())

		_, err = jobs.Patch(ctx, "work", apitypes.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, status).WithTimeout(jobTimeout).Should(And(
			isTrue(batchv1.JobComplete), HaveField("CompletedIndexes", "0-3"), HaveField("Succeeded", int32(4)), HaveField("Failed", int32(0)), HaveField("StartTime", Not(BeNil()))))
		pods := c.jobPods(ctx, "work")
		Expect(pods).To(HaveLen(4))
		Expect(pods).To(HaveEach(HaveField("Finalizers", Not(ContainElement(batchv1.JobTrackingFinalizer)))))
	}, specTimeout)
})

// jobPods returns the Pods of a Job in the order of their host names, which tell their indexes.
func (c *cluster) jobPods(ctx context.Context, job string) []corev1.Pod {
	GinkgoHelper()
	list, err := c.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	Expect(err).NotTo(HaveOccurred())
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Spec.Hostname, b.Spec.Hostname) })
	return list.Items
}
