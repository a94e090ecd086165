// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// stream reads a response into one buffer, which is used again and again. What it returns is valid
// until the next call.
type stream struct {
	r   io.Reader
	buf []byte
	// buf[from:to] was read and not yet used.
	from, to int
	err      error
	// small counts the messages since the last one that needed a big buffer.
	small int
}

const (
	// usualBuffer is enough for most objects.
	usualBuffer = 8 << 10
	// biggestMessage is more than an API server stores in an object, by far.
	biggestMessage = 256 << 20
	// shrinkAfter messages that a usual buffer would have held, a bigger one is given back.
	shrinkAfter = 256
)

func newStream(r io.Reader) *stream { return &stream{r: r, buf: make([]byte, usualBuffer)} }

// peek returns the next n bytes without using them up. At the end of the stream it returns what
// there is, and io.EOF when that is nothing, io.ErrUnexpectedEOF when it is too little.
func (s *stream) peek(n int) ([]byte, error) {
	if s.to-s.from < n {
		s.makeRoom(n)
	}
	for s.to-s.from < n {
		if s.err != nil {
			return s.buf[s.from:s.to], s.endError()
		}
		var got int
		got, s.err = s.r.Read(s.buf[s.to:])
		s.to += got
	}
	return s.buf[s.from : s.from+n], nil
}

func (s *stream) endError() error {
	if errors.Is(s.err, io.EOF) && s.to > s.from {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// makeRoom makes room for n bytes from s.from on.
func (s *stream) makeRoom(n int) {
	unused := s.buf[s.from:s.to]
	if n > len(s.buf) {
		s.buf = make([]byte, max(n, min(2*len(s.buf), 1<<20)))
		s.small = 0
	} else if s.from+n <= len(s.buf) {
		return
	}
	s.to = copy(s.buf, unused)
	s.from = 0
}

// take is peek, and uses the bytes up.
func (s *stream) take(n int) ([]byte, error) {
	if n > biggestMessage {
		return nil, fmt.Errorf("message of %d bytes in the stream; no object is bigger than %d", n, biggestMessage)
	}
	s.shrink(n)
	b, err := s.peek(n)
	if err != nil {
		return nil, err
	}
	s.from += n
	return b, nil
}

// shrink gives a big buffer back when the last messages did not need it.
func (s *stream) shrink(n int) {
	if len(s.buf) <= 8*usualBuffer {
		return
	}
	if n > usualBuffer {
		s.small = 0
	}
	s.small++
	if unused := s.to - s.from; s.small > shrinkAfter && unused <= usualBuffer {
		small := make([]byte, usualBuffer)
		s.to = copy(small, s.buf[s.from:s.to])
		s.from, s.buf, s.small = 0, small, 0
	}
}

// takeAll is take, where the end of the stream is never in order.
func (s *stream) takeAll(n uint64) ([]byte, error) {
	b, err := s.take(int(min(n, biggestMessage+1)))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// varint reads a number and says how many bytes it had. Its error is io.EOF when the stream ends
// before it.
func (s *stream) varint() (uint64, int, error) {
	var v uint64
	for i := range 10 {
		b, err := s.peek(i + 1)
		if err != nil {
			return 0, 0, err
		}
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			s.from += i + 1
			return v, i + 1, nil
		}
	}
	return 0, 0, errors.New("a number in the stream has no end")
}

// header is what stands before the content of a field.
type header struct {
	num protowire.Number
	typ protowire.Type
	// length of the content; for a varint it is the value.
	length uint64
	// size of the header itself.
	size int
}

// header reads what stands before the content of the next field. Its error is io.EOF when the
// stream ends in order.
func (s *stream) header() (header, error) {
	tag, size, err := s.varint()
	if err != nil {
		return header{}, err
	}
	h := header{num: protowire.Number(tag >> 3), typ: protowire.Type(tag & 7), size: size}
	switch h.typ {
	case protowire.BytesType, protowire.VarintType:
		var n int
		if h.length, n, err = s.varint(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return header{}, err
		}
		h.size += n
	case protowire.Fixed32Type:
		h.length = 4
	case protowire.Fixed64Type:
		h.length = 8
	default:
		return header{}, fmt.Errorf("field %d in the stream has the unknown type %d", h.num, h.typ)
	}
	return h, nil
}

// content is the number of bytes after the header.
func (h header) content() uint64 {
	if h.typ == protowire.VarintType {
		return 0
	}
	return h.length
}
