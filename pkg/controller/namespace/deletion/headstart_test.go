// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counts are caches that hold so many objects of a resource; others are not known.
type counts map[schema.GroupVersionResource]int

func (c counts) Count(resource schema.GroupVersionResource, namespace string) (int, bool) {
	if namespace != nsName {
		panic("asked for namespace " + namespace)
	}
	n, known := c[resource]
	return n, known
}

func TestHeadStartDeletesWhatCachesKnow(t *testing.T) {
	c := newFakeCluster()
	c.put(configMaps, "a")
	c.put(deployments, "b")
	c.put(widgets, "c")
	if err := c.deleter().HeadStart(t.Context(), nsName, counts{configMaps: 1, deployments: 0}); err != nil {
		t.Fatal(err)
	}
	// Widgets are in no cache, deployments in one that has not seen b: both are left to Delete.
	assertRequests(t, c, 3, "get namespace", "discover", "list pods", "deletecollection configmaps")
	if c.count(configMaps) != 0 || c.namespace == nil || len(c.namespace.Spec.Finalizers) != 1 {
		t.Errorf("%d configmaps are left, namespace %v", c.count(configMaps), c.namespace)
	}
}

func TestHeadStartDeletesPodsFirst(t *testing.T) {
	c := newFakeCluster()
	c.grace[podsResource] = 30 * time.Second
	c.put(podsResource, "p")
	c.put(configMaps, "a")
	// The cache has not seen the pod yet: the live look counts.
	err := c.deleter().HeadStart(t.Context(), nsName, counts{podsResource: 0, configMaps: 1})
	remaining(t, err)
	var r *ResourcesRemainingError
	if errors.As(err, &r) && !slices.Equal(r.Resources, []schema.GroupVersionResource{podsResource}) {
		t.Errorf("%v remain, want the pods", r.Resources)
	}
	assertRequests(t, c, 2, "get namespace", "discover", "list pods", "deletecollection pods", "list pods")
	if c.count(configMaps) != 1 {
		t.Error("a config map was deleted while a pod is left")
	}
}

func TestHeadStartOfANamespaceThatNeedsNothing(t *testing.T) {
	for name, change := range map[string]func(*fakeCluster){
		"gone":      func(c *fakeCluster) { c.namespace = nil },
		"active":    func(c *fakeCluster) { c.namespace.DeletionTimestamp = nil },
		"finalized": func(c *fakeCluster) { c.namespace.Spec.Finalizers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster()
			c.put(configMaps, "precious")
			change(c)
			if err := c.deleter().HeadStart(t.Context(), nsName, counts{configMaps: 1}); err != nil {
				t.Fatal(err)
			}
			assertRequests(t, c, 1, "get namespace")
		})
	}
}

func TestHeadStartReportsFailures(t *testing.T) {
	for _, request := range []string{"get namespace", "list pods", "deletecollection configmaps"} {
		t.Run(request, func(t *testing.T) {
			c := newFakeCluster()
			c.put(configMaps, "a")
			c.fail[request] = errors.New("disk full")
			if err := c.deleter().HeadStart(t.Context(), nsName, counts{configMaps: 1}); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestHeadStartSkipsWhatIsUnsupported(t *testing.T) {
	c := newFakeCluster()
	c.fail["deletecollection configmaps"] = methodNotSupported(configMaps, "deletecollection")
	if err := c.deleter().HeadStart(t.Context(), nsName, counts{configMaps: 1}); err != nil {
		t.Errorf("%v, want Delete to see to it", err)
	}
}
