// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// decoder decodes objects one after the other, for one goroutine. It has the buffers that this
// takes; nothing of them is left in the objects.
type decoder struct {
	table *Table

	// own collects the strings that the object alone has, so that they take one allocation.
	own []byte

	// The encoded parts of an object, collected field by field.
	origin, labels, annotations []byte
	spec, specRest, affinity    []byte
	status, statusRest, host    []byte
	// rest is what is decoded by the generated code, field by field.
	rest []byte
}

func newDecoder(table *Table) *decoder { return &decoder{table: table} }

// span is a place in decoder.own.
type span struct{ from, to int }

// pack adds a string to those that the object alone has.
func (d *decoder) pack(b []byte) span {
	from := len(d.own)
	d.own = append(d.own, b...)
	return span{from: from, to: len(d.own)}
}

func (s span) of(packed string) string { return packed[s.from:s.to] }

// share returns the part that these bytes encode and keeps it alive by keep; the zero part for none.
func share[P any](t *Table, s *sharer[P], b []byte, keep **anchor, decode func(*Table, []byte, *P) error) (P, error) {
	if len(b) == 0 {
		var none P
		return none, nil
	}
	p, err := s.get(t, b, decode)
	if err != nil {
		var none P
		return none, err
	}
	*keep = &p.anchor
	return p.val, nil
}
