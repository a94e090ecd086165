// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// BuildOurs builds our manager from the checkout into _output/bin, unless KCM_MANAGER_BIN names one, and returns its path.
func BuildOurs(ctx context.Context) (string, error) {
	if path := os.Getenv("KCM_MANAGER_BIN"); path != "" {
		return path, statOf(path, "KCM_MANAGER_BIN")
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "_output", "suites", "kube-controller-manager")
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Static and trimmed, as releases are and as upstream's is built: what is compared must be alike.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/kube-controller-manager")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building our kube-controller-manager: %w\n%s", err, out)
	}
	return path, nil
}

// lock keeps two test packages from building into one folder at the same time. go build leaves a file alone that is up
// to date, and so one that runs.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for the binary: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the binary: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the folder of the binary: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil // which unlocks
}

// FindUpstream returns the path of upstream's manager, from KCM_UPSTREAM_BIN or built by hack/tools/build.sh.
func FindUpstream(ctx context.Context) (string, error) {
	if path := os.Getenv("KCM_UPSTREAM_BIN"); path != "" {
		return path, statOf(path, "KCM_UPSTREAM_BIN")
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "tools", "build.sh"), "kube-controller-manager")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building upstream's manager with hack/tools/build.sh: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "kube-controller-manager"), nil
}

func statOf(path, variable string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return nil
}

// Missing returns those of the controllers that the binary does not have, by what its --help says.
func Missing(ctx context.Context, binary string, controllers []string) ([]string, error) {
	help, err := exec.CommandContext(ctx, binary, "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for --help: %w", binary, err)
	}
	all := listAfter(help, "All controllers:")
	if len(all) == 0 {
		return nil, fmt.Errorf("%s --help has no line \"All controllers:\"", binary)
	}
	absent := listAfter(help, "Not available in this release:")
	var missing []string
	for _, name := range controllers {
		if !slices.Contains(all, name) || slices.Contains(absent, name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// listAfter reads the comma-separated list that follows the title on its line.
func listAfter(help []byte, title string) []string {
	lines := bufio.NewScanner(bytes.NewReader(help))
	for lines.Scan() {
		if _, list, found := strings.Cut(lines.Text(), title); found {
			list, _, _ = strings.Cut(list, "(default")
			return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return nil
}

// DefaultControllers returns the controllers that the binary has and that "*" switches on.
func DefaultControllers(ctx context.Context, binary string) ([]string, error) {
	help, err := exec.CommandContext(ctx, binary, "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for --help: %w", binary, err)
	}
	left := slices.Concat(listAfter(help, "Not available in this release:"), listAfter(help, "Disabled-by-default controllers:"))
	controllers := slices.DeleteFunc(listAfter(help, "All controllers:"), func(name string) bool { return slices.Contains(left, name) })
	if len(controllers) == 0 {
		return nil, fmt.Errorf("%s --help names no controllers", binary)
	}
	return controllers, nil
}
