// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var _ = Describe("A PodDisruptionBudget", Label("disruption-controller"), func() {
	c := useCluster()
	const name = "guarded"

	It("lets as many pods go as it allows, and again when they are back", func(ctx SpecContext) {
		c.createReplicaSet(ctx, c.namespace, name, 3)
		c.waitForReplicas(ctx, name, 3)
		one := intstr.FromInt32(1)
		_, err := c.PolicyV1().PodDisruptionBudgets(c.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		allowed := func(ctx context.Context) (int32, error) {
			pdb, err := c.PolicyV1().PodDisruptionBudgets(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return 0, err
			}
			return pdb.Status.DisruptionsAllowed, nil
		}
		evict := func(pod string) error {
			return c.CoreV1().Pods(c.namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: pod}})
		}
		Eventually(allowed).WithContext(ctx).Should(BeEquivalentTo(1))

		pods, err := c.livePods(ctx, "app="+name)
		Expect(err).NotTo(HaveOccurred())
		Expect(evict(pods[0].Name)).To(Succeed())
		By("refusing the next while the replacement is not ready")
		Expect(evict(pods[1].Name)).To(Satisfy(apierrors.IsTooManyRequests))
		c.waitForReplicas(ctx, name, 3)
		Eventually(allowed).WithContext(ctx).Should(BeEquivalentTo(1))
	}, specTimeout)
})
