// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIsControllerEnabled(t *testing.T) {
	off := sets.New("off")
	for _, tc := range []struct {
		name        string
		controllers []string
		want        bool
	}{
		{"on", []string{"*"}, true},
		{"off", []string{"*"}, false},
		{"off", []string{"*", "off"}, true},
		{"off", []string{"off"}, true},
		{"on", []string{"-on", "*"}, false},
		{"on", []string{"*", "-on"}, false},
		{"on", []string{"on", "-on"}, true},
		{"on", []string{"-on", "on"}, false},
		{"on", []string{"other"}, false},
		{"on", nil, false},
	} {
		if got := IsControllerEnabled(tc.name, off, tc.controllers); got != tc.want {
			t.Errorf("%s in %v: %v, want %v", tc.name, tc.controllers, got, tc.want)
		}
	}
}

// apiServer answers /healthz with each of codes once, the last for ever.
func apiServer(t *testing.T, asked *atomic.Int32, codes ...int) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked for %s", r.URL)
		}
		n := int(asked.Add(1))
		w.WriteHeader(codes[min(n, len(codes))-1])
		_, _ = io.WriteString(w, "answer")
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestWaitForAPIServer(t *testing.T) {
	t.Run("healthy", func(t *testing.T) {
		var asked atomic.Int32
		if err := WaitForAPIServer(t.Context(), apiServer(t, &asked, 200), time.Minute); err != nil || asked.Load() != 1 {
			t.Errorf("%v after %d questions", err, asked.Load())
		}
	})
	t.Run("healthy later", func(t *testing.T) {
		var asked atomic.Int32
		if err := WaitForAPIServer(t.Context(), apiServer(t, &asked, 403, 200), time.Minute); err != nil || asked.Load() != 2 {
			t.Errorf("%v after %d questions", err, asked.Load())
		}
	})
	t.Run("never", func(t *testing.T) {
		var asked atomic.Int32
		err := WaitForAPIServer(t.Context(), apiServer(t, &asked, 403), 10*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "failed to get apiserver /healthz status: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("not quite healthy", func(t *testing.T) {
		var asked atomic.Int32
		err := WaitForAPIServer(t.Context(), apiServer(t, &asked, 202), 10*time.Millisecond)
		if err == nil || !strings.HasSuffix(err.Error(), "APIServer isn't healthy: answer") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("called off", func(t *testing.T) {
		var asked atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := WaitForAPIServer(ctx, apiServer(t, &asked, 200), time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}
