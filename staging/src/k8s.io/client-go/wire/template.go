// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of PodTemplateSpec, PodSpec and Container that are treated one by one. Nothing of a
// template is dropped: it is hashed, compared and written.
const (
	templateMetadata = 1
	templateSpec     = 2

	specContainers     = 2
	specInitContainers = 20

	containerName  = 1
	containerImage = 2
)

// templateAnchors is what keeps the shared parts of a template alive.
type templateAnchors struct {
	metadata [sharedPartsOfMetadata]*anchor
	spec     *anchor
	// containers are those of all containers, of either kind.
	containers []*anchor
}

// templateBox is a box of an object with a pod template.
type templateBox[T any] struct {
	box[T]
	template templateAnchors
}

// newTemplateKind is newKind for a type with a pod template, at a path of field numbers. The revisions
// of a workload, and the jobs of one CronJob, have most of their templates in common: all of the
// spec but for the containers is one shared part, and each container but for name and image another.
func newTemplateKind[T any, P pointerTo[T]](template func(*T) *corev1.PodTemplateSpec, path ...protowire.Number) *Kind {
	k := newKind[T, P]()
	k.decode = func(d *decoder, k *Kind, raw []byte) (runtime.Object, int, error) {
		obj, size, err := decodeTemplated[T, P](d, k, raw, template, path)
		if err != nil {
			return decodeObject[T, P](d, k, raw)
		}
		return obj, size, nil
	}
	return k
}

func decodeTemplated[T any, P pointerTo[T]](d *decoder, k *Kind, raw []byte, template func(*T) *corev1.PodTemplateSpec, path []protowire.Number) (runtime.Object, int, error) {
	meta, rest, ok := d.splitObject(k, raw)
	if !ok {
		return nil, 0, errUnusual
	}
	var encoded []byte
	if d.rest, encoded, ok = cutField(d.rest[:0], rest, path); !ok {
		return nil, 0, errUnusual
	}
	b := &templateBox[T]{}
	obj := P(&b.object)
	if err := obj.Unmarshal(d.rest); err != nil {
		return nil, 0, err
	}
	size, err := d.decodeTemplate(encoded, template(&b.object), &b.template)
	if err != nil {
		return nil, 0, err
	}
	d.own = d.own[:0]
	parts, ok := d.metadata(meta)
	to, isMeta := obj.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok || !isMeta {
		return nil, 0, errUnusual
	}
	if err := d.finishMetadata(&parts, string(d.own), to, &b.keep); err != nil {
		return nil, 0, err
	}
	return obj, int(unsafe.Sizeof(*b)) + len(d.own) + bytesPerEncodedByte*len(d.rest) + size, nil
}

// cutField copies a message without the one field that the path leads to, and returns what is in the
// field. ok is false unless there is exactly one.
func cutField(dst, msg []byte, path []protowire.Number) (kept, inner []byte, ok bool) {
	c := cursor{msg: msg}
	run, found := 0, false
	for c.next() {
		if c.num != path[0] {
			continue
		}
		if found || c.typ != protowire.BytesType {
			return dst, nil, false
		}
		found = true
		dst = append(dst, msg[run:c.start]...)
		run = c.pos
		if len(path) == 1 {
			inner = c.val
			continue
		}
		var at, room int
		dst, at, room = openField(dst, &c)
		if dst, inner, ok = cutField(dst, c.val, path[1:]); !ok {
			return dst, nil, false
		}
		dst = putLength(dst, at, room)
	}
	return append(dst, msg[run:]...), inner, found && !c.bad
}

// decodeTemplate decodes a template, and says about what it costs alone.
func (d *decoder) decodeTemplate(msg []byte, to *corev1.PodTemplateSpec, keep *templateAnchors) (int, error) {
	var meta, spec []byte
	c := cursor{msg: msg}
	for seen := protowire.Number(0); c.next(); seen = c.num {
		if c.typ != protowire.BytesType || c.num <= seen || c.num > templateSpec {
			return 0, errUnusual
		}
		if c.num == templateMetadata {
			meta = c.val
		} else {
			spec = c.val
		}
	}
	if c.bad {
		return 0, errUnusual
	}
	d.own = d.own[:0]
	parts, ok := d.metadata(meta)
	// A template has no managed fields; should it, they would be kept.
	if !ok || hasField(meta, metaManagedFields) {
		return 0, errUnusual
	}
	if err := d.finishMetadata(&parts, string(d.own), &to.ObjectMeta, &keep.metadata); err != nil {
		return 0, err
	}
	return d.decodeTemplateSpec(spec, &to.Spec, keep)
}

func (d *decoder) decodeTemplateSpec(msg []byte, to *corev1.PodSpec, keep *templateAnchors) (int, error) {
	d.spec = d.spec[:0]
	containers, initContainers := 0, 0
	c := cursor{msg: msg}
	for c.next() {
		switch c.num {
		case specContainers:
			containers++
		case specInitContainers:
			initContainers++
		default:
			d.spec = append(d.spec, c.field()...)
		}
	}
	if c.bad {
		return 0, errUnusual
	}
	var err error
	if *to, err = share(d.table, d.table.templates, d.spec, &keep.spec, decodePodSpec); err != nil {
		return 0, err
	}
	keep.containers = make([]*anchor, 0, containers+initContainers)
	if to.Containers, err = d.containers(msg, specContainers, containers, keep); err != nil {
		return 0, err
	}
	if to.InitContainers, err = d.containers(msg, specInitContainers, initContainers, keep); err != nil {
		return 0, err
	}
	return (containers + initContainers) * int(unsafe.Sizeof(corev1.Container{})+unsafe.Sizeof(keep)), nil
}

// containers decodes the n containers that are in a field of a spec.
func (d *decoder) containers(spec []byte, num protowire.Number, n int, keep *templateAnchors) ([]corev1.Container, error) {
	if n == 0 {
		return nil, nil
	}
	list := make([]corev1.Container, n)
	c := cursor{msg: spec}
	for i := 0; c.next(); {
		if c.num != num {
			continue
		}
		if c.typ != protowire.BytesType {
			return nil, errUnusual
		}
		if err := d.container(c.val, &list[i], keep); err != nil {
			return nil, err
		}
		i++
	}
	return list, nil
}

func (d *decoder) container(msg []byte, to *corev1.Container, keep *templateAnchors) error {
	d.status = d.status[:0]
	var name, image []byte
	c := cursor{msg: msg}
	for c.next() {
		switch {
		case c.num != containerName && c.num != containerImage:
			d.status = append(d.status, c.field()...)
		case c.typ != protowire.BytesType:
			return errUnusual
		case c.num == containerName:
			name = c.val
		default:
			image = c.val
		}
	}
	if c.bad {
		return errUnusual
	}
	var held *anchor
	var err error
	if *to, err = share(d.table, d.table.containers, d.status, &held, decodeContainer); err != nil {
		return err
	}
	if held != nil {
		keep.containers = append(keep.containers, held)
	}
	to.Name, to.Image = d.table.strings.get(name), d.table.strings.get(image)
	return nil
}

func decodeContainer(_ *Table, b []byte, to *corev1.Container) error { return to.Unmarshal(b) }
