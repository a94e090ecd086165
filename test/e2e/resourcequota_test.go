// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A ResourceQuota", Label("resourcequota-controller"), func() {
	c := useCluster()

	It("counts what was there before it, gives back what goes, and follows its limits", func(ctx SpecContext) {
		c.createPod(ctx, "one", requestCPU("100m"))
		c.createPod(ctx, "two", requestCPU("50m"))
		_, err := c.CoreV1().Secrets(c.namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.createQuota(ctx, corev1.ResourceQuotaSpec{Hard: quantities("pods", "2", "requests.cpu", "1", "count/secrets", "5")})
		c.waitForQuota(ctx, quantities("pods", "2", "requests.cpu", "1", "count/secrets", "5"), quantities("pods", "2", "requests.cpu", "150m", "count/secrets", "1"))

		By("exceeding it")
		third := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "three"}, Spec: podTemplate(nil).Spec}
		requestCPU("100m")(third)
		_, err = c.CoreV1().Pods(c.namespace).Create(ctx, third, metav1.CreateOptions{})
		Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("exceeded quota"))))

		By("making room")
		Expect(c.CoreV1().Secrets(c.namespace).Delete(ctx, "data", metav1.DeleteOptions{})).To(Succeed())
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
		c.waitForQuota(ctx, quantities("pods", "2", "requests.cpu", "1", "count/secrets", "5"), quantities("pods", "1", "requests.cpu", "50m", "count/secrets", "0"))
		c.createPod(ctx, "three", requestCPU("100m"))

		By("changing its limits")
		_, err = c.CoreV1().ResourceQuotas(c.namespace).Patch(ctx, "quota", types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"7","count/secrets":null}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.waitForQuota(ctx, quantities("pods", "7", "requests.cpu", "1"), quantities("pods", "2", "requests.cpu", "150m"))
	}, specTimeout)

	It("counts only the pods of its scope", func(ctx SpecContext) {
		c.createQuota(ctx, corev1.ResourceQuotaSpec{Hard: quantities("pods", "10"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}})
		c.createPod(ctx, "one", requestCPU("100m"))
		c.createPod(ctx, "two", nil)
		c.createPod(ctx, "three", nil)
		c.waitForQuota(ctx, quantities("pods", "10"), quantities("pods", "2"))
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, "two", metav1.DeleteOptions{})).To(Succeed())
		c.waitForQuota(ctx, quantities("pods", "10"), quantities("pods", "1"))
	}, specTimeout)
})

func (c *cluster) createQuota(ctx context.Context, spec corev1.ResourceQuotaSpec) {
	GinkgoHelper()
	_, err := c.CoreV1().ResourceQuotas(c.namespace).Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: spec}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// waitForQuota waits until the status has these names and no others.
func (c *cluster) waitForQuota(ctx context.Context, hard, used corev1.ResourceList) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (map[string]map[string]string, error) {
		q, err := c.CoreV1().ResourceQuotas(c.namespace).Get(ctx, "quota", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return map[string]map[string]string{"hard": printed(q.Status.Hard), "used": printed(q.Status.Used)}, nil
	}).WithContext(ctx).Should(Equal(map[string]map[string]string{"hard": printed(hard), "used": printed(used)}))
}

// quantities takes names and values by turns.
func quantities(namesAndValues ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(namesAndValues); i += 2 {
		out[corev1.ResourceName(namesAndValues[i])] = resource.MustParse(namesAndValues[i+1])
	}
	return out
}

// printed is what compares: one quantity has many forms.
func printed(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

func requestCPU(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = quantities("cpu", cpu)
	}
}
