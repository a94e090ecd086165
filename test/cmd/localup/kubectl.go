// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kcm-dev/kcm/test/controlplane"
)

//go:embed example.yaml
var exampleManifest []byte

// rolloutTimeout is ample: kwok's pods start at once.
const rolloutTimeout = "2m"

// present applies the example to a new cluster, and says how the cluster is used.
func (c *cluster) present(ctx context.Context, plane *controlplane.ControlPlane, kubectlPath string, whole, example bool) error {
	kubeconfig, err := plane.KubeconfigFor(controlplane.AdminUser, controlplane.MastersGroup)
	if err != nil {
		return err
	}
	// A path that is easy to type, and to remember.
	admin := filepath.Join(c.dir, "admin.conf")
	if err := copyFile(kubeconfig, admin); err != nil {
		return err
	}
	k := kubectl{path: kubectlPath, kubeconfig: admin, c: c}
	if example && !c.state.ExampleApplied {
		if err := k.applyExample(ctx, plane); err != nil {
			return err
		}
		c.state.ExampleApplied = true
		if err := c.save(); err != nil {
			return err
		}
	}
	if whole {
		c.say("\nThe cluster runs already: nothing was to be done.")
	} else {
		c.say("\nThe cluster is up, and stays up until it is stopped.")
	}
	k.explain()
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the administrator's kubeconfig: %w", err)
	}
	return nil
}

// kubectl runs commands in sight of the user.
type kubectl struct {
	path, kubeconfig string
	c                *cluster
}

// applyExample applies the example, follows its rollout, and shows how the Service's EndpointSlice
// follows the Deployment's pods.
func (k kubectl) applyExample(ctx context.Context, plane *controlplane.ControlPlane) error {
	manifest := filepath.Join(k.c.dir, "example.yaml")
	if err := os.WriteFile(manifest, exampleManifest, 0o600); err != nil {
		return fmt.Errorf("writing the example: %w", err)
	}
	k.c.say("\nThe example:")
	// A controller manager that dies meanwhile is the answer to why nothing moves: do not wait for the rollout then.
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-plane.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel()
	for _, args := range [][]string{
		{"apply", "-f", manifest},
		{"rollout", "status", "deployment/web", "--namespace=example", "--timeout=" + rolloutTimeout},
		readyEndpoint(1),
		{"get", "endpointslices", "--namespace=example"},
		{"scale", "deployment/web", "--namespace=example", "--replicas=3"},
		{"rollout", "status", "deployment/web", "--namespace=example", "--timeout=" + rolloutTimeout},
		readyEndpoint(2),
		{"get", "endpointslices", "--namespace=example"},
		{"get", "pods", "--namespace=example", "--output=wide"},
	} {
		if err := k.run(ctx, args...); err != nil {
			if died := plane.Err(); died != nil {
				return died
			}
			return fmt.Errorf("the example did not roll out; the controller manager's log is %s: %w",
				plane.LogPath(controlplane.ComponentManager), err)
		}
	}
	return nil
}

// readyEndpoint is the command that waits until the Service has an endpoint with this index, ready.
func readyEndpoint(index int) []string {
	return []string{"wait", "endpointslices", "--namespace=example", "--selector=kubernetes.io/service-name=web",
		fmt.Sprintf("--for=jsonpath={.endpoints[%d].conditions.ready}=true", index), "--timeout=" + rolloutTimeout}
}

func (k kubectl) run(ctx context.Context, args ...string) error {
	k.c.say("$ kubectl %s", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig=" + k.kubeconfig}, args...)...)
	var lastError strings.Builder
	cmd.Stdout, cmd.Stderr = k.c.out, &lastError
	if err := cmd.Run(); err != nil {
		return errors.New("kubectl " + args[0] + ": " + strings.TrimSpace(lastError.String()+" ("+err.Error()+")"))
	}
	return nil
}

// explain says how to go on.
func (k kubectl) explain() {
	k.c.say("\nTo use it:")
	k.c.say("    export PATH=%s:$PATH", filepath.Dir(k.path))
	k.c.say("    export KUBECONFIG=%s", k.kubeconfig)
	k.c.say("    kubectl get pods --all-namespaces")
	k.c.say("\nLogs are in %s. `%s` stops it and keeps its data.", filepath.Join(k.c.dir, "logs"), k.c.hint("down"))
}
