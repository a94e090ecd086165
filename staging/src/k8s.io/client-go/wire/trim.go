// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// trim says what is dropped of a message: by field number, for those fields of which something is.
type trim struct {
	// fields is indexed by the number of the field.
	fields []*trimField
}

// trimField is a field that is dropped, or in which something is.
type trimField struct {
	// goField is the field of the Go struct, and typ its type on the wire.
	goField int
	typ     protowire.Type
	// drop: nothing of the field is kept.
	drop bool
	// dropWith: the elements of a repeated field in which one of these fields is set are dropped.
	dropWith []path
	// inside: what is dropped of the message in the field.
	inside *trim
}

// path leads to a message inside a message.
type path []step

type step struct {
	num     protowire.Number
	goField int
}

// compileTrim reads paths of protobuf field names, as they stand in the struct tags of the Go type:
//
//	spec.containers.env                        the field is dropped, in each element of a list
//	spec.volumes[volumeSource.configMap]       elements that have the inner field are dropped
//
// A path that leads nowhere is an error. Reflection is used here and in clear only.
func compileTrim(typ reflect.Type, paths []string) (*trim, error) {
	t := &trim{}
	for _, p := range paths {
		if err := t.add(typ, p); err != nil {
			return nil, fmt.Errorf("dropped field %q of %s: %w", p, typ, err)
		}
	}
	return t, nil
}

func (t *trim) add(typ reflect.Type, p string) error {
	name, rest, deeper := cutPath(p)
	name, condition, conditional := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	s, wireType, err := findField(typ, name)
	if err != nil {
		return err
	}
	f := t.get(s, wireType)
	elem := elemType(typ.Field(s.goField).Type)
	switch {
	case conditional:
		inner, err := findPath(elem, condition)
		if err != nil {
			return err
		}
		f.dropWith = append(f.dropWith, inner)
	case deeper:
		if f.inside == nil {
			f.inside = &trim{}
		}
		return f.inside.add(elem, rest)
	default:
		f.drop = true
	}
	return nil
}

// cutPath cuts at the first dot that is not in brackets.
func cutPath(p string) (first, rest string, more bool) {
	depth := 0
	for i, r := range p {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == '.' && depth == 0:
			return p[:i], p[i+1:], true
		}
	}
	return p, "", false
}

func (t *trim) get(s step, typ protowire.Type) *trimField {
	if f := t.field(s.num); f != nil {
		return f
	}
	f := &trimField{goField: s.goField, typ: typ}
	for int(s.num) >= len(t.fields) {
		t.fields = append(t.fields, nil)
	}
	t.fields[s.num] = f
	return f
}

// field is nil for a field of which nothing is dropped.
func (t *trim) field(num protowire.Number) *trimField {
	if int(num) < len(t.fields) {
		return t.fields[num]
	}
	return nil
}

// sub is what is dropped of the message in a field.
func (t *trim) sub(num protowire.Number) *trim {
	if f := t.field(num); f != nil && f.inside != nil {
		return f.inside
	}
	return &trim{}
}

func elemType(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	return typ
}

func findPath(typ reflect.Type, p string) (path, error) {
	var found path
	for name := range strings.SplitSeq(p, ".") {
		s, wireType, err := findField(typ, name)
		if err != nil {
			return nil, err
		}
		if wireType != protowire.BytesType {
			return nil, fmt.Errorf("field %q is no message", name)
		}
		found = append(found, s)
		typ = elemType(typ.Field(s.goField).Type)
	}
	return found, nil
}

// findField finds a field by its protobuf name.
func findField(typ reflect.Type, name string) (step, protowire.Type, error) {
	if typ.Kind() != reflect.Struct {
		return step{}, 0, fmt.Errorf("%s has no fields", typ)
	}
	for i := range typ.NumField() {
		tag := strings.Split(typ.Field(i).Tag.Get("protobuf"), ",")
		// A struct that is embedded may have no name of its own.
		anonymous := len(tag) == 3 && strings.EqualFold(typ.Field(i).Name, name)
		if !anonymous && (len(tag) < 4 || tag[3] != "name="+name) {
			continue
		}
		num, err := strconv.Atoi(tag[1])
		if err != nil {
			return step{}, 0, fmt.Errorf("tag of %s.%s: %w", typ, name, err)
		}
		wireType := protowire.BytesType
		if tag[0] == "varint" {
			wireType = protowire.VarintType
		}
		return step{num: protowire.Number(num), goField: i}, wireType, nil
	}
	return step{}, 0, fmt.Errorf("%s has no field %q", typ, name)
}

