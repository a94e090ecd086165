// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A StatefulSet", Label("statefulset-controller"), func() {
	c := useCluster()
	const name = "set"

	create := func(ctx context.Context, change func(*appsv1.StatefulSet)) {
		GinkgoHelper()
		labels := map[string]string{"app": name}
		replicas := int32(3)
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels),
			},
		}
		if change != nil {
			change(set)
		}
		_, err := c.AppsV1().StatefulSets(c.namespace).Create(ctx, set, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	patch := func(ctx context.Context, patch string) {
		GinkgoHelper()
		_, err := c.AppsV1().StatefulSets(c.namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	// settled waits until the set's status says that it is complete, and looks for its pods by name.
	settled := func(ctx context.Context, ordinals ...int) *appsv1.StatefulSet {
		GinkgoHelper()
		want := int32(len(ordinals))
		var set *appsv1.StatefulSet
		Eventually(func(ctx context.Context) (appsv1.StatefulSetStatus, error) {
			var err error
			set, err = c.AppsV1().StatefulSets(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return appsv1.StatefulSetStatus{}, err
			}
			if set.Status.ObservedGeneration != set.Generation {
				return appsv1.StatefulSetStatus{}, fmt.Errorf("generation %d is not observed yet", set.Generation)
			}
			return set.Status, nil
		}).WithContext(ctx).Should(And(HaveField("Replicas", want), HaveField("AvailableReplicas", want), HaveField("UpdatedReplicas", want)))
		pods, err := c.livePods(ctx, "app="+name)
		Expect(err).NotTo(HaveOccurred())
		var wanted []string
		for _, ordinal := range ordinals {
			wanted = append(wanted, fmt.Sprintf("%s-%d", name, ordinal))
		}
		Expect(podNames(pods)).To(ConsistOf(wanted))
		return set
	}

	It("gives its pods names that last, one after the other", func(ctx SpecContext) {
		create(ctx, nil)
		settled(ctx, 0, 1, 2)
		before, err := c.CoreV1().Pods(c.namespace).Get(ctx, name+"-1", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		By("deleting one of them")
		Expect(c.CoreV1().Pods(c.namespace).Delete(ctx, before.Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) (types.UID, error) {
			pod, err := c.CoreV1().Pods(c.namespace).Get(ctx, before.Name, metav1.GetOptions{})
			if err != nil {
				return before.UID, nil
			}
			return pod.UID, nil
		}).WithContext(ctx).ShouldNot(Equal(before.UID))
		settled(ctx, 0, 1, 2)

		By("scaling it down and up")
		patch(ctx, `{"spec":{"replicas":1}}`)
		settled(ctx, 0)
		patch(ctx, `{"spec":{"replicas":2}}`)
		settled(ctx, 0, 1)
	}, specTimeout)

	It("rolls a new template out down to its partition", func(ctx SpecContext) {
		create(ctx, func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement })
		first := settled(ctx, 0, 1, 2).Status.CurrentRevision
		patch(ctx, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
		revisions := func(ctx context.Context) (map[string]string, error) {
			pods, err := c.livePods(ctx, "app="+name)
			of := map[string]string{}
			for _, pod := range pods {
				of[pod.Name] = pod.Annotations["v"]
			}
			return of, err
		}
		Eventually(revisions).WithContext(ctx).Should(Equal(map[string]string{name + "-0": "", name + "-1": "2", name + "-2": "2"}))
		Consistently(revisions).WithContext(ctx).Should(HaveKeyWithValue(name+"-0", ""))

		By("lifting the partition")
		patch(ctx, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		Eventually(revisions).WithContext(ctx).Should(Equal(map[string]string{name + "-0": "2", name + "-1": "2", name + "-2": "2"}))
		set := settled(ctx, 0, 1, 2)
		Expect(set.Status.CurrentRevision).To(And(Equal(set.Status.UpdateRevision), Not(Equal(first))))
	}, specTimeout)
})
