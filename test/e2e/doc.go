// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what a user of a cluster sees of its controllers, through the public API alone. The cluster is any:
// a local one with fake nodes, kind, or a real one; its controller manager is any, upstream's too.
//
// hack/e2e.sh runs it. KCM_E2E_KUBECONFIG names the cluster's kubeconfig, of an administrator; without it the suite is
// skipped, and never takes the user's own KUBECONFIG for a test cluster. KCM_E2E_IMAGE is the image of the pods.
//
// Every spec has a namespace of its own, which goes with it, and the label of its controller:
//
//	hack/e2e.sh --label-filter 'deployment-controller && !slow'
//
// A controller's specs are a file of their own, named after it, and nothing else: no list names them.
//
//	var _ = Describe("A Job", Label("job-controller"), func() {
//		c := useCluster() // clients, and a namespace per spec
//
//		It("runs its pods to completion", func(ctx SpecContext) {
//			_, err := c.BatchV1().Jobs(c.namespace).Create(ctx, …)
//			Expect(err).NotTo(HaveOccurred())
//			Eventually(func(ctx context.Context) (*batchv1.Job, error) {
//				return c.BatchV1().Jobs(c.namespace).Get(ctx, "job", metav1.GetOptions{})
//			}).WithContext(ctx).Should(HaveField("Status.Succeeded", BeEquivalentTo(1)))
//		}, specTimeout)
//	})
//
// Then hack/update-bazel.sh. What may serve: in cluster_test.go podTemplate, createConfigMap, waitForGone, haveEvent,
// holdFinalizer; in pods_test.go createPod, livePods, liveCount, watchPods. Specs wait for conditions, never for time,
// and take no name outside their namespace, so that they run beside each other and on a cluster that is in use.
package e2e
