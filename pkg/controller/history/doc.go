// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history keeps what a set looked like before: ControllerRevisions, which
// StatefulSets and DaemonSets make of their pod templates.
//
// Vocabulary. Parent: the object whose history it is. Revision: one ControllerRevision,
// or its number, which grows: the newest has the highest. Data: what the parent's
// controller recorded, for the workload kinds a patch of the pod template
// (TemplatePatch). Hash: short, label-safe digest of the data. Collision: a name that
// other data has taken; the parent's collision count, mixed into the hash, gets out of it.
//
// Names, hashes and bytes equal upstream's, or every set would roll out anew on the day
// the manager is exchanged. Two equalities keep a roll-out from happening where
// nothing has changed but the writing: EqualRevision looks past the order of keys, and
// SameTemplate past defaults that only one of the two spells out, and fields that an
// older encoder wrote as null (upstream #134126: creationTimestamp up to 1.33).
//
// The package reads from caches and writes to the API server at once; it remembers
// nothing. What a method returns is what the API server made of the write, so that the
// caller can wait for its cache to show it (package consistency). Deletions carry the
// UID, updates the resourceVersion, adoptions and releases the UID.
package history
