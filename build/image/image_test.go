// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// program writes the smallest file that passes for a Linux program of the machine.
func program(t *testing.T, machine elf.Machine, segments ...elf.ProgType) string {
	t.Helper()
	var out bytes.Buffer
	header := elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_EXEC),
		Machine: uint16(machine),
		Version: uint32(elf.EV_CURRENT),
		Ehsize:  64, Phoff: 64, Phentsize: 56, Phnum: uint16(len(segments)),
	}
	parts := []any{header}
	for _, s := range segments {
		parts = append(parts, elf.Prog64{Type: uint32(s)})
	}
	for _, part := range parts {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, out.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

var testVersion = Version{
	Version: "v1.37.2+kcm.0123456789ab",
	Commit:  "0123456789abcdef0123456789abcdef01234567",
	Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

func testIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	index, err := Index(Options{
		Binaries: map[string]string{"arm64": program(t, elf.EM_AARCH64), "amd64": program(t, elf.EM_X86_64, elf.PT_LOAD)},
		Version:  testVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func testTag(t *testing.T) name.Tag {
	t.Helper()
	ref, err := name.NewTag("registry.example/team/kube-controller-manager:" + testVersion.Tag())
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestIndexIsAsCheckWantsIt(t *testing.T) {
	if err := Check(written(t, testIndex(t)), "amd64", "arm64"); err != nil {
		t.Error(err)
	}
}

// The whole configuration, by its own words: what Check knows is only what matters most.
func TestConfig(t *testing.T) {
	img, err := ForPlatform(testIndex(t), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	created := v1.Time{Time: testVersion.Date}
	want := &v1.ConfigFile{
		Architecture: "arm64",
		OS:           "linux",
		Created:      created,
		Config: v1.Config{
			User:       "65532:65532",
			Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			Entrypoint: []string{"/usr/local/bin/kube-controller-manager"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":       "kube-controller-manager",
				"org.opencontainers.image.description": "A drop-in kube-controller-manager for Kubernetes",
				"org.opencontainers.image.source":      "https://github.com/kcm-dev/kcm",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     "v1.37.2+kcm.0123456789ab",
				"org.opencontainers.image.revision":    "0123456789abcdef0123456789abcdef01234567",
				"org.opencontainers.image.created":     "2026-01-02T03:04:05Z",
			},
		},
		RootFS: config.RootFS, // digests
		History: []v1.History{
			{Created: created, CreatedBy: "/etc/passwd /etc/ssl/certs/ca-certificates.crt"},
			{Created: created, CreatedBy: "/usr/local/bin/kube-controller-manager"},
		},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestSameInputsSameBytes(t *testing.T) {
	first, second := map[string]string{}, map[string]string{}
	for _, files := range []map[string]string{first, second} {
		dir := t.TempDir()
		layout := filepath.Join(dir, "layout")
		index := testIndex(t)
		if err := WriteLayout(layout, index, testTag(t)); err != nil {
			t.Fatal(err)
		}
		if err := WriteLayoutTar(filepath.Join(dir, "oci.tar"), layout); err != nil {
			t.Fatal(err)
		}
		if err := WriteDockerTar(filepath.Join(dir, "docker.tar"), index, "amd64", testTag(t)); err != nil {
			t.Fatal(err)
		}
		sums(t, dir, files)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second run differs (-first +second):\n%s", diff)
	}
	if len(first) < 10 {
		t.Errorf("only %d files were compared: %v", len(first), first)
	}
}

func sums(t *testing.T, dir string, into map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		into[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An update of the binary leaves the other layer alone.
func TestBaseLayerIsShared(t *testing.T) {
	index := testIndex(t)
	var base []v1.Hash
	for _, architecture := range []string{"amd64", "arm64"} {
		img, err := ForPlatform(index, architecture)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		if len(layers) != 2 {
			t.Fatalf("%s has %d layers, want 2", architecture, len(layers))
		}
		digest, err := layers[0].Digest()
		if err != nil {
			t.Fatal(err)
		}
		base = append(base, digest)
	}
	if base[0] != base[1] {
		t.Errorf("the base layers are %v, want one", base)
	}
}

func TestLayoutIsReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	want := testIndex(t)
	if err := WriteLayout(dir, want, testTag(t)); err != nil {
		t.Fatal(err)
	}
	got, ref, err := ReadLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ref != testTag(t).Name() {
		t.Errorf("the name is %q, want %q", ref, testTag(t).Name())
	}
	if digest(t, got) != digest(t, want) {
		t.Errorf("the digest is %s, want %s", digest(t, got), digest(t, want))
	}
	if err := Check(got, "amd64", "arm64"); err != nil {
		t.Error(err)
	}
	if err := WriteLayout(dir, want, testTag(t)); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("writing over a layout: %v", err)
	}
}

func digest(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	d, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDockerTar(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	index := testIndex(t)
	if err := WriteDockerTar(file, index, "arm64", testTag(t)); err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || !cmp.Equal(manifest[0].RepoTags, []string{testTag(t).Name()}) {
		t.Errorf("the tar's manifest is %+v, want one image with the tag %s", manifest, testTag(t))
	}
	tag := testTag(t)
	img, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkFiles(img, "arm64"); err != nil {
		t.Error(err)
	}
	if err := WriteDockerTar(file, index, "s390x", testTag(t)); err == nil || !strings.Contains(err.Error(), "linux/s390x") {
		t.Errorf("an architecture that the index lacks: %v", err)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/team/kube-controller-manager:" + testVersion.Tag())
	if err != nil {
		t.Fatal(err)
	}
	index := testIndex(t)
	pushed, err := Push(t.Context(), index, ref)
	if err != nil {
		t.Fatal(err)
	}
	if want := ref.Context().Name() + "@" + digest(t, index).String(); pushed != want {
		t.Errorf("pushed %s, want %s", pushed, want)
	}
	// What another machine pulls, by tag, is the same, and whole.
	got, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, got) != digest(t, index) {
		t.Errorf("pulled %s, want %s", digest(t, got), digest(t, index))
	}
	if err := Check(got, "amd64", "arm64"); err != nil {
		t.Error(err)
	}
}

func TestPushTellsWhere(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	ref, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/team/x:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), testIndex(t), ref); err == nil || !strings.Contains(err.Error(), "pushing to "+ref.String()) {
		t.Errorf("pushing to nobody: %v", err)
	}
}

func TestBinariesThatTheImageCannotRun(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		binaries map[string]string
		want     string
	}{
		"none":               {nil, "no binary"},
		"another machine":    {map[string]string{"amd64": program(t, elf.EM_AARCH64)}, "is one for EM_AARCH64"},
		"no program":         {map[string]string{"amd64": text}, "is no Linux program"},
		"missing":            {map[string]string{"amd64": text + ".missing"}, "no such file"},
		"dynamic":            {map[string]string{"amd64": program(t, elf.EM_X86_64, elf.PT_LOAD, elf.PT_INTERP)}, "CGO_ENABLED=0"},
		"other architecture": {map[string]string{"mips": text}, "allowed are amd64, arm64"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Index(Options{Binaries: c.binaries, Version: testVersion}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// changed returns the test's index with its amd64 image changed.
func changed(t *testing.T, change func(v1.Image) (v1.Image, error)) v1.ImageIndex {
	t.Helper()
	index := testIndex(t)
	img, err := ForPlatform(index, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	other, err := ForPlatform(index, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if img, err = change(img); err != nil {
		t.Fatal(err)
	}
	index = mutate.RemoveManifests(index, func(v1.Descriptor) bool { return true })
	return written(t, mutate.AppendManifests(index,
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
	))
}

// written returns the index as it is read back.
func written(t *testing.T, index v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	if err := WriteLayout(dir, index, testTag(t)); err != nil {
		t.Fatal(err)
	}
	index, _, err := ReadLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func withConfig(change func(*v1.ConfigFile)) func(v1.Image) (v1.Image, error) {
	return func(img v1.Image) (v1.Image, error) {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		config = config.DeepCopy()
		change(config)
		return mutate.ConfigFile(img, config)
	}
}

func withFile(f file) func(v1.Image) (v1.Image, error) {
	return func(img v1.Image) (v1.Image, error) {
		l, err := layer([]file{f})
		if err != nil {
			return nil, err
		}
		return mutate.AppendLayers(img, l)
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		index v1.ImageIndex
		want  string
	}{
		"root": {changed(t, withConfig(func(c *v1.ConfigFile) { c.Config.User = "" })), `linux/amd64: the user is "", want "65532:65532"`},
		"other entrypoint": {changed(t, withConfig(func(c *v1.ConfigFile) { c.Config.Entrypoint = []string{"/bin/sh"} })),
			`the entrypoint is "/bin/sh"`},
		"no label": {changed(t, withConfig(func(c *v1.ConfigFile) { delete(c.Config.Labels, "org.opencontainers.image.version") })),
			"org.opencontainers.image.version is missing"},
		"no PATH": {changed(t, withConfig(func(c *v1.ConfigFile) { c.Config.Env = nil })), "PATH does not find the binary"},
		"wrong architecture": {changed(t, withConfig(func(c *v1.ConfigFile) { c.Architecture = "arm64" })),
			"mismatched Architecture"},
		"a shell": {changed(t, withFile(file{path: "bin/sh", mode: 0o755})), "bin/sh"},
		"setuid":  {changed(t, withFile(file{path: binaryPath, mode: 0o4755, data: []byte("x")})), "the files and their modes are"},
		"no certificates": {changed(t, withFile(file{path: certificatesPath, mode: 0o644, data: []byte("none")})),
			"has 0 certificates"},
		"one platform": {written(t, mutate.RemoveManifests(testIndex(t), func(d v1.Descriptor) bool { return d.Platform.Architecture == "arm64" })),
			"the platforms are [linux/amd64]"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(c.index, "amd64", "arm64"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestParseStatus(t *testing.T) {
	const lines = "BUILD_HOST x\nSTABLE_KCM_GIT_VERSION v1.37.2+kcm.0123456789ab\n" +
		"STABLE_KCM_GIT_COMMIT 0123456789abcdef0123456789abcdef01234567\nSTABLE_KCM_BUILD_DATE 2026-01-02T03:04:05Z\n"
	got, err := ParseStatus(lines)
	if err != nil || got != testVersion {
		t.Errorf("got %+v, %v; want %+v", got, err, testVersion)
	}
	if got.Tag() != "v1.37.2_kcm.0123456789ab" {
		t.Errorf("the tag is %q", got.Tag())
	}
	archive := strings.Replace(lines, " "+testVersion.Commit, "", 1)
	if got, err = ParseStatus(archive); err != nil || got.Commit != "" {
		t.Errorf("without a commit: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                               `STABLE_KCM_GIT_VERSION is ""`,
		"STABLE_KCM_GIT_VERSION latest":  `is "latest"`,
		"STABLE_KCM_GIT_VERSION v1.37.2": `STABLE_KCM_BUILD_DATE is ""`,
	} {
		if _, err := ParseStatus(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}
