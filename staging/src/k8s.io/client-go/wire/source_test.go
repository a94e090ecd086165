// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// serve starts an API server that answers as handler does, and returns a client.
func serve(t *testing.T, handler http.HandlerFunc) rest.Interface {
	t.Helper()
	server := httptest.NewServer(handler)
	config := &rest.Config{Host: server.URL, UserAgent: "test"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		goleak.VerifyNone(t)
	})
	return client.CoreV1().RESTClient()
}

func podSource(t *testing.T, client rest.Interface, namespace string) cache.Source {
	t.Helper()
	return NewSources(client, NewKinds(), NewTable()).Typed(podResource, namespace)
}

func TestRequests(t *testing.T) {
	var asked []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, fmt.Sprintf("%s %s Accept=%s Encoding=%s Agent=%s", r.Method, r.URL, r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"), r.UserAgent()))
	})
	sources := NewSources(client, NewKinds(), NewTable())
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1beta2", Resource: "widgets"}
	timeout, yes := int64(7), true
	for _, source := range []cache.Source{sources.Typed(podResource, ""), sources.Typed(leases, "kube-system"), sources.Metadata(widgets, "")} {
		if _, err := source.List(t.Context(), metav1.ListOptions{Limit: 500, Continue: "c"}); err == nil {
			t.Error("an empty answer is taken for a list")
		}
		reader, err := source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5", TimeoutSeconds: &timeout, SendInitialEvents: &yes})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the end of a watch is %v", err)
		}
		if err := errors.Join(reader.Close(), reader.Close()); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	as := func(kind string) string {
		as := ";as=" + kind + ";g=meta.k8s.io;v=v1"
		return "application/vnd.kubernetes.protobuf" + as + ",application/json" + as + ",application/json"
	}
	plain := "application/vnd.kubernetes.protobuf,application/json"
	listed, watched := "?continue=c&limit=500", "?resourceVersion=5&sendInitialEvents=true&timeoutSeconds=7&watch=true"
	want := []string{
		"GET /api/v1/pods" + listed + " Accept=" + plain,
		"GET /api/v1/pods" + watched + " Accept=" + plain,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases" + listed + " Accept=" + plain,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases" + watched + " Accept=" + plain,
		"GET /apis/example.com/v1beta2/widgets" + listed + " Accept=" + as("PartialObjectMetadataList"),
		"GET /apis/example.com/v1beta2/widgets" + watched + " Accept=" + as("PartialObjectMetadata"),
	}
	for i, w := range want {
		if w += " Encoding=identity Agent=test"; i >= len(asked) || asked[i] != w {
			t.Errorf("request %d is %v\nwant %s", i, asked, w)
		}
	}
	if sources.Typed(widgets, "") != nil {
		t.Error("there is a typed source of a resource that has no type")
	}
}

// TestBusyResourcesHaveTheirConnection looks at the protocols, and that all else of the config is kept.
func TestBusyResourcesHaveTheirConnection(t *testing.T) {
	var mu sync.Mutex
	protocols := map[string]string{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		protocols[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = r.Proto + " " + r.UserAgent() + " " + r.Header.Get("Authorization") + " " + r.Header.Get("Wrapped")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, UserAgent: "agent", BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Wrapped", "yes")
			return next.RoundTrip(r)
		})
	})
	sources, err := NewSourcesFor(config, NewKinds(), NewTable())
	if err != nil {
		t.Fatal(err)
	}
	watched := map[string]cache.Source{
		"pods":       sources.Typed(podResource, ""),
		"configmaps": sources.Typed(corev1.SchemeGroupVersion.WithResource("configmaps"), ""),
		"leases":     sources.Metadata(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, ""),
		"secrets":    sources.Metadata(corev1.SchemeGroupVersion.WithResource("secrets"), ""),
	}
	for name, source := range watched {
		reader, err := source.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = reader.Close()
	}
	same := " agent Bearer token yes"
	want := map[string]string{"pods": "HTTP/1.1" + same, "leases": "HTTP/1.1" + same, "configmaps": "HTTP/2.0" + same, "secrets": "HTTP/2.0" + same}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, protocols); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestList(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobuf)
		_, _ = w.Write(encodeAs(t, protobuf, podList(5)))
	})
	page, err := podSource(t, client, "").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(page.Items) != 5 {
		t.Errorf("%d items, error %v", len(page.Items), err)
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	status := apierrors.NewResourceExpired("too old").ErrStatus
	for _, mediaType := range []string{protobuf, jsonType} {
		t.Run(mediaType, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", mediaType)
				w.WriteHeader(http.StatusGone)
				_, _ = w.Write(encodeAs(t, mediaType, &status))
			})
			source := podSource(t, client, "")
			if _, err := source.List(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
				t.Errorf("error of the list: %v", err)
			}
			if _, err := source.Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
				t.Errorf("error of the watch: %v", err)
			}
		})
	}
}

