// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testutil has what the tests of several controllers need.
package testutil

import (
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Versions does what an API server does and client-go's fake does not: each write has a
// resourceVersion of its own, that grows, and new objects have a name and a UID. Without, a
// controller cannot know that its cache is behind its own writes (package consistency), and a test
// of it fails now and then.
type Versions struct {
	client      *fake.Clientset
	last, names atomic.Int64
}

// CountVersions has the fake give versions after last. Patches it does not give one.
func CountVersions(client *fake.Clientset, last int64) *Versions {
	v := &Versions{client: client}
	v.last.Store(last)
	client.PrependReactor("*", "*", v.react)
	return v
}

// Next returns the next version.
func (v *Versions) Next() string { return strconv.FormatInt(v.last.Add(1), 10) }

// Stamp gives obj the next version, and a name and a UID where it has none.
func (v *Versions) Stamp(obj metav1.Object) {
	obj.SetResourceVersion(v.Next())
	if obj.GetName() == "" {
		obj.SetName(obj.GetGenerateName() + strconv.FormatInt(v.names.Add(1), 10))
	}
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-" + obj.GetName()))
	}
}

func (v *Versions) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateAction: // an update, too: it has the same methods
		if obj, ok := a.GetObject().(metav1.Object); ok {
			v.Stamp(obj)
		}
	case clienttesting.DeleteAction:
		return false, nil, v.stampDeleted(a)
	}
	return false, nil, nil
}

// stampDeleted gives an object that is about to be deleted a new version, for the event of its
// deletion: that is what the API server sends.
func (v *Versions) stampDeleted(a clienttesting.DeleteAction) error {
	obj, err := v.client.Tracker().Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return nil // the deletion itself will say that it is not there
	}
	obj = obj.DeepCopyObject()
	if m, ok := obj.(metav1.Object); ok {
		m.SetResourceVersion(v.Next())
	}
	return v.client.Tracker().Update(a.GetResource(), obj, a.GetNamespace())
}
