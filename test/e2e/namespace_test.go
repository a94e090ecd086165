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
)

var _ = Describe("A Namespace", Label("namespace-controller"), func() {
	c := useCluster()

	It("goes with all that is in it, and with nothing else", func(ctx SpecContext) {
		doomed := &cluster{Interface: c.Interface, config: c.config, namespace: c.newNamespace(ctx, nil)}
		for _, in := range []*cluster{c, doomed} {
			in.createConfigMap(ctx, "data", nil)
			_, err := in.CoreV1().Secrets(in.namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		doomed.createDeployment(ctx, "web", 2, nil)
		doomed.waitForRollout(ctx, "web", 2)

		c.deleteNamespace(ctx, doomed.namespace)
		c.waitForNoNamespace(ctx, doomed.namespace)

		By("looking for what a new namespace of that name would have")
		_, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed.namespace}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.CoreV1().Secrets(doomed.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
		Expect(c.AppsV1().Deployments(doomed.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
		Expect(c.CoreV1().Pods(doomed.namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
		Expect(c.CoreV1().Secrets(c.namespace).Get(ctx, "data", metav1.GetOptions{})).NotTo(BeNil())
		Expect(c.CoreV1().ConfigMaps(c.namespace).Get(ctx, "data", metav1.GetOptions{})).NotTo(BeNil())
	}, specTimeout)

	It("waits for finalizers, and says whose", Label(labelSlow), func(ctx SpecContext) {
		doomed := &cluster{Interface: c.Interface, config: c.config, namespace: c.newNamespace(ctx, nil)}
		doomed.createConfigMap(ctx, "held", func(m *corev1.ConfigMap) { m.Finalizers = []string{holdFinalizer} })
		c.deleteNamespace(ctx, doomed.namespace)
		Eventually(func(ctx context.Context) (*corev1.Namespace, error) {
			return c.CoreV1().Namespaces().Get(ctx, doomed.namespace, metav1.GetOptions{})
		}).WithContext(ctx).Should(HaveField("Status", And(
			HaveField("Phase", corev1.NamespaceTerminating),
			HaveField("Conditions", ContainElement(And(
				HaveField("Type", corev1.NamespaceFinalizersRemaining), HaveField("Status", corev1.ConditionTrue),
				HaveField("Message", ContainSubstring(holdFinalizer+" in 1 resource instances"))))))))
		_, err := c.CoreV1().ConfigMaps(doomed.namespace).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.waitForNoNamespace(ctx, doomed.namespace)
	}, specTimeout)
})
