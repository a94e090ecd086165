// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kcm-dev/kcm/build/image"
)

// someLayout is an image for two architectures, whatever is in it, in an OCI layout.
func someLayout(t *testing.T) (dir string, digest v1.Hash) {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64"} {
		img, err := random.Image(1000, 2)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	ref, err := name.NewTag("registry.example/team/kube-controller-manager:v1.37.2_kcm.1")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "layout")
	if err := image.WriteLayout(dir, index, ref); err != nil {
		t.Fatal(err)
	}
	if digest, err = index.Digest(); err != nil {
		t.Fatal(err)
	}
	return dir, digest
}

func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// expectPushed fails unless output names what the registry has under the layout's tag, with that digest.
func expectPushed(t *testing.T, output, repository string, digest v1.Hash) {
	t.Helper()
	if want := repository + "@" + digest.String() + "\n"; output != want {
		t.Errorf("it printed %q, want %q", output, want)
	}
	ref, err := name.NewTag(repository + ":v1.37.2_kcm.1")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := index.Digest(); err != nil || got != digest {
		t.Errorf("the registry has %v, %v; want %v", got, err, digest)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		if _, err := image.ForPlatform(index, architecture); err != nil {
			t.Error(err)
		}
	}
}

func TestPush(t *testing.T) {
	layout, digest := someLayout(t)
	registry := newRegistry(t)
	var output strings.Builder
	cmd := newCommand()
	cmd.SetOut(&output)
	cmd.SetArgs([]string{"push", layout, registry + "/mirrors"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectPushed(t, output.String(), registry+"/mirrors/kube-controller-manager", digest)
}

// The script that a user calls.
func TestPushScript(t *testing.T) {
	script := "../../../hack/push-image.sh"
	if _, err := os.Stat(script); err != nil {
		t.Skipf("no checkout around this test (Bazel's sandbox): %v", err)
	}
	layout, digest := someLayout(t)
	registry := newRegistry(t)
	var complaints strings.Builder
	cmd := exec.CommandContext(t.Context(), script, registry, layout)
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	expectPushed(t, string(output), registry+"/kube-controller-manager", digest)

	for want, args := range map[string][]string{
		"an argument is missing":          {},
		`unknown flag "--force"`:          {"--force", layout},
		`"more" is one argument too many`: {registry, layout, "more"},
	} {
		output, err := exec.CommandContext(t.Context(), script, args...).CombinedOutput()
		if err == nil || string(output) != "error: hack/push-image.sh: "+want+": usage is hack/push-image.sh REGISTRY[/PATH] [LAYOUT]\n" {
			t.Errorf("%q: %v, %q; want an error and the line %q", args, err, output, want)
		}
	}
	help, err := exec.CommandContext(t.Context(), script, "--help").Output()
	if err != nil || !strings.HasPrefix(string(help), "Pushes the image to a registry") {
		t.Errorf("--help: %v, %q; want what stands at the script's top", err, help)
	}
}
