// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reasonInvalidNamespace says that an object names an owner that exists, but not where it could own it.
const reasonInvalidNamespace = "OwnerRefInvalidNamespace"

// reportInvalid records the event for a reference across namespaces. It is the only event of this
// controller, and goes to the dependent: its author is who can mend it.
func (b *GraphBuilder) reportInvalid(ref invalidRef) {
	recorder := b.recorder.Load()
	if recorder == nil {
		return
	}
	dependent := &v1.ObjectReference{
		Kind: ref.dependent.kind.Kind, Namespace: ref.dependent.namespace, Name: ref.dependent.name, UID: ref.dependent.uid,
		APIVersion: schema.GroupVersion{Group: ref.dependent.kind.Group, Version: b.versionOf(ref.dependent.kind)}.String(),
	}
	(*recorder).Eventf(dependent, v1.EventTypeWarning, reasonInvalidNamespace, "ownerRef %s does not exist in namespace %q",
		describeRef(ref), ref.dependent.namespace)
}

func describeRef(ref invalidRef) string {
	gv := schema.GroupVersion{Group: ref.owner.kind.Group, Version: ref.version}
	return fmt.Sprintf("[%s/%s, namespace: %s, name: %s, uid: %s]",
		gv, ref.owner.kind.Kind, ref.dependent.namespace, ref.owner.name, ref.owner.uid)
}
