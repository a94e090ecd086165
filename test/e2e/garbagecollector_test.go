// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var _ = Describe("An owned object", Label("garbage-collector-controller"), func() {
	c := useCluster()

	It("goes after its owner, and so does what it owns", func(ctx SpecContext) {
		c.createDeployment(ctx, "web", 2, nil)
		c.waitForRollout(ctx, "web", 2)
		Expect(c.AppsV1().Deployments(c.namespace).Delete(ctx, "web", propagate(metav1.DeletePropagationBackground))).To(Succeed())
		waitForGone(ctx, c.AppsV1().Deployments(c.namespace).Get, "web")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(c.AppsV1().ReplicaSets(c.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
			g.Expect(c.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
		}).WithContext(ctx).Should(Succeed(), "its ReplicaSet and its pods go")
	}, specTimeout)

	It("goes before an owner that is deleted in the foreground", func(ctx SpecContext) {
		owner := c.createConfigMap(ctx, "owner", nil)
		c.createConfigMap(ctx, "owned", func(m *corev1.ConfigMap) { m.Finalizers, m.OwnerReferences = []string{holdFinalizer}, ownedBy(owner) })
		maps := c.CoreV1().ConfigMaps(c.namespace)
		Expect(maps.Delete(ctx, "owner", propagate(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(func(ctx context.Context) (*corev1.ConfigMap, error) {
			return maps.Get(ctx, "owned", metav1.GetOptions{})
		}).WithContext(ctx).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Consistently(func(ctx context.Context) (*corev1.ConfigMap, error) {
			return maps.Get(ctx, "owner", metav1.GetOptions{})
		}).WithContext(ctx).Should(HaveField("Finalizers", ConsistOf(metav1.FinalizerDeleteDependents)), "the owner waits")
		_, err := maps.Patch(ctx, "owned", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		waitForGone(ctx, maps.Get, "owned")
		waitForGone(ctx, maps.Get, "owner")
	}, specTimeout)

	It("stays without its owner when that is deleted as an orphan's", func(ctx SpecContext) {
		c.createReplicaSet(ctx, c.namespace, "set", 2)
		c.waitForReplicas(ctx, "set", 2)
		Expect(c.AppsV1().ReplicaSets(c.namespace).Delete(ctx, "set", propagate(metav1.DeletePropagationOrphan))).To(Succeed())
		waitForGone(ctx, c.AppsV1().ReplicaSets(c.namespace).Get, "set")
		pods, err := c.livePods(ctx, "app=set")
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(2))
		Expect(pods).To(HaveEach(HaveField("OwnerReferences", BeEmpty())))
	}, specTimeout)

	It("stays as long as one owner is left, and goes when it never had any", func(ctx SpecContext) {
		maps := c.CoreV1().ConfigMaps(c.namespace)
		first, second := c.createConfigMap(ctx, "first", nil), c.createConfigMap(ctx, "second", nil)
		c.createConfigMap(ctx, "shared", func(m *corev1.ConfigMap) { m.OwnerReferences = ownedBy(first, second) })
		c.createConfigMap(ctx, "stray", func(m *corev1.ConfigMap) {
			m.OwnerReferences = ownedBy(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never", UID: "00000000-0000-0000-0000-000000000000"}})
		})
		waitForGone(ctx, maps.Get, "stray")

		Expect(maps.Delete(ctx, "first", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) (*corev1.ConfigMap, error) {
			return maps.Get(ctx, "shared", metav1.GetOptions{})
		}).WithContext(ctx).Should(HaveField("OwnerReferences", ConsistOf(HaveField("UID", second.UID))))
		Expect(maps.Delete(ctx, "second", metav1.DeleteOptions{})).To(Succeed())
		waitForGone(ctx, maps.Get, "shared")
	}, specTimeout)
})

func propagate(policy metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// ownedBy are references that hold up a deletion of the owner in the foreground.
func ownedBy(owners ...*corev1.ConfigMap) []metav1.OwnerReference {
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		})
	}
	return references
}
