// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A ReplicaSet", Label("replicaset-controller"), func() {
	c := useCluster()
	const name = "set"
	const selector = "app=" + name

	It("keeps the number of its pods", func(ctx SpecContext) {
		c.createReplicaSet(ctx, c.namespace, name, 3)
		c.waitForReplicas(ctx, name, 3)
		c.haveEvent(ctx, "ReplicaSet", name, "SuccessfulCreate")

		By("replacing one that is deleted")
		before, err := c.livePods(ctx, selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, before[0].Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) ([]string, error) {
			pods, err := c.livePods(ctx, selector)
			return podNames(pods), err
		}).WithContext(ctx).Should(And(HaveLen(3), Not(ContainElement(before[0].Name)), ContainElements(before[1].Name, before[2].Name)))
		c.waitForReplicas(ctx, name, 3)

		for _, replicas := range []int32{6, 2, 0} {
			By(fmt.Sprintf("scaling to %d", replicas))
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			_, err := c.AppsV1().ReplicaSets(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.waitForReplicas(ctx, name, replicas)
		}
		c.haveEvent(ctx, "ReplicaSet", name, "SuccessfulDelete")
	}, specTimeout)

	It("takes in pods that match, and lets go of those that no longer do", func(ctx SpecContext) {
		orphan := c.createPod(ctx, "orphan", func(p *corev1.Pod) { p.Labels["app"] = name })
		rs := c.createReplicaSet(ctx, c.namespace, name, 2)
		c.waitForReplicas(ctx, name, 2)
		Expect(c.controllerOfPod(ctx, orphan.Name)).To(HaveField("UID", rs.UID))

		By("changing its label")
		_, err := c.CoreV1().Pods(c.namespace).Patch(ctx, orphan.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(c.controllerOfPod).WithContext(ctx).WithArguments(orphan.Name).Should(BeNil())
		c.waitForReplicas(ctx, name, 2)
		Expect(c.liveCount(ctx, "app=other")).To(Equal(1), "the pod that was let go")
	}, specTimeout)

	It("says when its pods are refused, and makes them when they no longer are", func(ctx SpecContext) {
		namespace := c.newNamespace(ctx, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
		c.createReplicaSet(ctx, namespace, name, 1)
		status := func(ctx context.Context) (appsv1.ReplicaSetStatus, error) {
			rs, err := c.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return appsv1.ReplicaSetStatus{}, err
			}
			return rs.Status, nil
		}
		Eventually(status).WithContext(ctx).Should(HaveField("Conditions", ConsistOf(And(
			HaveField("Type", appsv1.ReplicaSetReplicaFailure), HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "FailedCreate")))))
		_, err := c.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(status).WithContext(ctx).Should(And(HaveField("ReadyReplicas", BeEquivalentTo(1)), HaveField("Conditions", BeEmpty())))
	}, specTimeout)
})

func (c *cluster) createReplicaSet(ctx context.Context, namespace, name string, replicas int32) *appsv1.ReplicaSet {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	rs, err := c.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels),
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return rs
}

func (c *cluster) waitForReplicas(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		rs, err := c.AppsV1().ReplicaSets(c.namespace).Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rs.Status.ObservedGeneration).To(Equal(rs.Generation), "observedGeneration")
		g.Expect(rs.Status.Replicas).To(Equal(replicas), "replicas")
		g.Expect(rs.Status.FullyLabeledReplicas).To(Equal(replicas), "fullyLabeledReplicas")
		g.Expect(rs.Status.ReadyReplicas).To(Equal(replicas), "readyReplicas")
		g.Expect(rs.Status.AvailableReplicas).To(Equal(replicas), "availableReplicas")
		g.Expect(c.liveCount(ctx, "app="+name)).To(BeEquivalentTo(replicas), "live pods")
	}).WithContext(ctx).Should(Succeed(), "replicas of %s", name)
}
