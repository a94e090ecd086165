// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"hash/fnv"
	"strconv"

	apps "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// ControllerRevisionHashLabel is the label of a revision that holds its hash.
const ControllerRevisionHashLabel = "controller.kubernetes.io/hash"

// maxPrefix is what a name may have before the dash and the hash: names end at 253
// characters, and the hash was given generous room.
const maxPrefix = 223

// ControllerRevisionName returns the name of the revision with this hash.
func ControllerRevisionName(prefix, hash string) string {
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + "-" + hash
}

// HashControllerRevision returns the hash of the revision's data. probe, when not nil,
// is mixed in: the parent's collision count.
//
// It is FNV-1, where ComputeHash is FNV-1a, and must stay so: see the package comment.
func HashControllerRevision(revision *apps.ControllerRevision, probe *int32) string {
	hasher := fnv.New32()
	// A hash.Hash never returns an error.
	_, _ = hasher.Write(revision.Data.Raw)
	if revision.Data.Object != nil {
		_, _ = fmt.Fprintf(hasher, "%v", dump.ForHash(revision.Data.Object))
	}
	if probe != nil {
		_, _ = hasher.Write([]byte(strconv.FormatInt(int64(*probe), 10)))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hasher.Sum32()), 10))
}

// NewControllerRevision returns a revision of parent, which is of the given kind, that
// is still to be created. Its labels are those of the pod template and its hash.
func NewControllerRevision(parent metav1.Object, parentKind schema.GroupVersionKind, templateLabels map[string]string,
	data runtime.RawExtension, revision int64, collisionCount *int32) *apps.ControllerRevision {
	labels := make(map[string]string, len(templateLabels)+1)
	for key, value := range templateLabels {
		labels[key] = value
	}
	made := &apps.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       parent.GetNamespace(),
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, parentKind)},
		},
		Data:     data,
		Revision: revision,
	}
	hash := HashControllerRevision(made, collisionCount)
	made.Name = ControllerRevisionName(parent.GetName(), hash)
	made.Labels[ControllerRevisionHashLabel] = hash
	return made
}