// append copies a message without what is dropped. ok is false for bytes that are not what
// Kubernetes writes.
func (t *trim) append(dst, msg []byte) (_ []byte, ok bool) {
	c := cursor{msg: msg}
	// Fields that are kept are copied in runs.
	run := 0
	for c.next() {
		f := t.field(c.num)
		if f == nil {
			continue
		}
		dst = append(dst, msg[run:c.start]...)
		run = c.pos
		if dst, ok = f.append(dst, &c); !ok {
			return dst, false
		}
	}
	return append(dst, msg[run:]...), !c.bad
}

// appendField copies what is kept of the field that the cursor is at.
func (t *trim) appendField(dst []byte, c *cursor) (_ []byte, ok bool) {
	if f := t.field(c.num); f != nil {
		return f.append(dst, c)
	}
	return append(dst, c.field()...), true
}

// append is appendField for a field of which something is dropped.
func (f *trimField) append(dst []byte, c *cursor) (_ []byte, ok bool) {
	if c.typ != f.typ {
		return dst, false
	}
	if f.drop {
		return dst, true
	}
	for _, p := range f.dropWith {
		switch has, ok := p.in(c.val); {
		case !ok:
			return dst, false
		case has:
			return dst, true
		}
	}
	if f.inside == nil {
		return append(dst, c.field()...), true
	}
	var at, room int
	dst, at, room = openField(dst, c)
	if dst, ok = f.inside.append(dst, c.val); !ok {
		return dst, false
	}
	return putLength(dst, at, room), true
}

// openField begins a copy of the field that the cursor is at. There is room for the length of what there
// was; what is kept is no longer.
func openField(dst []byte, c *cursor) (_ []byte, at, room int) {
	dst = protowire.AppendTag(dst, c.num, protowire.BytesType)
	room = protowire.SizeVarint(uint64(len(c.val)))
	at = len(dst)
	return append(dst, "          "[:room]...), at, room
}

// putLength writes the length of the message that follows at[room], and moves the message when the
// length takes less room than there is: equal content has equal bytes.
func putLength(dst []byte, at, room int) []byte {
	length := len(dst) - at - room
	need := protowire.SizeVarint(uint64(length))
	if need < room {
		copy(dst[at+need:], dst[at+room:])
		dst = dst[:len(dst)-room+need]
	}
	protowire.AppendVarint(dst[:at], uint64(length))
	return dst
}

// in says whether the message has the field that the path leads to.
func (p path) in(msg []byte) (has, ok bool) {
	c := cursor{msg: msg}
	for c.next() {
		if c.num != p[0].num {
			continue
		}
		if c.typ != protowire.BytesType {
			return false, false
		}
		if len(p) == 1 {
			has = true
			continue
		}
		inner, ok := p[1:].in(c.val)
		if !ok {
			return false, false
		}
		has = has || inner
	}
	return has, !c.bad
}

// clear drops from a decoded message what append drops from an encoded one. It serves objects that
// came as JSON or oddly encoded.
func (t *trim) clear(v reflect.Value) {
	for _, f := range t.fields {
		if f != nil {
			f.clear(v.Field(f.goField))
		}
	}
}

func (f *trimField) clear(v reflect.Value) {
	if f.drop {
		v.SetZero()
		return
	}
	if len(f.dropWith) > 0 {
		f.clearElements(v)
	}
	if f.inside == nil {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			f.inside.clear(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			f.inside.clear(v.Elem())
		}
	default:
		f.inside.clear(v)
	}
}

func (f *trimField) clearElements(v reflect.Value) {
	kept := reflect.Zero(v.Type())
	for i := range v.Len() {
		if !f.dropsElement(v.Index(i)) {
			kept = reflect.Append(kept, v.Index(i))
		}
	}
	v.Set(kept)
}

func (f *trimField) dropsElement(v reflect.Value) bool {
	for _, p := range f.dropWith {
		if p.set(v) {
			return true
		}
	}
	return false
}

func (p path) set(v reflect.Value) bool {
	for _, s := range p {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return false
			}
			v = v.Elem()
		}
		v = v.Field(s.goField)
	}
	return !v.IsZero()
}
