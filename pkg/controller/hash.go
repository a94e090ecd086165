// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// ComputeHash returns the short, label-safe hash of a pod template that Deployments
// and DaemonSets put into names and labels. collisionCount, when not nil, is mixed in:
// a controller raises it when the name made of the hash is taken by something else.
//
// The value must equal upstream's for the same template, or every Deployment would
// roll out anew on the day the manager is exchanged: it is FNV-1a over the library's
// dump of the API type, so the types and the dump must be the released ones.
func ComputeHash(template *v1.PodTemplateSpec, collisionCount *int32) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(*template))
	if collisionCount != nil {
		// Eight bytes, of which only the first four carry the count.
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisionCount))
		_, _ = hasher.Write(count) // a hash.Hash never returns an error
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}
