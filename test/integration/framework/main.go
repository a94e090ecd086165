// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

// suite is what the tests of one package share.
type suite struct {
	dir   string // the control plane's folder, and the logs of managers
	cp    *controlplane.ControlPlane
	admin kubernetes.Interface
	audit *audit.Log
	purge *purger
	// manager and upstream give the path of our binary and of upstream's, built at the first call.
	manager, upstream func() (string, error)
}

// current is the suite of this test process. TestMain and the tests have no
// other way to hand it over; nobody else may use it.
var current atomic.Pointer[suite]

// Option changes the control plane of a test package.
type Option func(*controlplane.Options)

// WithAPIServerArgs appends flags of kube-apiserver.
func WithAPIServerArgs(args ...string) Option {
	return func(o *controlplane.Options) { o.APIServerArgs = append(o.APIServerArgs, args...) }
}

// WithFeatureGates sets feature gates of kube-apiserver.
func WithFeatureGates(gates map[string]bool) Option {
	return func(o *controlplane.Options) { o.FeatureGates = gates }
}

// WithScheduler also runs kube-scheduler. Without it fake kubelets bind pods.
func WithScheduler() Option {
	return func(o *controlplane.Options) { o.Scheduler = true }
}

// Main starts the control plane, runs the tests of the package, stops it,
// checks that no goroutine is left and exits the process.
//
//	func TestMain(m *testing.M) { framework.Main(m) }
func Main(m *testing.M, opts ...Option) {
	os.Exit(run(m, opts))
}

func run(m *testing.M, opts []Option) (code int) {
	s, err := start(context.Background(), opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: integration tests need a control plane: %v\n", err)
		return 1
	}
	current.Store(s)
	code = m.Run()
	current.Store(nil)
	if code != 0 {
		s.keepLogs()
	}
	if err := s.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: stopping the control plane: %v\n", err)
		code = 1
	}
	klog.StopFlushDaemon()
	if err := goleak.Find(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: goroutines are left after all tests: %v\n", err)
		code = 1
	}
	return code
}

// start brings up what the package's tests share. Reading it takes the ~10s of a control plane's start.
func start(ctx context.Context, opts []Option) (*suite, error) {
	binaries, err := binariesFromEnv(os.Getenv(binDirVariable))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kcm-integration-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder: %w", err)
	}
	s := &suite{
		dir:      dir,
		manager:  sync.OnceValues(func() (string, error) { return buildManager(ctx) }),
		upstream: sync.OnceValues(func() (string, error) { return findUpstream(ctx) }),
	}
	auditArgs, auditPath, err := audit.ServerArgs(dir)
	if err != nil {
		return nil, err
	}
	options := controlplane.Options{Dir: dir, Binaries: binaries, APIServerArgs: auditArgs, Log: os.Stderr}
	for _, o := range opts {
		o(&options)
	}
	if s.cp, err = controlplane.Start(ctx, options); err != nil {
		return nil, err
	}
	if err := s.connect(ctx, auditPath); err != nil {
		_ = s.stop() // the first error is the one to tell
		return nil, err
	}
	return s, nil
}

// connect makes the clients that all tests share.
func (s *suite) connect(ctx context.Context, auditPath string) (err error) {
	cfg := rest.CopyConfig(s.cp.RESTConfig())
	cfg.UserAgent = adminAgent
	cfg.WarningHandler = rest.NoWarnings{} // cleaning up and dumping touch deprecated kinds, too
	if s.admin, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("administrator's client: %w", err)
	}
	if s.purge, err = newPurger(cfg, s.admin); err != nil {
		return err
	}
	s.audit = audit.NewLog(auditPath, func(ctx context.Context, userAgent string) error {
		return s.admin.CoreV1().RESTClient().Get().Resource("namespaces").Name(metav1.NamespaceDefault).
			SetHeader("User-Agent", userAgent).Do(ctx).Error()
	})
	_, err = s.audit.Mark(ctx)
	return err
}

func (s *suite) stop() error {
	err := s.cp.Stop()
	if err == nil {
		err = os.RemoveAll(s.dir)
	}
	return err
}

// keepLogs copies the logs of a failed run to where they outlive it.
func (s *suite) keepLogs() {
	keep := os.Getenv("KCM_TEST_KEEP")
	if keep == "" {
		fmt.Fprintln(os.Stderr, "the control plane's logs go with it; set KCM_TEST_KEEP to a folder to keep those of failed runs")
		return
	}
	target := filepath.Join(keep, time.Now().Format("20060102-150405.000"))
	for _, part := range []string{"logs", "managers"} {
		source := filepath.Join(s.dir, part)
		if _, err := os.Stat(source); err != nil {
			continue
		}
		if err := os.CopyFS(filepath.Join(target, part), os.DirFS(source)); err != nil {
			fmt.Fprintf(os.Stderr, "keeping the logs in %s: %v\n", target, err)
			return
		}
	}
	fmt.Fprintf(os.Stderr, "the logs are kept in %s\n", target)
}
