// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// binDirVariable names a folder with etcd, kube-apiserver, … instead of the cache of hack/tools/build.sh.
const binDirVariable = "KCM_BIN_DIR"

// managerVariable names a manager to test instead of the one that this checkout builds.
const managerVariable = "KCM_MANAGER_BIN"

// binariesFromEnv takes programs from dir; those that only some packages need may be missing.
// An empty dir leaves them all to hack/tools/build.sh.
func binariesFromEnv(dir string) (controlplane.Binaries, error) {
	var b controlplane.Binaries
	if dir == "" {
		return b, nil
	}
	for _, program := range []struct {
		name     string
		path     *string
		required bool
	}{
		{"etcd", &b.Etcd, true},
		{"kube-apiserver", &b.APIServer, true},
		{"kube-scheduler", &b.Scheduler, false},
		{"kwok", &b.Kwok, false},
		{"kubectl", &b.Kubectl, false},
	} {
		path := filepath.Join(dir, program.name)
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
			*program.path = path
		case program.required:
			return b, fmt.Errorf("%s=%s has no executable %s: build it with hack/tools/build.sh, or unset %s", binDirVariable, dir, program.name, binDirVariable)
		}
	}
	return b, nil
}

// buildManager builds our kube-controller-manager, unless managerVariable names
// one, and returns its path. All test packages share the file: go build leaves
// one alone that is up to date.
func buildManager(ctx context.Context) (string, error) {
	if path := os.Getenv(managerVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", managerVariable, err)
		}
		return path, nil
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	cache := os.Getenv("KCM_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for the binary: %w", err)
		}
		cache = filepath.Join(home, ".cache", "kcm")
	}
	// One file per checkout: two of them must not overwrite each other's.
	dir := filepath.Join(cache, "under-test", strings.ReplaceAll(strings.Trim(root, "/"), "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for the binary: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("locking the folder of the binary: %w", err)
	}
	defer lock.Close() // unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking the folder of the binary: %w", err)
	}
	path := filepath.Join(dir, "kube-controller-manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/kube-controller-manager")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building our kube-controller-manager: %w\n%s", err, output)
	}
	return path, nil
}

// moduleRoot is the folder of this checkout's main module.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module with go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
