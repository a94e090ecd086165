// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are paths of programs. Kubectl is only needed by whoever calls it.
type Binaries struct {
	Etcd, APIServer, Scheduler, Kwok, Kubectl string
}

// FindBinaries returns b with every named component's empty path filled in by hack/tools/build.sh, which builds what is
// not in its cache: seconds to many minutes. Its progress lines go to log.
func FindBinaries(ctx context.Context, b Binaries, log io.Writer, names ...Component) (Binaries, error) {
	paths := map[Component]*string{
		ComponentEtcd:      &b.Etcd,
		ComponentAPIServer: &b.APIServer,
		ComponentScheduler: &b.Scheduler,
		ComponentKwok:      &b.Kwok,
		"kubectl":          &b.Kubectl,
	}
	var missing []string
	for _, name := range names {
		if path, known := paths[name]; known && *path == "" {
			missing = append(missing, string(name))
		}
	}
	if len(missing) == 0 {
		return b, nil
	}

	folder, err := runBuildScript(ctx, log, missing)
	if err != nil {
		return b, err
	}
	for _, name := range missing {
		*paths[Component(name)] = filepath.Join(folder, name)
	}
	return b, nil
}

// runBuildScript runs hack/tools/build.sh and returns the folder that it prints.
func runBuildScript(ctx context.Context, log io.Writer, names []string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	script := filepath.Join(root, buildScript)
	var folder, progress bytes.Buffer
	cmd := exec.CommandContext(ctx, script, names...)
	cmd.Stdout = &folder
	cmd.Stderr = io.MultiWriter(log, &progress)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", script, strings.Join(names, " "), err, lastLine(progress.String()))
	}
	return strings.TrimSpace(folder.String()), nil
}

// buildScript is where, in a checkout, the peers are built.
const buildScript = "hack/tools/build.sh"

// ModuleRoot returns the checkout's folder: $KCM_ROOT, which the scripts of hack set, or else the nearest folder above
// the working directory that has hack/tools/build.sh.
func ModuleRoot() (string, error) {
	if root := os.Getenv("KCM_ROOT"); root != "" {
		return root, nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, buildScript)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder above %s has %s: set KCM_ROOT, or Options.Binaries", start, buildScript)
		}
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
