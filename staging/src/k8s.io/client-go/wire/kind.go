// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"google.golang.org/protobuf/encoding/protowire"
)

// managedFields is dropped of every kind.
const managedFields = "metadata.managedFields"

// errUnusual is that of bytes that may encode the object, but not as Kubernetes does.
var errUnusual = errors.New("unusual encoding")

// Kind knows how objects of one type are read: what is dropped of them, and what they share.
type Kind struct {
	// dropped are the paths of fields that are dropped, managedFields included.
	dropped []string
	trim    *trim

	// fresh makes an empty object.
	fresh func() object
	// decode decodes an object, trimmed and with shared parts. Its error may be errUnusual.
	decode func(d *decoder, k *Kind, raw []byte) (runtime.Object, int, error)
	// typeMeta is put in objects of the kind, unless it is empty.
	typeMeta metav1.TypeMeta
}

// object is what the generated API types can do.
type object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
	Unmarshal([]byte) error
}

// pointerTo is the pointer type of an API type.
type pointerTo[T any] interface {
	*T
	object
}

// Dropped are the paths of the fields that objects of this kind come without, as protobuf names
// them; beside the fields, whole elements of a list: "spec.volumes[volumeSource.configMap]".
func (k *Kind) Dropped() []string { return k.dropped }

// TrimsMoreThanManagedFields says whether an object of this kind, written back as it was read,
// would lose something. (Managed fields are not lost: the server keeps them when they are not sent.)
func (k *Kind) TrimsMoreThanManagedFields() bool { return len(k.dropped) > 1 }

// newKind makes a Kind that shares what is in metadata. It panics when a dropped path leads nowhere:
// tables are written by hand and tested.
func newKind[T any, P pointerTo[T]](dropped ...string) *Kind {
	k := &Kind{
		dropped: append([]string{managedFields}, dropped...),
		fresh:   func() object { return P(new(T)) },
		decode:  decodeObject[T, P],
	}
	k.compile()
	return k
}

func (k *Kind) compile() {
	t, err := compileTrim(reflect.TypeOf(k.fresh()).Elem(), k.dropped)
	if err != nil {
		panic(err)
	}
	k.trim = t
}

// object decodes one object.
func (k *Kind) object(d *decoder, raw []byte) (runtime.Object, int, error) {
	obj, size, err := k.decode(d, k, raw)
	if err == nil {
		return obj, size, nil
	}
	// Whatever it was that the fast way stumbled over, the generated code has the last word.
	return k.fullyDecoded(raw)
}

// fullyDecoded decodes an object with the generated code, and trims it then.
func (k *Kind) fullyDecoded(raw []byte) (runtime.Object, int, error) {
	obj := k.fresh()
	if err := obj.Unmarshal(raw); err != nil {
		return nil, 0, fmt.Errorf("decoding %T: %w", obj, err)
	}
	k.Trim(obj)
	k.setType(obj)
	return obj, 2 * len(raw), nil
}

// Trim drops from a full object what objects of this kind come without.
func (k *Kind) Trim(obj runtime.Object) {
	k.trim.clear(reflect.ValueOf(obj).Elem())
}

func (k *Kind) setType(obj runtime.Object) {
	if k.typeMeta.Kind != "" {
		obj.GetObjectKind().SetGroupVersionKind(k.typeMeta.GroupVersionKind())
	}
}

// box is an object and what it keeps alive: an object in use is a pointer into its box.
type box[T any] struct {
	object T
	keep   [sharedPartsOfMetadata]*anchor
}

// bytesPerEncodedByte is about what a decoded byte costs in memory.
const bytesPerEncodedByte = 3

// decodeObject decodes the metadata of an object, sharing what can be, and leaves the other fields
// to the generated code.
func decodeObject[T any, P pointerTo[T]](d *decoder, k *Kind, raw []byte) (runtime.Object, int, error) {
	meta, rest, ok := d.splitObject(k, raw)
	if !ok {
		return nil, 0, errUnusual
	}
	d.own = d.own[:0]
	parts, ok := d.metadata(meta)
	if !ok {
		return nil, 0, errUnusual
	}
	b := &box[T]{}
	obj := P(&b.object)
	if len(rest) > 0 {
		if err := obj.Unmarshal(rest); err != nil {
			return nil, 0, err
		}
	}
	to, ok := obj.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, 0, errUnusual
	}
	if err := d.finishMetadata(&parts, string(d.own), to, &b.keep); err != nil {
		return nil, 0, err
	}
	k.setType(obj)
	return obj, int(unsafe.Sizeof(*b)) + len(d.own) + bytesPerEncodedByte*len(rest), nil
}

// splitObject finds the metadata of an object, and what is kept of the other fields.
func (d *decoder) splitObject(k *Kind, raw []byte) (meta, rest []byte, ok bool) {
	c := cursor{msg: raw}
	if !c.next() || c.num != 1 || c.typ != protowire.BytesType {
		return nil, nil, false
	}
	meta, rest = c.val, raw[c.pos:]
	if hasField(rest, 1) {
		return nil, nil, false
	}
	if !k.TrimsMoreThanManagedFields() {
		return meta, rest, true
	}
	d.rest, ok = k.trim.append(d.rest[:0], rest)
	return meta, d.rest, ok
}

// hasField says whether a message has a field, or is so strange that it might.
func hasField(msg []byte, num protowire.Number) bool {
	c := cursor{msg: msg}
	for c.next() {
		if c.num == num {
			return true
		}
	}
	return c.bad
}
