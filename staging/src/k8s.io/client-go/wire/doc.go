// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads objects from an API server for a cache, at a fraction of the usual cost.
//
//	response → stream → envelope → pre-pass over the encoded object ┬ dropped: forgotten, never decoded
//	                                                                ├ shared:  looked up by its bytes
//	                                                                └ own:     decoded
//
// # What is read
//
// A Source is one resource of one API server. A list is decoded item by item as it arrives, and the
// frames of a watch by the goroutine that asks for the next event: there is one buffer per request,
// and no other goroutine. The server is asked for protobuf; JSON is understood where a server has
// nothing else.
//
// # What is dropped
//
// managedFields of every object, and for some kinds the fields that no controller reads. The table
// is in kinds.go; Kind.Dropped tells. What was dropped is zero in the object. An object of a kind
// that loses more than its managed fields must not be written back as it was read; Guard catches
// that in tests. A client that asks the server itself gets the full object, as ever.
//
// # What is shared
//
// Objects that come from one template are equal in most of what they have. The pre-pass collects
// such parts (labels, annotations, owner and namespace, the spec of a pod but for its node and
// volumes, the statuses of its containers) as bytes, and a Table finds the decoded part by them:
// equal bytes are decoded once, and the maps, slices and pointers are those of every object that has
// them. Hence cached objects are read-only, as they have always been. The table holds parts weakly:
// an object is handed out as a pointer into a box, which also has strong pointers to the parts.
//
// # Invariants
//
//   - A decoded object equals what the generated code decodes, with the dropped fields cleared.
//   - Bytes that are not encoded as Kubernetes encodes (fields twice, unknown fields in metadata,
//     maps out of order) are decoded by the generated code, and trimmed afterwards. So an error is
//     what the generated code calls one; but the inside of a dropped field is never looked at.
//   - Nothing of a buffer is retained.
//   - No reflection per object, but for objects that came in such an unusual way.
package wire
