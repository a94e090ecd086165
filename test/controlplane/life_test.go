// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// logWriter shows progress lines in the test's output.
type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

func start(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	o.Log = logWriter{t}
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// clientFor returns a client whose connections end with the test.
func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestLife(t *testing.T) {
	c := start(t, Options{})
	client := clientFor(t, c.RESTConfig())
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace("life"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	t.Run("RBAC decides about users", func(t *testing.T) {
		stranger := clientFor(t, c.ConfigFor("stranger"))
		_, err := stranger.CoreV1().Namespaces().Create(t.Context(), namespace("strange"), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("a user without a role created a namespace: error %v, want forbidden", err)
		}
		manager := clientFor(t, c.ConfigFor(ManagerUser))
		if _, err := manager.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("the manager cannot list namespaces: %v", err)
		}
	})
	t.Run("API server is stopped and started with its data", func(t *testing.T) {
		if err := c.StopComponent(ComponentAPIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "life", metav1.GetOptions{}); err == nil {
			t.Error("a stopped API server answered")
		}
		if err := c.StartComponent(t.Context(), ComponentAPIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "life", metav1.GetOptions{}); err != nil {
			t.Errorf("after the restart: %v", err)
		}
	})
	t.Run("API server is paused and resumed", func(t *testing.T) { testPause(t, c, client) })

	processes := pids(c)
	dir := c.Dir()
	if err := c.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	for name, id := range processes {
		if id.running() {
			t.Errorf("%s (process %d) runs after Stop", name, id.PID)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %s is there after Stop", dir)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func testPause(t *testing.T, c *ControlPlane, client kubernetes.Interface) {
	if err := c.PauseComponent(ComponentAPIServer); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.CoreV1().Namespaces().Get(ctx, "life", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused API server: error %v, want none before the deadline", err)
	}
	if err := c.ResumeComponent(ComponentAPIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "life", metav1.GetOptions{}); err != nil {
		t.Errorf("a resumed API server: %v", err)
	}
}

func pids(c *ControlPlane) map[Component]processID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[Component]processID{}
	for _, p := range c.components {
		if r := p.running(); r != nil {
			ids[p.name] = r.process
		}
	}
	return ids
}

func TestBusyPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port

	_, err = Start(t.Context(), Options{Dir: t.TempDir(), Ports: Ports{APIServer: port}})
	var busy *PortBusyError
	if !errors.As(err, &busy) {
		t.Fatalf("error %v, want a PortBusyError", err)
	}
	want := fmt.Sprintf("port %d of kube-apiserver is in use on 127.0.0.1", port)
	if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q, want one line that starts with %q", err, want)
	}
}

func TestComponentThatFailsToStart(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	var failed *ComponentError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a ComponentError", err)
	}
	if failed.Component != ComponentAPIServer || failed.LogPath != filepath.Join(dir, "logs", "kube-apiserver.log") {
		t.Errorf("the error is about %s with log %s", failed.Component, failed.LogPath)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	if !strings.HasPrefix(first, "kube-apiserver exited while starting: exit status 1") || !strings.Contains(first, failed.LogPath) {
		t.Errorf("first line %q, want the component, its exit and its log", first)
	}
	if !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %q does not show the end of the log", err)
	}
}

func TestComponentThatDies(t *testing.T) {
	c := start(t, Options{Dir: t.TempDir()})
	// Behind its owner's back, as the kernel's out-of-memory killer would.
	if err := pids(c)[ComponentEtcd].signal(9); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-t.Context().Done():
		t.Fatal("nobody noticed that etcd died")
	}
	var failed *ComponentError
	if err := c.Err(); !errors.As(err, &failed) || failed.Component != ComponentEtcd || !strings.Contains(err.Error(), "exited unasked: signal: killed") {
		t.Errorf("Err is %v, want a ComponentError about etcd", err)
	}
	if err := c.Stop(); !errors.As(err, &failed) {
		t.Errorf("Stop returned %v, want the death of etcd", err)
	}
}

func TestSchedulerAndFakeNodes(t *testing.T) {
	c := start(t, Options{Scheduler: true, Kwok: true, Nodes: 2, APIServerArgs: []string{"--disable-admission-plugins=ServiceAccount"}})
	client := clientFor(t, c.RESTConfig())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nothing"}}},
	}
	pods := client.CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a Ready pod", func() (bool, error) {
		got, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || got.Status.Phase != corev1.PodRunning {
			return false, err
		}
		return slices.ContainsFunc(got.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the pod", func() (bool, error) {
		_, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
	waitFor(t, "a lease of node-1", func() (bool, error) {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "node-1", metav1.GetOptions{})
		return err == nil && lease.Spec.RenewTime != nil, err
	})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

// An etcd that runs and never answers, and a caller that has had enough.
func TestComponentThatIsNeverReady(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho starting; exec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	options := Options{Dir: t.TempDir(), Binaries: Binaries{Etcd: silent, APIServer: "/bin/false"}, StartTimeout: 500 * time.Millisecond}

	_, err := Start(t.Context(), options)
	var failed *ComponentError
	if !errors.As(err, &failed) || failed.Component != ComponentEtcd || !strings.HasPrefix(failed.Reason, "was not ready within 500ms (last answer: ") {
		t.Errorf("error %v, want that etcd was not ready in time", err)
	}

	options.StartTimeout = time.Minute
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("patience is over"))
	defer cancel()
	if _, err := Start(ctx, options); err == nil || err.Error() != "waiting for etcd to be ready: patience is over" {
		t.Errorf("error %v, want the caller's reason", err)
	}
}
