// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

func TestIdentity(t *testing.T) {
	long := strings.Repeat("x", shortKey+1)
	digest := identityOf([]byte(long)).bytes
	keys := []string{"", "a", "b", long[:shortKey], long, long + "x", digest}
	for _, a := range keys {
		id := identityOf([]byte(a))
		if len(id.bytes) > shortKey {
			t.Errorf("the identity of %d bytes has %d", len(a), len(id.bytes))
		}
		for _, b := range keys {
			if id.is([]byte(b)) != (a == b) {
				t.Errorf("%.10q (%d) is %.10q (%d): %v", a, len(a), b, len(b), id.is([]byte(b)))
			}
		}
	}
}

func decodeString(_ *Table, b []byte, s *string) error {
	if string(b) == "bad" {
		return errors.New("bad")
	}
	*s = string(b)
	return nil
}

func TestEqualHashesOfUnequalParts(t *testing.T) {
	s := newSharer[string]()
	a, err := s.get(nil, []byte("a"), decodeString)
	if err != nil {
		t.Fatal(err)
	}
	// As if both had the same hash.
	s.parts[maphash.Bytes(s.seed, []byte("b"))] = weak.Make(a)
	for range 2 {
		if b, err := s.get(nil, []byte("b"), decodeString); err != nil || b.val != "b" {
			t.Errorf("part %v, error %v", b, err)
		}
	}
	runtime.KeepAlive(a)
}

func TestErrorsAreNotRemembered(t *testing.T) {
	s := newSharer[string]()
	for range 2 {
		if p, err := s.get(nil, []byte("bad"), decodeString); err == nil {
			t.Errorf("no error, and part %v", p)
		}
	}
	if s.len() != 0 {
		t.Error("there is a part that could not be decoded")
	}
}

func TestInterner(t *testing.T) {
	in := newInterner(10)
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	kept := in.get([]byte("kept"))
	for i := range 1000 {
		in.get(fmt.Appendf(nil, "%d", i))
		if again := in.again(strings.Clone("kept")); !same(kept, again) {
			t.Fatalf("a string in use was forgotten after %d others", i)
		}
		if n := len(in.young) + len(in.old); n > 2*in.limit {
			t.Fatalf("%d strings are remembered, the limit of a generation is %d", n, in.limit)
		}
	}
	if !same(in.get([]byte("999")), in.again("99"+fmt.Sprint(9))) {
		t.Error("equal strings are not one")
	}
	long := strings.Repeat("x", maxInternedLen+1)
	if same(in.get([]byte(long)), in.get([]byte(long))) || in.again(long) != long || in.get(nil) != "" || in.again("") != "" {
		t.Error("long and empty strings are not as they were")
	}
}
