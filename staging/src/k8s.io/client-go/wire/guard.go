// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
)

// Guard returns what wraps a transport in tests so that no object is written back as a cache had it.
//
// It looks at every PUT of a kind of which more than managed fields is dropped, reads the object from
// the server, and refuses the request when the server's object has something in the dropped fields
// and the one to be written has nothing there. The refusal is the request's error, and goes to
// report too. Patches are let through: they name what they change.
func (ks *Kinds) Guard(report func(error)) func(http.RoundTripper) http.RoundTripper {
	kinds := map[string]*Kind{}
	for _, k := range ks.byType {
		if !k.TrimsMoreThanManagedFields() {
			continue
		}
		gvks, _, err := scheme.Scheme.ObjectKinds(k.fresh())
		if err != nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvks[0])
		kinds[resource.Resource] = k
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return &guard{next: next, kinds: kinds, report: report}
	}
}

type guard struct {
	next   http.RoundTripper
	kinds  map[string]*Kind
	report func(error)
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || r.Body == nil {
		return g.next.RoundTrip(r)
	}
	k, path := g.target(r.URL.Path)
	if k == nil {
		return g.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if err := g.check(r, k, path, body); err != nil {
		g.report(err)
		return nil, err
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	return g.next.RoundTrip(again)
}

// target says which kind of trimmed object is at a path, and the path without a subresource.
func (g *guard) target(path string) (*Kind, string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := 2 // api/v1
	if parts[0] == "apis" {
		root = 3
	}
	if len(parts) > root+2 && parts[root] == "namespaces" {
		root += 2
	}
	if len(parts) < root+2 {
		return nil, ""
	}
	return g.kinds[parts[root]], "/" + strings.Join(parts[:root+2], "/")
}

// check fails when the object to be written has lost what the server's has.
func (g *guard) check(r *http.Request, k *Kind, path string, body []byte) error {
	written, err := k.untrimmed(body)
	if err != nil {
		return fmt.Errorf("guard: the object that is PUT to %s: %w", path, err)
	}
	live, err := g.live(r, k, path)
	if err != nil || live == nil {
		return err
	}
	if k.losesNothing(live) || !k.losesNothing(written) {
		return nil
	}
	return fmt.Errorf("guard: a %T of a cache is PUT to %s: the server would lose fields that are not cached; patch it, or change what was read live (dropped are %s)",
		written, r.URL.Path, strings.Join(k.dropped[1:], ", "))
}

// live reads the object that is about to be overwritten; nil when there is none.
func (g *guard) live(r *http.Request, k *Kind, path string) (object, error) {
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	get.URL.Path, get.URL.RawPath, get.URL.RawQuery = path, "", ""
	get.Header.Del("Content-Type")
	get.Header.Set("Accept", protobuf)
	get.Header.Set("Accept-Encoding", "identity")
	resp, err := g.next.RoundTrip(get)
	if err != nil {
		return nil, fmt.Errorf("guard: reading %s: %w", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("guard: reading %s: %w", path, err)
	}
	return k.untrimmed(raw)
}

// untrimmed decodes all of an object.
func (k *Kind) untrimmed(b []byte) (object, error) {
	whole := &Kind{fresh: k.fresh, trim: &trim{}}
	decode := whole.fullyDecoded
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		decode = whole.fromJSON
	} else {
		var err error
		if _, b, err = unwrap(b); err != nil {
			return nil, err
		}
	}
	obj, _, err := decode(b)
	if err != nil {
		return nil, err
	}
	return obj.(object), nil
}

// losesNothing says whether an object has nothing in the fields that are dropped, managed fields
// aside.
func (k *Kind) losesNothing(obj object) bool {
	trimmed := obj.DeepCopyObject()
	k.trim.clear(reflect.ValueOf(trimmed).Elem())
	trimmed.(object).GetObjectMeta().SetManagedFields(obj.GetObjectMeta().GetManagedFields())
	return equality.Semantic.DeepEqual(obj, trimmed)
}
