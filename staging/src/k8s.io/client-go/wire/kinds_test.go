// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// apiTypes are the types of client-go's scheme that have metadata and know protobuf.
func apiTypes(t testing.TB) []object {
	var types []object
	seen := map[reflect.Type]bool{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		obj, ok := reflect.New(typ).Interface().(object)
		if !ok || seen[typ] || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if _, isList := obj.(runtime.Object).(metav1.ListInterface); isList {
			continue
		}
		seen[typ] = true
		types = append(types, obj)
	}
	types = append(types, &metav1.PartialObjectMetadata{})
	sort.Slice(types, func(i, j int) bool { return fmt.Sprintf("%T", types[i]) < fmt.Sprintf("%T", types[j]) })
	if len(types) < 80 {
		t.Fatalf("only %d types in the scheme", len(types))
	}
	return types
}

// newFiller fills objects at random, with all that a decoder finds hard: empty and missing, many and few.
func newFiller(seed int64) *randfill.Filler {
	codecs := runtimeserializer.NewCodecFactory(scheme.Scheme)
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(runtimeserializer.CodecFactory) []interface{} {
		return []interface{}{
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewMilliQuantity(c.Int63n(10000), resource.DecimalSI)
			},
			func(r *runtime.RawExtension, c randfill.Continue) {
				r.Raw = []byte(fmt.Sprintf(`{"a":%d}`, c.Intn(10)))
			},
			// Managed fields and such are there as often as not.
			func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(`{"f:metadata":{}}`) },
		}
	})
	return fuzzer.FuzzerFor(funcs, rand.NewSource(seed), codecs).NilChance(0.3).NumElements(0, 3)
}

// fill fills an object, managed fields included, which the shared fuzzer functions leave out.
func fill(f *randfill.Filler, obj object) {
	f.Fill(obj)
	meta := obj.GetObjectMeta()
	if meta.GetResourceVersion() != "" {
		meta.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}})
	}
}

type marshaler interface{ Marshal() ([]byte, error) }

func marshal(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	b, err := obj.(marshaler).Marshal()
	if err != nil {
		t.Fatalf("encoding %T: %v", obj, err)
	}
	return b
}

// full is what the generated code decodes, without the fields that are declared dropped.
func full(k *Kind, raw []byte) (runtime.Object, error) {
	obj := k.fresh()
	if err := obj.Unmarshal(raw); err != nil {
		return nil, err
	}
	k.trim.clear(reflect.ValueOf(obj).Elem())
	k.setType(obj)
	return obj, nil
}

// checkSame decodes both ways; the results must not differ in anything.
func checkSame(t testing.TB, d *decoder, k *Kind, raw []byte) {
	t.Helper()
	want, err := full(k, raw)
	if err != nil {
		t.Fatalf("full decoding: %v", err)
	}
	got, _, err := k.decode(d, k, raw)
	if err != nil {
		t.Fatalf("%T: the fast way gives up on what Kubernetes encodes: %v", want, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%T differs (-want +got):\n%s", want, cmp.Diff(want, got))
	}
	if !bytes.Equal(marshal(t, got), marshal(t, want)) {
		t.Fatalf("%T: encoded again it differs", want)
	}
}

func TestEveryTypeDecodesLikeTheGeneratedCode(t *testing.T) {
	kinds, table := NewKinds(), NewTable()
	rounds := 25
	if testing.Short() {
		rounds = 10
	}
	for _, obj := range apiTypes(t) {
		t.Run(fmt.Sprintf("%T", obj), func(t *testing.T) {
			k, err := kinds.For(obj)
			if err != nil {
				t.Fatal(err)
			}
			d := newDecoder(table)
			for seed := range rounds {
				filled := k.fresh()
				fill(newFiller(int64(seed)), filled)
				raw := marshal(t, filled)
				checkSame(t, d, k, raw)
				// Again, now that every part is in the table.
				checkSame(t, d, k, raw)
			}
		})
	}
}
