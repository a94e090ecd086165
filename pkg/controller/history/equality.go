// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// SortControllerRevisions puts the newest last: by revision number, then by age, then
// by name, so that the order is the same on every reading.
func SortControllerRevisions(revisions []*apps.ControllerRevision) {
	slices.SortStableFunc(revisions, func(a, b *apps.ControllerRevision) int {
		return cmp.Or(
			cmp.Compare(a.Revision, b.Revision),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// NextRevision returns the number after the newest of the sorted revisions.
func NextRevision(sorted []*apps.ControllerRevision) int64 {
	if len(sorted) == 0 {
		return 1
	}
	return sorted[len(sorted)-1].Revision + 1
}

// EqualRevision says whether two revisions hold the same data: the same bytes, or the
// same JSON in another order of keys.
func EqualRevision(a, b *apps.ControllerRevision) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equalJSON(a.Data.Raw, b.Data.Raw) && equality.Semantic.DeepEqual(a.Data.Object, b.Data.Object)
}

// FindEqualRevisions returns those of revisions that equal needle, in the same order.
func FindEqualRevisions(revisions []*apps.ControllerRevision, needle *apps.ControllerRevision) []*apps.ControllerRevision {
	var equal []*apps.ControllerRevision
	for _, revision := range revisions {
		if EqualRevision(revision, needle) {
			equal = append(equal, revision)
		}
	}
	return equal
}

func equalJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	canonicalA, err := canonical(a)
	if err != nil {
		return false
	}
	canonicalB, err := canonical(b)
	return err == nil && bytes.Equal(canonicalA, canonicalB)
}

// canonical writes a JSON document with its keys sorted and without white space.
// Numbers stay as they are written.
func canonical(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	return json.Marshal(document)
}
