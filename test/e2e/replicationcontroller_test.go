// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A ReplicationController", Label("replicationcontroller-controller"), func() {
	c := useCluster()
	const name = "rc"
	const selector = "app=" + name

	It("keeps the number of its pods", func(ctx SpecContext) {
		c.createReplicationController(ctx, name, 3)
		c.waitForRC(ctx, name, 3)
		c.haveEvent(ctx, "ReplicationController", name, "SuccessfulCreate")

		By("replacing one that is deleted")
		before, err := c.livePods(ctx, selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, before[0].Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) ([]string, error) {
			pods, err := c.livePods(ctx, selector)
			return podNames(pods), err
		}).WithContext(ctx).Should(And(HaveLen(3), Not(ContainElement(before[0].Name)), ContainElements(before[1].Name, before[2].Name)))
		c.waitForRC(ctx, name, 3)

		for _, replicas := range []int32{5, 1, 0} {
			By(fmt.Sprintf("scaling to %d", replicas))
			scale, err := c.CoreV1().ReplicationControllers(c.namespace).GetScale(ctx, name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			scale.Spec.Replicas = replicas
			_, err = c.CoreV1().ReplicationControllers(c.namespace).UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.waitForRC(ctx, name, replicas)
		}
		c.haveEvent(ctx, "ReplicationController", name, "SuccessfulDelete")
	}, specTimeout)

	It("takes in a pod that matches, and lets go of it when it no longer does", func(ctx SpecContext) {
		orphan := c.createPod(ctx, "orphan", func(p *corev1.Pod) { p.Labels["app"] = name })
		rc := c.createReplicationController(ctx, name, 1)
		c.waitForRC(ctx, name, 1)
		Expect(c.controllerOfPod(ctx, orphan.Name)).To(HaveField("UID", rc.UID))

		_, err := c.CoreV1().Pods(c.namespace).Patch(ctx, orphan.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(c.controllerOfPod).WithContext(ctx).WithArguments(orphan.Name).Should(BeNil())
		c.waitForRC(ctx, name, 1)
		Expect(c.liveCount(ctx, "app=other")).To(Equal(1), "the pod that was let go")
	}, specTimeout)
})

func (c *cluster) createReplicationController(ctx context.Context, name string, replicas int32) *corev1.ReplicationController {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	template := podTemplate(labels)
	rc, err := c.CoreV1().ReplicationControllers(c.namespace).Create(ctx, &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ReplicationControllerSpec{Replicas: &replicas, Selector: labels, Template: &template},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return rc
}

func (c *cluster) waitForRC(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		rc, err := c.CoreV1().ReplicationControllers(c.namespace).Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rc.Status.ObservedGeneration).To(Equal(rc.Generation), "observedGeneration")
		g.Expect(rc.Status.Replicas).To(Equal(replicas), "replicas")
		g.Expect(rc.Status.FullyLabeledReplicas).To(Equal(replicas), "fullyLabeledReplicas")
		g.Expect(rc.Status.ReadyReplicas).To(Equal(replicas), "readyReplicas")
		g.Expect(rc.Status.AvailableReplicas).To(Equal(replicas), "availableReplicas")
		g.Expect(c.liveCount(ctx, "app="+name)).To(BeEquivalentTo(replicas), "live pods")
	}).WithContext(ctx).Should(Succeed(), "replicas of %s", name)
}
