// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cleanupTimeout is how long the API server may take to answer when all is over.
const cleanupTimeout = time.Minute

// cluster is what a spec has of the cluster: an administrator's client, and a namespace of its own.
type cluster struct {
	kubernetes.Interface
	config    *rest.Config
	namespace string
}

// useCluster gives every spec of a container a namespace, and takes it away after the spec.
func useCluster() *cluster {
	c := &cluster{}
	BeforeEach(func(ctx SpecContext) {
		var err error
		c.config, err = clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfigVariable))
		Expect(err).NotTo(HaveOccurred())
		c.config.UserAgent = "kcm-e2e"
		// Tests wait for the controllers, not for themselves.
		c.config.QPS, c.config.Burst = -1, 0
		c.Interface, err = kubernetes.NewForConfig(c.config)
		Expect(err).NotTo(HaveOccurred())
		c.namespace = c.newNamespace(ctx, nil)
	})
	return c
}

// newNamespace makes a namespace that goes with the spec, and waits for its default service account, without which no
// pod can be made.
func (c *cluster) newNamespace(ctx context.Context, labels map[string]string) string {
	GinkgoHelper()
	ns, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kcm-e2e-", Labels: labels},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			c.report(ctx, ns.Name)
		}
		// Not waited for: a spec of the namespace-controller does that.
		c.deleteNamespace(ctx, ns.Name)
	}, NodeTimeout(cleanupTimeout))
	Eventually(func(ctx context.Context) error {
		_, err := c.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Succeed(), "the default service account")
	return ns.Name
}

func (c *cluster) deleteNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	err := c.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}

func (c *cluster) waitForNoNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		ns, err := c.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: %v", ns.Status.Phase, ns.Status.Conditions), nil
	}).WithContext(ctx).Should(BeEmpty(), "namespace %s goes", name)
}

// report adds the namespace's events and pods to the report of a failed spec.
func (c *cluster) report(ctx context.Context, namespace string) {
	var out strings.Builder
	if events, err := c.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, e := range events.Items {
			fmt.Fprintf(&out, "%s %s/%s %s: %s\n", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	if pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, p := range pods.Items {
			fmt.Fprintf(&out, "pod %s on %q: %s, deleted %v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp)
		}
	}
	AddReportEntry("namespace "+namespace, out.String(), ReportEntryVisibilityFailureOrVerbose)
}

// podImage is in every cluster that kubeadm or kind made.
func podImage() string {
	if image := os.Getenv("KCM_E2E_IMAGE"); image != "" {
		return image
	}
	return "registry.k8s.io/pause:3.10.1"
}

// holdFinalizer is nobody's but the suite's: what has it stays in deletion.
const holdFinalizer = "kcm-e2e.example.com/hold"

// createConfigMap makes the plainest of objects; change may be nil.
func (c *cluster) createConfigMap(ctx context.Context, name string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	GinkgoHelper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if change != nil {
		change(m)
	}
	m, err := c.CoreV1().ConfigMaps(c.namespace).Create(ctx, m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return m
}

// waitForGone waits until there is no object of that name: waitForGone(ctx, c.CoreV1().Pods(c.namespace).Get, "name").
func waitForGone[T any](ctx context.Context, get func(context.Context, string, metav1.GetOptions) (T, error), name string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		_, err := get(ctx, name, metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Satisfy(apierrors.IsNotFound), "%s is gone", name)
}

// podTemplate is of a pod that does nothing, and ends at once.
func podTemplate(labels map[string]string) corev1.PodTemplateSpec {
	grace := int64(1)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "main", Image: podImage()}},
			TerminationGracePeriodSeconds: &grace,
		},
	}
}

// livePods returns the namespace's pods that match and are not about to end.
func (c *cluster) livePods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	list, err := c.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var live []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			live = append(live, p)
		}
	}
	return live, nil
}

// haveEvent succeeds when the namespace has an event of that reason about an object.
func (c *cluster) haveEvent(ctx context.Context, kind, name, reason string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) ([]string, error) {
		events, err := c.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var reasons []string
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons, nil
	}).WithContext(ctx).Should(ContainElement(reason), "events of %s %s", kind, name)
}
