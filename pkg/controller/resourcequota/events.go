// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// usageUnknownReason is the reason of the event that names what cannot be counted.
const usageUnknownReason = "UsageUnknown"

// usageUnknown describes the names of a quota that cannot be counted, each with why.
func usageUnknown(unknown map[v1.ResourceName]string) string {
	var parts []string
	for name, why := range unknown {
		parts = append(parts, fmt.Sprintf("%s: %s", name, why))
	}
	slices.Sort(parts)
	return "Could not count what is used, keeping the last values. " + strings.Join(parts, "; ")
}

// coreClient is as much of a clientset as an event pipeline needs.
type coreClient struct {
	clientset.Interface
	core corev1client.CoreV1Interface
}

func (c coreClient) CoreV1() corev1client.CoreV1Interface { return c.core }
