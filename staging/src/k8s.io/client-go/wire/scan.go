// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// cursor goes over the fields of one encoded message without copying anything.
//
// It is stricter than the generated decoders: what no Kubernetes encoder writes (groups, huge field
// numbers, truncated fields) sets bad, and the caller decodes the whole object with the generated
// code, which says whether the bytes are an object after all.
type cursor struct {
	msg []byte
	pos int

	// The field that next found: its number, wire type, start in msg, and for the type bytes what
	// is in it.
	num   protowire.Number
	typ   protowire.Type
	start int
	val   []byte

	bad bool
}

// maxField bounds field numbers; the API types stay far below.
const maxField = 1 << 20

// next moves to the next field. It returns false at the end, and when bad.
func (c *cursor) next() bool {
	if c.pos >= len(c.msg) || c.bad {
		return false
	}
	c.start = c.pos
	tag := uint64(c.msg[c.pos])
	if tag < 0x80 {
		c.pos++
	} else if tag = c.varint(); c.bad {
		return false
	}
	c.num, c.typ = protowire.Number(tag>>3), protowire.Type(tag&7)
	if c.num <= 0 || tag>>3 > maxField {
		return c.fail()
	}
	c.val = nil
	switch c.typ {
	case protowire.BytesType:
		return c.bytes()
	case protowire.VarintType:
		c.varint()
	case protowire.Fixed32Type:
		c.pos += 4
	case protowire.Fixed64Type:
		c.pos += 8
	default:
		return c.fail()
	}
	if c.pos > len(c.msg) {
		return c.fail()
	}
	return !c.bad
}

// bytes reads a length and what it counts.
func (c *cursor) bytes() bool {
	n := c.varint()
	if c.bad || n > uint64(len(c.msg)-c.pos) {
		return c.fail()
	}
	end := c.pos + int(n)
	c.val = c.msg[c.pos:end:end]
	c.pos = end
	return true
}

func (c *cursor) varint() uint64 {
	if c.pos < len(c.msg) && c.msg[c.pos] < 0x80 {
		c.pos++
		return uint64(c.msg[c.pos-1])
	}
	v, n := protowire.ConsumeVarint(c.msg[min(c.pos, len(c.msg)):])
	if n < 0 {
		c.bad = true
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) fail() bool {
	c.bad = true
	return false
}

// field is the whole field, tag included.
func (c *cursor) field() []byte { return c.msg[c.start:c.pos] }

// number reads the field's value as a varint.
func (c *cursor) number() uint64 {
	_, n := protowire.ConsumeVarint(c.msg[c.start:c.pos])
	v, _ := protowire.ConsumeVarint(c.msg[c.start+max(n, 0) : c.pos])
	return v
}
