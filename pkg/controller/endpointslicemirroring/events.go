// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpointslicemirroring

import v1 "k8s.io/api/core/v1"

func (c *Controller) recordInvalidIPAddress(endpoints *v1.Endpoints, invalid int) {
	c.eventRecorder.Eventf(endpoints, v1.EventTypeWarning, "InvalidIPAddress",
		"Skipped %d invalid IP addresses when mirroring to EndpointSlices", invalid)
}

func (c *Controller) recordTooManyAddressesToMirror(endpoints *v1.Endpoints, skipped int) {
	c.eventRecorder.Eventf(endpoints, v1.EventTypeWarning, "TooManyAddressesToMirror",
		"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", c.maxPerSubset, skipped)
}
