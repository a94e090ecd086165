// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"flag"
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/encoding/protowire"
)

// fuzzed are the types whose decoders differ: pods, a type of which more than metadata is dropped,
// one that only shares, metadata alone, and one that is not declared.
func fuzzed() []object {
	return []object{&corev1.Pod{}, &corev1.Node{}, &appsv1.ReplicaSet{}, &metav1.PartialObjectMetadata{}, &corev1.Event{}}
}

// checkAgrees compares the decoders on any bytes. What the generated code decodes must be decoded and
// be the same. What it refuses must be refused, unless it is what was dropped that is wrong.
func checkAgrees(t testing.TB, d *decoder, k *Kind, raw []byte) {
	t.Helper()
	got, _, err := k.object(d, raw)
	want, wantErr := full(k, raw)
	if wantErr != nil && err == nil {
		trimmed, ok := k.trim.append(nil, raw)
		if !ok {
			t.Fatalf("decoded what the generated code refuses: %v", wantErr)
		}
		if want, wantErr = full(k, trimmed); wantErr != nil {
			t.Fatalf("decoded what the generated code refuses without the dropped fields, too: %v", wantErr)
		}
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, the generated code's is %v", err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%T differs (-want +got):\n%s", want, cmp.Diff(want, got))
	}
}

func FuzzDecode(f *testing.F) {
	kinds, table := NewKinds(), NewTable()
	types := fuzzed()
	for i, obj := range types {
		for seed := range int64(4) {
			fill(newFiller(seed), obj)
			f.Add(uint8(i), marshal(f, obj))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, raw []byte) {
		k, err := kinds.For(types[int(i)%len(types)])
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(table)
		checkAgrees(t, d, k, raw)
		checkAgrees(t, d, k, raw)
	})
}

var mutations = flag.Int("mutations", 150, "`number` of mutated encodings of each type")

// TestMutatedBytes is what FuzzDecode does, for every type and in every run of the tests: bytes are
// flipped, cut out, doubled and put together. With -mutations=100000 it searches as a fuzzer does, and
// much faster than go test -fuzz, which counts the branches of all of k8s.io/api.
func TestMutatedBytes(t *testing.T) {
	kinds, table := NewKinds(), NewTable()
	for _, obj := range append(apiTypes(t), fuzzed()...) {
		k, err := kinds.For(obj)
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(table)
		random := rand.New(rand.NewSource(1))
		var raw []byte
		for i := range *mutations {
			if i%100 == 0 {
				filled := k.fresh()
				fill(newFiller(int64(i)), filled)
				raw = marshal(t, filled)
			}
			checkAgrees(t, d, k, mutate(random, raw))
		}
	}
}

// nested is a field with a message.
func nested(num protowire.Number, msg []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), msg)
}

func mutate(random *rand.Rand, raw []byte) []byte {
	b := append([]byte(nil), raw...)
	for range 1 + random.Intn(3) {
		if len(b) == 0 {
			return b
		}
		at := random.Intn(len(b))
		switch random.Intn(5) {
		case 0:
			b[at] ^= 1 << random.Intn(8)
		case 1:
			b = b[:at]
		case 2:
			b = append(b[:at], b[min(len(b), at+1+random.Intn(8)):]...)
		case 3:
			b = append(b, b[at:]...)
		case 4:
			b = append(b, byte(random.Intn(256)), byte(random.Intn(256)), byte(random.Intn(256)))
		}
	}
	return b
}

// TestOddEncodings has what is legal and never written by Kubernetes.
func TestOddEncodings(t *testing.T) {
	kinds, table := NewKinds(), NewTable()
	pod := ordinaryPod(1)
	raw := marshal(t, pod)
	meta := marshal(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "again", Labels: map[string]string{"x": "y"}}})
	for name, odd := range map[string][]byte{
		"metadata twice":         append(append([]byte(nil), raw...), meta...),
		"only metadata":          meta,
		"empty":                  {},
		"metadata last":          append(append([]byte(nil), raw[len(raw)-1:]...), raw...),
		"unknown field":          append(append([]byte(nil), raw...), 0x7a, 1, 'x'),
		"label without value":    {0x0a, 5, 0x5a, 3, 0x0a, 1, 'k'},
		"label value first":      {0x0a, 8, 0x5a, 6, 0x12, 1, 'v', 0x0a, 1, 'k'},
		"empty label":            {0x0a, 2, 0x5a, 0},
		"name is a number":       {0x0a, 2, 0x08, 1},
		"unknown in metadata":    {0x0a, 3, 0xf8, 0x01, 1},
		"long length":            {0x0a, 0x83, 0x00, 0x0a, 1, 'n'},
		"empty creation time":    {0x0a, 2, 0x42, 0},
		"creation time is wrong": {0x0a, 4, 0x42, 2, 0x08, 0xff},
		"group":                  {0x0b, 0x0c},
		"volume source twice":    nested(2, nested(1, append(nested(2, nested(19, nil)), nested(2, nested(10, nil))...))),
		"address twice":          nested(3, nested(12, append(nested(1, []byte("a")), nested(1, []byte("b"))...))),
		"address and more":       nested(3, nested(12, append(nested(1, []byte("a")), nested(7, []byte("b"))...))),
		"template twice":         nested(2, append(nested(3, nested(1, nested(1, []byte("n")))), nested(3, nested(2, nested(3, []byte("Never"))))...)),
		"container name twice":   nested(2, nested(3, nested(2, nested(2, append(nested(1, []byte("n")), nested(1, []byte("m"))...))))),
	} {
		if len(odd) > 0 && odd[0] != 0x0a {
			odd = append(append([]byte(nil), meta...), odd...)
		}
		for _, obj := range fuzzed() {
			k, err := kinds.For(obj)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name, func(t *testing.T) { checkAgrees(t, newDecoder(table), k, odd) })
		}
	}
}
