// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// ManagerLease is the lock's name in kube-system, unless flags say otherwise.
	ManagerLease = "kube-controller-manager"
	// startTimeout is how long a manager has to serve /healthz.
	startTimeout = 30 * time.Second
	// exitTimeout is how long a manager has to end at the end of a test, before it is killed.
	exitTimeout = 20 * time.Second
)

// ManagerOptions say how to start a manager's process.
type ManagerOptions struct {
	// Name is the process's argv[0], and with it the beginning of its user
	// agents: the audit log tells managers apart by it. Default "kube-controller-manager".
	Name string
	// Binary is another manager's program. Default: ours, built from this checkout.
	Binary string
	// Args follow the control plane's kubeadm-style ManagerArgs, and win, but
	// lists add up. A free --secure-port follows them.
	Args []string
	// BareArgs leaves ManagerArgs out: Args is the whole command line but for --secure-port.
	BareArgs bool
	// AnyHealth returns at once instead of waiting until /healthz is OK.
	AnyHealth bool
}

// Manager is a manager that runs as a process of its own.
type Manager struct {
	name    string
	port    int
	cmd     *exec.Cmd
	logPath string
	exited  chan struct{} // closed when the process has ended
}

// StartManager starts our manager, or opts.Binary, and returns when it is
// healthy. It is stopped at the end of the test.
func (e *Env) StartManager(t testing.TB, opts ManagerOptions) *Manager {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "kube-controller-manager"
	}
	if opts.Binary == "" {
		var err error
		if opts.Binary, err = e.suite.manager(); err != nil {
			t.Fatal(err)
		}
	}
	port, err := e.ControlPlane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	if !opts.BareArgs {
		args = e.ControlPlane.ManagerArgs()
	}
	args = append(args, opts.Args...)
	m := e.startProcess(t, opts.Binary, opts.Name, append(args, "--secure-port="+strconv.Itoa(port)))
	m.port = port
	if !opts.AnyHealth {
		m.WaitHealthy(t)
	}
	return m
}

// startProcess starts a program whose output goes to a log of its own.
func (e *Env) startProcess(t testing.TB, binary, name string, args []string) *Manager {
	t.Helper()
	dir := filepath.Join(e.suite.dir, "managers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &Manager{name: name, logPath: filepath.Join(dir, uniqueName(t)+"-"+name+".log"), exited: make(chan struct{})}
	log, err := os.Create(m.logPath)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd = exec.Command(binary, args...)
	m.cmd.Args[0] = name
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = dieWithParent()
	if err := m.cmd.Start(); err != nil {
		_ = log.Close()
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		defer close(m.exited)
		_ = m.cmd.Wait() // ProcessState has the exit code
		_ = log.Close()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			m.keepPages(t, e.Config())
		}
		m.end(t)
		if t.Failed() {
			t.Logf("end of %s's log:\n%s", name, m.logTail(40))
		}
	})
	return m
}

// keepPages writes beside the log what a manager is doing when its test fails.
func (m *Manager) keepPages(t testing.TB, admin *rest.Config) {
	ctx, cancel := cleanupContext(t)
	defer cancel()
	for name, path := range map[string]string{
		"goroutines":  "/debug/pprof/goroutine?debug=2",
		"controllers": "/debug/controllers",
		"metrics":     "/metrics",
		"healthz":     "/healthz?verbose",
	} {
		if _, body, err := m.Get(ctx, admin, path); err == nil && m.port != 0 {
			_ = os.WriteFile(m.logPath+"."+name, []byte(body), 0o600) // the log itself is what counts
		}
	}
}

// end stops the process for good and takes its lock away, so that the next test need not wait for it.
func (m *Manager) end(t testing.TB) {
	if m.Running() {
		_ = m.cmd.Process.Signal(os.Interrupt) // it may end by itself meanwhile
		select {
		case <-m.exited:
		case <-time.After(exitTimeout):
			t.Errorf("%s did not end within %v of SIGINT", m.name, exitTimeout)
			_ = m.cmd.Process.Kill()
			<-m.exited
		}
	}
}

// ReleaseLease deletes the managers' lock at the end of the test: a killed
// manager's would keep the next test waiting. Call it before StartManager, so
// that it runs after the managers have ended.
func (e *Env) ReleaseLease(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		err := e.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, ManagerLease, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting the managers' lease: %v", err)
		}
	})
}

// RunCommand runs our manager's program with just these arguments to its end,
// and returns its exit code and output.
func (e *Env) RunCommand(t testing.TB, timeout time.Duration, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	binary, err := e.suite.manager()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var out, errOut strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.SysProcAttr = dieWithParent()
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v; stderr:\n%s", args, timeout, errOut.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %s: %v", binary, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// Name is the manager's argv[0].
func (m *Manager) Name() string { return m.name }

// URL is where the manager serves.
func (m *Manager) URL() string { return "https://127.0.0.1:" + strconv.Itoa(m.port) }

// Pid is the process's id.
func (m *Manager) Pid() int { return m.cmd.Process.Pid }

// Running tells whether the process has not ended yet.
func (m *Manager) Running() bool {
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process.
func (m *Manager) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("sending %v to %s: %v", signal, m.name, err)
	}
}

// Wait waits for the process's end and returns its exit code: -1 if a signal ended it.
func (m *Manager) Wait(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-m.exited:
		return m.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("%s did not end within %v; end of its log:\n%s", m.name, timeout, m.logTail(40))
		return 0
	}
}

// Get asks the manager for a path, as the user of cfg or, if that is nil,
// without credentials. The manager's certificate is not verified: it made it itself.
func (m *Manager) Get(ctx context.Context, cfg *rest.Config, path string) (code int, body string, err error) {
	return m.Do(ctx, cfg, http.MethodGet, path, "", nil)
}

// Do is Get with any method, body and headers.
func (m *Manager) Do(ctx context.Context, cfg *rest.Config, method, path, body string, header http.Header) (code int, answer string, err error) {
	tlsConfig := &tls.Config{}
	if cfg != nil {
		if tlsConfig, err = rest.TLSConfigFor(cfg); err != nil {
			return 0, "", fmt.Errorf("asking %s: %w", m.name, err)
		}
	}
	tlsConfig.InsecureSkipVerify = true
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, method, m.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", m.name, err)
	}
	for key, values := range header {
		request.Header[key] = values
	}
	if cfg != nil && cfg.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+cfg.BearerToken)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", m.name, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s for %s: %w", m.name, path, err)
	}
	return response.StatusCode, string(data), nil
}

// WaitHealthy waits until /healthz is OK. It fails at once when the process ends.
func (m *Manager) WaitHealthy(t testing.TB) {
	t.Helper()
	err := poll(t.Context(), startTimeout, func(ctx context.Context) (bool, error) {
		if !m.Running() {
			t.Fatalf("%s ended with code %d; end of its log:\n%s", m.name, m.cmd.ProcessState.ExitCode(), m.logTail(40))
		}
		code, body, err := m.Get(ctx, nil, "/healthz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("/healthz answers %d: %s", code, body)
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("%s is not healthy: %v; end of its log:\n%s", m.name, err, m.logTail(40))
	}
}

// Log is all that the manager has printed so far.
func (m *Manager) Log() string {
	data, err := os.ReadFile(m.logPath)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(data)
}

func (m *Manager) logTail(lines int) string {
	all := strings.Split(strings.TrimSpace(m.Log()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Leader returns the holder of the managers' lock, "" when nobody holds it.
func (e *Env) Leader(ctx context.Context) (string, error) {
	lease, err := e.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, ManagerLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}
