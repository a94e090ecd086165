// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package clientbuilder

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// seen is what a server sees of a request.
type seen struct{ Agent, Authorization, Path string }

func server(t *testing.T, requests *[]seen) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, seen{strings.TrimPrefix(r.UserAgent(), rest.DefaultKubernetesUserAgent()), r.Header.Get("Authorization"), r.URL.Path})
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1"}`)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return &rest.Config{Host: s.URL, Transport: transport, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// useAll makes a request by each kind of client.
func useAll(t *testing.T, b ControllerClientBuilder, name string) {
	t.Helper()
	client, err := b.Client(name)
	if err != nil {
		t.Fatal(err)
	}
	discovery, err := b.DiscoveryClient(name)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := b.MetadataClient(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().RESTClient().Get().AbsPath("/typed").Do(t.Context()).Error(); err != nil {
		t.Error(err)
	}
	if err := discovery.RESTClient().Get().AbsPath("/discovery").Do(t.Context()).Error(); err != nil {
		t.Error(err)
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	// The server answers with a Status, which the client takes for an error of another kind than this test is about.
	_, _ = metadata.Resource(pods).Namespace("ns").Get(t.Context(), "p", metav1.GetOptions{})
}

func wantRequests(agent, authorization string) []seen {
	return []seen{{agent, authorization, "/typed"}, {agent, authorization, "/discovery"}, {agent, authorization, "/api/v1/namespaces/ns/pods/p"}}
}

func TestSimple(t *testing.T) {
	fence := gate.NewFence(nil)
	fence.OpenForever()
	for name, g := range map[string]*gate.Gate{"with a gate": gate.New(fence), "without": nil} {
		t.Run(name, func(t *testing.T) {
			var requests []seen
			b := SimpleControllerClientBuilder{ClientConfig: server(t, &requests), Gate: g}
			useAll(t, b, "job-controller")
			if diff := cmp.Diff(wantRequests("/job-controller", ""), requests); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if b.ClientConfig.UserAgent != "" || b.ClientConfig.WrapTransport != nil {
				t.Error("the builder's own configuration was changed")
			}
		})
	}
}

// All clients go through the gate.
func TestGated(t *testing.T) {
	var requests []seen
	config := server(t, &requests)
	g := gate.New(gate.NewFence(nil))
	for _, b := range []ControllerClientBuilder{
		SimpleControllerClientBuilder{ClientConfig: config, Gate: g},
		NewDynamicClientBuilder(t.Context(), config, newTokenServer().CoreV1(), "kube-system", g),
	} {
		client, err := b.Client("job-controller")
		if err != nil {
			t.Fatal(err)
		}
		if err := client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); !errors.Is(err, gate.ErrFenced) {
			t.Errorf("%T: error %v, want ErrFenced", b, err)
		}
		metadata, err := b.MetadataClient("job-controller")
		if err != nil {
			t.Fatal(err)
		}
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		if err := metadata.Resource(pods).Namespace("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); !errors.Is(err, gate.ErrFenced) {
			t.Errorf("%T: error %v, want ErrFenced", b, err)
		}
	}
	if len(requests) != 0 {
		t.Errorf("requests that passed: %v", requests)
	}
}

// Discovery gets limits of its own where there are limits.
func TestDiscoveryLimits(t *testing.T) {
	for qps, want := range map[float32]float32{0: discoveryQPS, 5: discoveryQPS, 1000: discoveryQPS, -1: -1} {
		client, err := SimpleControllerClientBuilder{ClientConfig: &rest.Config{Host: "http://server", QPS: qps, Burst: 30}}.DiscoveryClient("x")
		if err != nil {
			t.Fatal(err)
		}
		limiter := client.RESTClient().GetRateLimiter()
		got := float32(-1)
		if limiter != nil {
			got = limiter.QPS()
		}
		if got != want {
			t.Errorf("QPS %v: discovery has %v, want %v", qps, got, want)
		}
	}
}

func TestDynamic(t *testing.T) {
	var requests []seen
	config := server(t, &requests)
	tokens := newTokenServer()
	b := NewDynamicClientBuilder(t.Context(), config, tokens.CoreV1(), "kube-system", nil)
	useAll(t, b, "job-controller")
	if diff := cmp.Diff(wantRequests("/job-controller", "Bearer token-1"), requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// One look, one creation, and one token for all three clients.
	if diff := cmp.Diff([]string{"get serviceaccounts", "create serviceaccounts", "create serviceaccounts/token"}, actions(tokens.Clientset)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := tokens.Tracker().Get(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "kube-system", "job-controller"); err != nil {
		t.Error(err)
	}
	tokens.ClearActions()
	if _, err := b.Config("cronjob-controller"); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(actions(tokens.Clientset), "create serviceaccounts/token") {
		t.Error("a token was requested before it was needed")
	}
}

func actions(client *fake.Clientset) []string {
	var names []string
	for _, a := range client.Actions() {
		name := a.GetVerb() + " " + a.GetResource().Resource
		if a.GetSubresource() != "" {
			name += "/" + a.GetSubresource()
		}
		names = append(names, name)
	}
	return names
}

func TestEnsureServiceAccount(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "sa"}}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
	forbidden := apierrors.NewForbidden(accounts, "sa", nil)
	// fail makes the first requests of a kind fail.
	fail := func(verb, resource string, errs ...error) func(*fake.Clientset) {
		return func(c *fake.Clientset) {
			c.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				if len(errs) == 0 {
					return false, nil, nil
				}
				err := errs[0]
				errs = errs[1:]
				return true, nil, err
			})
		}
	}
	for _, tc := range []struct {
		name    string
		objects []runtime.Object
		faults  []func(*fake.Clientset)
		want    []string
		wantErr string
	}{
		{name: "exists", objects: []runtime.Object{account}, want: []string{"get serviceaccounts"}},
		{name: "created", want: []string{"get serviceaccounts", "create serviceaccounts"}},
		{name: "someone else was first", faults: []func(*fake.Clientset){fail("create", "serviceaccounts", apierrors.NewAlreadyExists(accounts, "sa"))},
			want: []string{"get serviceaccounts", "create serviceaccounts"}},
		{name: "no namespace", faults: []func(*fake.Clientset){fail("create", "serviceaccounts", missing)},
			want: []string{"get serviceaccounts", "create serviceaccounts", "create namespaces", "create serviceaccounts"}},
		{name: "no namespace, and someone else was first", faults: []func(*fake.Clientset){
			fail("create", "serviceaccounts", missing), fail("create", "namespaces", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "namespaces"}, "kube-system"))},
			want: []string{"get serviceaccounts", "create serviceaccounts", "create namespaces", "create serviceaccounts"}},
		{name: "may not create the namespace", faults: []func(*fake.Clientset){fail("create", "serviceaccounts", missing), fail("create", "namespaces", forbidden)},
			want:    []string{"get serviceaccounts", "create serviceaccounts", "create namespaces"},
			wantErr: "creating namespace kube-system for ServiceAccount sa: "},
		{name: "may not read", faults: []func(*fake.Clientset){fail("get", "serviceaccounts", forbidden)}, want: []string{"get serviceaccounts"},
			wantErr: "reading ServiceAccount kube-system/sa: "},
		{name: "may not create", faults: []func(*fake.Clientset){fail("create", "serviceaccounts", forbidden)}, want: []string{"get serviceaccounts", "create serviceaccounts"},
			wantErr: "creating ServiceAccount kube-system/sa: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			for _, fault := range tc.faults {
				fault(client)
			}
			b := NewDynamicClientBuilder(t.Context(), &rest.Config{Host: "http://server"}, client.CoreV1(), "kube-system", nil)
			_, err := b.Config("sa")
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.wantErr)) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, actions(client)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
