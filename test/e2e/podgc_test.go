// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podGCTimeout is far longer than a node's quarantine of 40 seconds and the two passes around it, 20 seconds apart.
const podGCTimeout = 3 * time.Minute

var _ = Describe("A Pod that no kubelet ends", Label("pod-garbage-collector-controller"), func() {
	c := useCluster()

	It("is ended: of a node that is not there, and in deletion on no node", Label(labelSlow), func(ctx SpecContext) {
		// A finalizer, so that its last status can be seen.
		c.createPod(ctx, "lost", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Finalizers = c.namespace+"-no-such-node", []string{holdFinalizer}
		})
		c.createPod(ctx, "unscheduled", func(p *corev1.Pod) {
			p.Spec.NodeSelector, p.Finalizers = map[string]string{"kcm-e2e/no-such-node": "true"}, []string{holdFinalizer}
		})
		c.createPod(ctx, "running", nil)
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, "unscheduled", metav1.DeleteOptions{})).To(Succeed())

		for _, name := range []string{"unscheduled", "lost"} {
			Eventually(func(ctx context.Context) (*corev1.Pod, error) {
				return c.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
			}).WithContext(ctx).WithTimeout(podGCTimeout).Should(And(
				HaveField("Status.Phase", corev1.PodFailed), HaveField("DeletionTimestamp", Not(BeNil()))), "pod %s", name)
		}
		lost, err := c.CoreV1().Pods(c.namespace).Get(ctx, "lost", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(lost.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.DisruptionTarget), HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "DeletionByPodGC"))))

		for _, name := range []string{"unscheduled", "lost"} {
			_, err := c.CoreV1().Pods(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			waitForGone(ctx, c.CoreV1().Pods(c.namespace).Get, name)
		}
		Expect(c.CoreV1().Pods(c.namespace).Get(ctx, "running", metav1.GetOptions{})).To(And(
			HaveField("Status.Phase", corev1.PodRunning), HaveField("DeletionTimestamp", BeNil())), "what needs no help")
	}, specTimeout)
})
