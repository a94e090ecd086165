// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are deprecated, and served all the same.

package endpoint

import v1 "k8s.io/api/core/v1"

func (c *Controller) recordFailedToCreate(endpoints *v1.Endpoints, err error) {
	c.eventRecorder.Eventf(endpoints, v1.EventTypeWarning, "FailedToCreateEndpoint",
		"Failed to create endpoint for service %v/%v: %v", endpoints.Namespace, endpoints.Name, err)
}

func (c *Controller) recordFailedToUpdate(endpoints *v1.Endpoints, err error) {
	c.eventRecorder.Eventf(endpoints, v1.EventTypeWarning, "FailedToUpdateEndpoint",
		"Failed to update endpoint %v/%v: %v", endpoints.Namespace, endpoints.Name, err)
}
