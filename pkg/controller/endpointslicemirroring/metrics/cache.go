// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Cache sums up what is mirrored of all Endpoints. Its methods may be called concurrently.
type Cache struct {
	collectors      *Collectors
	maxPerSubset    int
	mu              sync.Mutex // guards the following fields
	byEndpoints     map[types.NamespacedName]Sizes
	endpoints       int
	slices, desired int
}

// Sizes are the numbers of endpoints in each group of Endpoints that is mirrored to one slice.
type Sizes []int

// NewCache returns an empty Cache that sets the collectors' gauges.
func NewCache(collectors *Collectors, maxEndpointsPerSubset int32) *Cache {
	return &Cache{collectors: collectors, maxPerSubset: int(maxEndpointsPerSubset), byEndpoints: map[types.NamespacedName]Sizes{}}
}

// Update says what is mirrored of Endpoints now.
func (c *Cache) Update(name types.NamespacedName, sizes Sizes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(c.byEndpoints[name], -1)
	c.addLocked(sizes, 1)
	c.byEndpoints[name] = sizes
	c.showLocked()
}

// Delete says that nothing is mirrored of Endpoints any more.
func (c *Cache) Delete(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sizes, ok := c.byEndpoints[name]
	if !ok {
		return
	}
	c.addLocked(sizes, -1)
	delete(c.byEndpoints, name)
	c.showLocked()
}

func (c *Cache) addLocked(sizes Sizes, sign int) {
	for _, size := range sizes {
		c.endpoints += sign * size
		c.slices += sign
		c.desired += sign * max(1, (size+c.maxPerSubset-1)/max(1, c.maxPerSubset))
	}
}

func (c *Cache) showLocked() {
	c.collectors.EndpointsDesired.WithLabelValues().Set(float64(c.endpoints))
	c.collectors.NumEndpointSlices.WithLabelValues().Set(float64(c.slices))
	c.collectors.DesiredEndpointSlices.WithLabelValues().Set(float64(c.desired))
}
