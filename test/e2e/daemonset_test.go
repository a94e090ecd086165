// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A DaemonSet", Label("daemonset-controller"), func() {
	c := useCluster()
	const name = "agent"

	It("has a pod on each node that it is for, and rolls out a change", func(ctx SpecContext) {
		labels := map[string]string{"app": name}
		_, err := c.AppsV1().DaemonSets(c.namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		complete := func(ctx context.Context) (bool, error) {
			ds, err := c.AppsV1().DaemonSets(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			s := ds.Status
			return s.ObservedGeneration == ds.Generation && s.DesiredNumberScheduled > 0 &&
				s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled, nil
		}
		Eventually(complete).WithContext(ctx).Should(BeTrue())
		before, err := c.livePods(ctx, "app="+name)
		Expect(err).NotTo(HaveOccurred())
		nodes := map[string]bool{}
		for _, pod := range before {
			Expect(nodes).NotTo(HaveKey(pod.Spec.NodeName), "two pods on a node")
			nodes[pod.Spec.NodeName] = true
		}

		By("changing its template")
		patch := `{"spec":{"template":{"metadata":{"annotations":{"changed":"yes"}}}}}`
		_, err = c.AppsV1().DaemonSets(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(complete).WithContext(ctx).Should(BeTrue())
		after, err := c.livePods(ctx, "app="+name)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(HaveLen(len(before)))
		Expect(podNames(after)).NotTo(ContainElement(BeElementOf(podNames(before))))
		c.haveEvent(ctx, "DaemonSet", name, "SuccessfulCreate")
	}, specTimeout)
})
