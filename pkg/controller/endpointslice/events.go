// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import v1 "k8s.io/api/core/v1"

func (c *Controller) recordFailedToListPods(service *v1.Service, err error) {
	c.eventRecorder.Eventf(service, v1.EventTypeWarning, "FailedToListPods",
		"Error listing Pods for Service %s/%s: %v", service.Namespace, service.Name, err)
}

func (c *Controller) recordFailedToListEndpointSlices(service *v1.Service, err error) {
	c.eventRecorder.Eventf(service, v1.EventTypeWarning, "FailedToListEndpointSlices",
		"Error listing Endpoint Slices for Service %s/%s: %v", service.Namespace, service.Name, err)
}

func (c *Controller) recordFailedToUpdateEndpointSlices(service *v1.Service, err error) {
	c.eventRecorder.Eventf(service, v1.EventTypeWarning, "FailedToUpdateEndpointSlices",
		"Error updating Endpoint Slices for Service %s/%s: %v", service.Namespace, service.Name, err)
}
