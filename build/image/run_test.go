// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// actVariable makes this test's own binary play the manager.
const actVariable = "KCM_IMAGE_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		play(act)
	}
	os.Exit(m.Run())
}

// play is the manager: "healthy" from its second answer on, "sick" for ever, or it "exits".
func play(act string) {
	flags := map[string]string{}
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	if _, err := os.ReadFile(flags["--kubeconfig"]); err != nil || act == "exits" {
		fmt.Fprintln(os.Stderr, "not today", err)
		os.Exit(3)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(flags["--bind-address"], flags["--secure-port"]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	}
	asked := 0
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if act == "sick" || asked == 1 || r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, "I am %s", act)
	})}}
	server.StartTLS()
	select {}
}

// actor is an image of this test's binary.
func actor(t *testing.T, act string) v1.Image {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	l, err := layer([]file{{path: binaryPath, mode: 0o755, data: data}})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{Entrypoint: []string{"/" + binaryPath}, Env: []string{actVariable + "=" + act}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestRun(t *testing.T) {
	answer, err := Run(t.Context(), actor(t, "healthy"), t.TempDir(), false)
	if err != nil || answer != "I am healthy" {
		t.Errorf("got %q, %v; want the second answer", answer, err)
	}
}

func TestRunTellsWhatIsWrong(t *testing.T) {
	for act, want := range map[string][]string{
		"exits": {"has ended: exit status 3", "not today"},
		"sick":  {"deadline exceeded", "/healthz", "500 Internal Server Error: I am sick"},
	} {
		t.Run(act, func(t *testing.T) {
			timeout := time.Minute
			if act == "sick" {
				timeout = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := Run(ctx, actor(t, act), t.TempDir(), false)
			for _, w := range want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got %v, want an error with %q", err, w)
				}
			}
		})
	}
}

func TestRunNothing(t *testing.T) {
	if _, err := Run(t.Context(), empty.Image, t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "no entrypoint") {
		t.Errorf("got %v, want an error about the entrypoint", err)
	}
}

// As hack/check-image.sh does it: nothing but the image's files, and its user.
func TestRunIsolated(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("isolation takes Linux and root")
	}
	if os.Getenv("TEST_TARGET") != "" {
		t.Skip("Bazel's sandbox is a user namespace, which lacks the image's user")
	}
	if isDynamic(t) {
		t.Skip("this test's binary needs libraries (race detector): it cannot run alone")
	}
	answer, err := Run(t.Context(), actor(t, "healthy"), t.TempDir(), true)
	if err != nil || answer != "I am healthy" {
		t.Errorf("got %q, %v; want the second answer", answer, err)
	}
}

func isDynamic(t *testing.T) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return checkBinary(self, runtime.GOARCH) != nil
}
