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
	"testing"
)

// UpstreamManager returns the path of upstream's kube-controller-manager, to
// compare ours with. It is built when it is missing, which takes minutes.
func (e *Env) UpstreamManager(t testing.TB) string {
	t.Helper()
	path, err := e.suite.upstream()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func findUpstream(ctx context.Context) (string, error) {
	const name = "kube-controller-manager"
	if dir := os.Getenv(binDirVariable); dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("upstream's manager in %s: %w", binDirVariable, err)
		}
		return path, nil
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "tools", "build.sh"), name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building upstream's manager with %s: %w", cmd, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), name), nil
}
