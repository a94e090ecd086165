// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("The manager", Label(labelLeaderElection), func() {
	c := useCluster()

	It("holds its lease, and renews it", func(ctx SpecContext) {
		renewed := func(ctx context.Context) (time.Time, error) {
			lease, err := c.CoordinationV1().Leases("kube-system").Get(ctx, "kube-controller-manager", metav1.GetOptions{})
			if err != nil {
				return time.Time{}, err
			}
			Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
			return lease.Spec.RenewTime.Time, nil
		}
		first, err := renewed(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(first).To(BeTemporally("~", time.Now(), time.Minute))
		Eventually(renewed).WithContext(ctx).Should(BeTemporally(">", first))
	}, specTimeout)
})
