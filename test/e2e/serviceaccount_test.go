// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var _ = Describe("The default ServiceAccount", Label("serviceaccount-controller"), func() {
	c := useCluster()

	It("comes back when it is deleted", func(ctx SpecContext) {
		accounts := c.CoreV1().ServiceAccounts(c.namespace)
		before, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(accounts.Delete(ctx, "default", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) (*corev1.ServiceAccount, error) {
			return accounts.Get(ctx, "default", metav1.GetOptions{})
		}).WithContext(ctx).Should(HaveField("UID", Not(Equal(before.UID))))
	}, specTimeout)
})

var _ = Describe("A token Secret", Label("serviceaccount-token-controller"), func() {
	c := useCluster()

	It("gets a token that the API server knows, and goes with its account", func(ctx SpecContext) {
		_, err := c.CoreV1().ServiceAccounts(c.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = c.CoreV1().Secrets(c.namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "robot-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		var secret *corev1.Secret
		Eventually(func(ctx context.Context) (map[string][]byte, error) {
			var err error
			if secret, err = c.CoreV1().Secrets(c.namespace).Get(ctx, "robot-token", metav1.GetOptions{}); err != nil {
				return nil, err
			}
			return secret.Data, nil
		}).WithContext(ctx).Should(And(
			HaveKeyWithValue(corev1.ServiceAccountTokenKey, Not(BeEmpty())),
			HaveKeyWithValue(corev1.ServiceAccountNamespaceKey, BeEquivalentTo(c.namespace))))

		config := rest.AnonymousClientConfig(c.config)
		config.BearerToken = string(secret.Data[corev1.ServiceAccountTokenKey])
		robot, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		review, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:" + c.namespace + ":robot"))

		Expect(c.CoreV1().ServiceAccounts(c.namespace).Delete(ctx, "robot", metav1.DeleteOptions{})).To(Succeed())
		waitForGone(ctx, c.CoreV1().Secrets(c.namespace).Get, "robot-token")
	}, specTimeout)
})

var _ = Describe("The root certificate", Label("root-ca-certificate-publisher-controller"), func() {
	c := useCluster()
	const name = "kube-root-ca.crt"

	It("is in every namespace, is the API server's, and is put right", func(ctx SpecContext) {
		maps := c.CoreV1().ConfigMaps(c.namespace)
		certificate := func(ctx context.Context) (string, error) {
			m, err := maps.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return m.Data["ca.crt"], nil
		}
		Eventually(certificate).WithContext(ctx).Should(ContainSubstring("BEGIN CERTIFICATE"))
		published, err := certificate(ctx)
		Expect(err).NotTo(HaveOccurred())

		By("trusting it, and nothing else")
		config := rest.CopyConfig(c.config)
		config.CAFile, config.CAData = "", []byte(published)
		client, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		By("changing it")
		m, err := maps.Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		m.Data = map[string]string{"ca.crt": "another"}
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(certificate).WithContext(ctx).Should(Equal(published))

		By("deleting it")
		Expect(maps.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(certificate).WithContext(ctx).Should(Equal(published))
	}, specTimeout)
})
