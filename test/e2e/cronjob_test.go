// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A CronJob", Label("cronjob-controller"), func() {
	c := useCluster()
	const name = "tick"

	It("runs a job for the latest time when it is resumed, and none while it is suspended", func(ctx SpecContext) {
		template := podTemplate(map[string]string{"app": name})
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		// No node has this: a Pod that ran would end, and the Job leave the
		// CronJob's active ones while the test looks at them.
		template.Spec.NodeSelector = map[string]string{"kcm.dev/node": "none"}
		_, err := c.BatchV1().CronJobs(c.namespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.CronJobSpec{
				Schedule: "*/30 * * * *", TimeZone: new("Asia/Tokyo"), Suspend: new(true),
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		past := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
		patch := func(body string, subresource ...string) {
			GinkgoHelper()
			_, err := c.BatchV1().CronJobs(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
			Expect(err).NotTo(HaveOccurred())
		}
		patch(fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, past), "status")
		jobs := func(ctx context.Context) ([]batchv1.Job, error) {
			list, err := c.BatchV1().Jobs(c.namespace).List(ctx, metav1.ListOptions{})
			return list.Items, err
		}
		Consistently(jobs).WithContext(ctx).Should(BeEmpty())

		By("resuming it")
		patch(`{"spec":{"suspend":false}}`)
		Eventually(jobs).WithContext(ctx).ShouldNot(BeEmpty())
		Consistently(jobs).WithContext(ctx).Should(HaveLen(1))
		made, err := jobs(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(made[0].Annotations).To(HaveKeyWithValue(batchv1.CronJobScheduledTimestampAnnotation, MatchRegexp(`:[03]0:00\+09:00$`)))
		Eventually(func(ctx context.Context) (batchv1.CronJobStatus, error) {
			cj, err := c.BatchV1().CronJobs(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return batchv1.CronJobStatus{}, err
			}
			return cj.Status, nil
		}).WithContext(ctx).Should(And(
			HaveField("Active", HaveExactElements(HaveField("UID", made[0].UID))),
			HaveField("LastScheduleTime.Time", BeTemporally(">", time.Now().Add(-31*time.Minute)))))
		c.haveEvent(ctx, "CronJob", name, "SuccessfulCreate")
	}, specTimeout)
})