func TestWatchErrorEvent(t *testing.T) {
	status := apierrors.NewResourceExpired("too old").ErrStatus
	for name, body := range map[string][]byte{
		protobuf: frame(t, watch.Error, &status),
		jsonType: fmt.Appendf(nil, `{"type":"ERROR","object":%s}`, encodeAs(t, jsonType, &status)),
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(body) })
			reader, err := podSource(t, client, "").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			if _, err := reader.Next(); !apierrors.IsResourceExpired(err) {
				t.Errorf("the error event is %v", err)
			}
		})
	}
}

func TestWatchInJSON(t *testing.T) {
	pod := string(encodeAs(t, jsonType, ordinaryPod(1)))
	bookmark := `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}{"type":"BOOKMARK","object":%s}`+"\n"+`{"type":"DELETED","object":%s}`, pod, bookmark, pod)
	})
	reader, err := podSource(t, client, "").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, want := range []watch.EventType{watch.Added, watch.Bookmark, watch.Deleted} {
		event, err := reader.Next()
		if err != nil || event.Type != want || event.InitialEventsEnd != (want == watch.Bookmark) {
			t.Fatalf("event %v, error %v", event, err)
		}
		if pod, ok := event.Object.(*corev1.Pod); ok && (pod.Kind != "" || len(pod.Spec.Containers[0].Env) != 0 || pod.ManagedFields != nil) {
			t.Error("a pod in JSON differs from one in protobuf")
		}
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a watch is %v", err)
	}
}

// TestWatchEnds has a server that says nothing: a reader that waits must wake when the context ends,
// and when it is closed.
func TestWatchEnds(t *testing.T) {
	for name, end := range map[string]func(cancel func(), reader cache.EventReader){
		"by the context": func(cancel func(), _ cache.EventReader) { cancel() },
		"by Close":       func(_ func(), reader cache.EventReader) { _ = reader.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reader, err := podSource(t, client, "").Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			ended := make(chan error, 1)
			go func() {
				_, err := reader.Next()
				ended <- err
			}()
			end(cancel, reader)
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the reader ended with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the reader does not wake up")
			}
		})
	}
}

func TestConnectionBreaks(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(frame(t, watch.Added, ordinaryPod(1)))
		_, _ = w.Write(frame(t, watch.Added, ordinaryPod(2))[:100])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	reader, err := podSource(t, client, "").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Next(); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken connection is %v", err)
	}
}

func TestMetadataOfAnyResource(t *testing.T) {
	var list metav1.PartialObjectMetadataList
	for i := range 3 {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: ordinaryPod(i).ObjectMeta})
	}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "PartialObjectMetadataList"}, Raw: raw}
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "protobuf;as=PartialObjectMetadataList") {
			_, _ = w.Write(append([]byte("k8s\x00"), body...))
		}
	})
	source := NewSources(client, NewKinds(), NewTable()).Metadata(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "shop")
	page, err := source.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(page.Items) != 3 {
		t.Fatalf("%d items, error %v", len(page.Items), err)
	}
	first, second := page.Items[0].Object.(*metav1.PartialObjectMetadata), page.Items[1].Object.(*metav1.PartialObjectMetadata)
	if first.Kind != "PartialObjectMetadata" || first.Name != "web-00000" || first.ManagedFields != nil {
		t.Errorf("the first object is %v", first)
	}
	if &first.OwnerReferences[0] != &second.OwnerReferences[0] {
		t.Error("owner references are not shared")
	}
}
