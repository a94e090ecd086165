// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// command runs localup as main does, and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	t.Logf("localup %s: error %v\n%s", strings.Join(args, " "), err, out.String())
	return out.String(), err
}

func mustCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// freePorts returns the flags for six ports that are free, and stay so until the test ends.
func freePorts(t *testing.T) []string {
	t.Helper()
	flags := portFlags()
	ports, release, err := controlplane.ReservePorts(len(flags))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	var args []string
	for i, flag := range flags {
		args = append(args, fmt.Sprintf("--%s=%d", flag.name, ports[i]))
	}
	return args
}

func runningIn(t *testing.T, dir string) map[controlplane.Component]controlplane.Detached {
	t.Helper()
	running, err := (&cluster{dir: dir}).running()
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// TestLifeOfACluster is the whole life, with this checkout's controller manager.
func TestLifeOfACluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() { controlplane.StopDetached(dir, stopTimeout, os.Stderr) })
	on := "--data-dir=" + dir
	kubectl := func(args ...string) string {
		t.Helper()
		binaries, err := controlplane.FindBinaries(t.Context(), controlplane.Binaries{}, os.Stderr, "kubectl")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, binaries.Kubectl, append([]string{"--kubeconfig=" + filepath.Join(dir, "admin.conf")}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	out := mustCommand(t, append([]string{"up", on, "--nodes=2"}, freePorts(t)...)...)
	for _, want := range []string{`deployment "web" successfully rolled out`, "endpointslice.discovery.k8s.io/web-", "2 fake nodes are Ready", "The cluster is up", "export KUBECONFIG="} {
		if !strings.Contains(out, want) {
			t.Errorf("up did not print %q", want)
		}
	}
	first := runningIn(t, dir)
	if len(first) != components {
		t.Fatalf("%d programs run, want %d: %v", len(first), components, first)
	}
	if got := kubectl("get", "nodes", "--output=name"); got != "node/node-0\nnode/node-1\n" {
		t.Errorf("nodes %q", got)
	}

	if out := mustCommand(t, "up", on); !strings.Contains(out, "The cluster runs already") {
		t.Error("a second up did not say that the cluster runs")
	}
	for name, program := range runningIn(t, dir) {
		if program.PID != first[name].PID {
			t.Errorf("a second up started %s anew", name)
		}
	}

	t.Run("what has crashed comes back", func(t *testing.T) {
		api := first[controlplane.ComponentAPIServer]
		if err := syscall.Kill(api.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the API server's end", func() bool { return len(runningIn(t, dir)) < components })
		if out := mustCommand(t, "status", on); !strings.Contains(out, "kube-apiserver           has ended unasked") {
			t.Error("status does not show the crash")
		}
		mustCommand(t, "up", on)
		if got := runningIn(t, dir); len(got) != components || got[controlplane.ComponentEtcd].PID != first[controlplane.ComponentEtcd].PID {
			t.Errorf("after up: %v", got)
		}
	})

	kubectl("scale", "--namespace=example", "deployment/web", "--replicas=4")
	kubectl("rollout", "status", "--namespace=example", "deployment/web", "--timeout=50s")

	t.Run("down stops it and keeps its data", func(t *testing.T) {
		mustCommand(t, "down", on)
		if got := runningIn(t, dir); len(got) != 0 {
			t.Fatalf("after down: %v", got)
		}
		if out := mustCommand(t, "down", on); !strings.Contains(out, "Nothing runs") {
			t.Error("a second down did not say that nothing runs")
		}
		mustCommand(t, "up", on)
		if got := kubectl("get", "--namespace=example", "deployment/web", "--output=jsonpath={.spec.replicas}"); got != "4" {
			t.Errorf("the example has %s replicas, want the user's 4", got)
		}
	})
	t.Run("purge removes it", func(t *testing.T) {
		mustCommand(t, "down", on, "--purge")
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the folder is there after down --purge (error %v)", err)
		}
	})
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not come about", what)
		case <-ticker.C:
		}
	}
}

func TestBusyPortIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	args := append([]string{"up", "--data-dir=" + dir, "--kcm=/bin/true"}, freePorts(t)...)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_, err = command(t, append(args, "--scheduler-port="+port)...)
	want := "port " + port + " of kube-scheduler is in use on 127.0.0.1"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--ports-from") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that starts with %q and names the flag", err, want)
	}
	if got := runningIn(t, dir); len(got) != 0 {
		t.Errorf("left running: %v", got)
	}
}

func TestManagerThatCrashesIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { controlplane.StopDetached(dir, stopTimeout, os.Stderr) })
	script := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho 'no such flag' >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := command(t, append([]string{"up", "--data-dir=" + dir, "--kcm=" + script, "--nodes=0"}, freePorts(t)...)...)
	log := filepath.Join(dir, "logs", "kube-controller-manager.log")
	want := "kube-controller-manager exited while starting: exit status 1; its log is " + log + ", which ends:\n    no such flag"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPurgeSparesAFolderThatIsNoCluster(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "etcd")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "down", "--purge", "--data-dir="+dir); err == nil || !strings.Contains(err.Error(), "holds no cluster") {
		t.Errorf("error %v, want one that says it is no cluster", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a stranger's file is gone: %v", err)
	}
}

func TestPurgeSparesStrangersFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{markerFile, "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustCommand(t, "down", "--purge", "--data-dir="+dir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes.txt" {
		t.Errorf("left %v (error %v), want notes.txt", entries, err)
	}
}

func TestOneCommandAtATime(t *testing.T) {
	dir := t.TempDir()
	err := withCluster(dir, os.Stderr, func(*cluster) error {
		_, err := command(t, "down", "--data-dir="+dir)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "another command works on the cluster in "+dir) {
		t.Errorf("error %v, want one that names the folder", err)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"up", "x"}, {"down", "x"}, {"sideways"}, {"up", "--no-such-flag"}} {
		if _, err := command(t, args...); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("localup %v: error %v, want one line", args, err)
		}
	}
}
