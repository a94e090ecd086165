// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
)

// startTimeout is how long a manager may take until it is healthy.
const startTimeout = 30 * time.Second

// TearDownFunc stops the manager and waits until it has returned. Calling it again does nothing.
type TearDownFunc func()

// TestServer is a manager that runs in the test's process.
type TestServer struct {
	// Options are the parsed flags.
	Options *options.KubeControllerManagerOptions
	// Config is what the manager runs on.
	Config *config.Config
	// TearDownFn stops the manager and removes TmpDir.
	TearDownFn TearDownFunc
	// TmpDir holds the serving certificate, unless flags put it elsewhere.
	TmpDir string
}

// StartTestServer starts a manager with the given flags and returns once it is healthy. It serves
// on a free port of 127.0.0.1 unless flags say otherwise. The manager runs until ctx is done or
// TearDownFn is called; on error nothing is left running.
func StartTestServer(t *testing.T, ctx context.Context, customFlags []string) (result TestServer, err error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kube-controller-manager")
	if err != nil {
		return TestServer{}, fmt.Errorf("creating a folder for the manager's certificate: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	running := false
	tearDown := sync.OnceFunc(func() {
		cancel()
		if running {
			if err := <-ended; err != nil {
				t.Logf("The manager ended with: %v", err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("Could not remove the manager's folder: %v", err)
		}
	})
	defer func() {
		if err != nil {
			tearDown()
		}
	}()

	s, err := parse(customFlags, dir)
	if err != nil {
		return TestServer{}, err
	}
	// The event broadcaster must survive ctx: the manager shuts it down at its end.
	c, err := s.Config(context.WithoutCancel(ctx), app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return TestServer{}, fmt.Errorf("failed to create config from options: %w", err)
	}
	failed := make(chan error, 1)
	running = true
	go func() {
		err := app.Run(ctx, c.Complete())
		if err != nil {
			failed <- err
		}
		ended <- err
	}()
	if err := waitUntilHealthy(ctx, c, failed); err != nil {
		return TestServer{}, err
	}
	return TestServer{Options: s, Config: c, TearDownFn: TearDownFunc(tearDown), TmpDir: dir}, nil
}

// StartTestServerOrDie is StartTestServer, but ends the test when the manager does not start.
func StartTestServerOrDie(t *testing.T, ctx context.Context, flags []string) *TestServer {
	t.Helper()
	result, err := StartTestServer(t, ctx, flags)
	if err != nil {
		t.Fatalf("failed to launch server: %v", err)
	}
	return &result
}

// parse turns flags into options whose listener is open already, so that no other test can take
// the port between now and then.
func parse(flags []string, certDir string) (*options.KubeControllerManagerOptions, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	named := s.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	for _, fs := range named.FlagSets {
		all.AddFlagSet(fs)
	}
	s.SecureServing.ServerCert.CertDirectory = certDir
	if err := all.Parse(flags); err != nil {
		return nil, fmt.Errorf("parsing the manager's flags: %w", err)
	}
	if err := s.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	if !all.Changed("secure-port") {
		if s.SecureServing.Listener, s.SecureServing.BindPort, err = listenOnFreePort(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func listenOnFreePort() (net.Listener, int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, fmt.Errorf("listening on a free port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, 0, errors.Join(fmt.Errorf("%s is not a TCP address", listener.Addr()), listener.Close())
	}
	return listener, address.Port, nil
}

// waitUntilHealthy polls /healthz. A manager without a secure port counts as healthy at once.
func waitUntilHealthy(ctx context.Context, c *config.Config, failed <-chan error) error {
	if c.SecureServing == nil {
		return nil
	}
	certificate, _ := c.SecureServing.Cert.CurrentCertKeyContent()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}},
	}
	defer client.CloseIdleConnections()
	_, port, err := c.SecureServing.HostPort()
	if err != nil {
		return fmt.Errorf("finding the manager's port: %w", err)
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/healthz", port)

	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-failed:
			return false, err
		default:
		}
		last = get(ctx, client, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("failed to wait for /healthz to return ok: %w", errors.Join(err, last))
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
