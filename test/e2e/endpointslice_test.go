// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package e2e

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var _ = Describe("A Service's endpoints", Label("endpointslice-controller"), func() {
	c := useCluster()
	const name = "web"

	It("follow its Deployment as pods come and go", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		d := c.waitForRollout(ctx, name, 2)
		c.createService(ctx, name, d.Spec.Selector.MatchLabels)
		c.haveEndpointsOf(ctx, name, d)

		for _, replicas := range []int32{4, 1} {
			c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
			c.haveEndpointsOf(ctx, name, c.waitForRollout(ctx, name, replicas))
		}
		before := c.targets(ctx, name)
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { setVariable(d, "2") })
		c.haveEndpointsOf(ctx, name, c.waitForRollout(ctx, name, 1))
		Expect(c.targets(ctx, name)).NotTo(Equal(before))
	}, specTimeout)

	It("are put right when somebody edits or deletes a slice", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		d := c.waitForRollout(ctx, name, 2)
		c.createService(ctx, name, d.Spec.Selector.MatchLabels)
		c.haveEndpointsOf(ctx, name, d)
		slice := c.endpointSlices(ctx, name)[0]
		slice.Endpoints = nil
		_, err := c.DiscoveryV1().EndpointSlices(c.namespace).Update(ctx, &slice, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.haveEndpointsOf(ctx, name, d)
		Expect(c.DiscoveryV1().EndpointSlices(c.namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{})).To(Succeed())
		c.haveEndpointsOf(ctx, name, d)
	}, specTimeout)
})

var _ = Describe("Endpoints", Label("endpoints-controller"), func() {
	c := useCluster()
	const name = "web"

	It("of a Service have its pods, and go with it", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		d := c.waitForRollout(ctx, name, 2)
		c.createService(ctx, name, d.Spec.Selector.MatchLabels)
		Eventually(func(ctx context.Context) (count int, err error) {
			endpoints, err := c.CoreV1().Endpoints(c.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return 0, err
			}
			for _, subset := range endpoints.Subsets {
				count += len(subset.Addresses)
			}
			return count, nil
		}).WithContext(ctx).Should(Equal(2))
		Expect(c.CoreV1().Services(c.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) ([]corev1.Endpoints, error) {
			list, err := c.CoreV1().Endpoints(c.namespace).List(ctx, metav1.ListOptions{})
			return list.Items, err
		}).WithContext(ctx).Should(BeEmpty())
	}, specTimeout)
})

var _ = Describe("Endpoints that somebody writes", Label("endpointslice-mirroring-controller"), func() {
	c := useCluster()
	const name = "manual"

	It("are mirrored to a slice of their Service", func(ctx SpecContext) {
		c.createService(ctx, name, nil)
		_, err := c.CoreV1().Endpoints(c.namespace).Create(ctx, &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 8080}},
			}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(c.endpointSlices).WithContext(ctx).WithArguments(name).Should(HaveLen(1))
		Expect(c.endpointSlices(ctx, name)[0].Endpoints[0].Addresses).To(Equal([]string{"192.0.2.1"}))
		Expect(c.CoreV1().Endpoints(c.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(c.endpointSlices).WithContext(ctx).WithArguments(name).Should(BeEmpty())
	}, specTimeout)
})

func (c *cluster) createService(ctx context.Context, name string, selector map[string]string) {
	GinkgoHelper()
	_, err := c.CoreV1().Services(c.namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) endpointSlices(ctx context.Context, service string) []discoveryv1.EndpointSlice {
	GinkgoHelper()
	list, err := c.DiscoveryV1().EndpointSlices(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// targets returns the names of the pods that a Service's slices have as ready endpoints, sorted.
func (c *cluster) targets(ctx context.Context, service string) []string {
	GinkgoHelper()
	names := []string{}
	for _, slice := range c.endpointSlices(ctx, service) {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, false) && endpoint.TargetRef != nil {
				names = append(names, endpoint.TargetRef.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// haveEndpointsOf waits until the Service's ready endpoints are the Deployment's pods.
func (c *cluster) haveEndpointsOf(ctx context.Context, service string, d *appsv1.Deployment) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		pods, err := c.livePods(ctx, metav1.FormatLabelSelector(d.Spec.Selector))
		if err != nil {
			return "", err
		}
		names := []string{}
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		if len(names) == int(*d.Spec.Replicas) && slices.Equal(names, c.targets(ctx, service)) {
			return "", nil
		}
		return "the endpoints are not the pods " + strings.Join(names, ", "), nil
	}).WithContext(ctx).Should(BeEmpty())
}
