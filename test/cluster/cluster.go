// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// UserAgent is the user agent of Cluster.Client: nothing that a manager does carries it.
const UserAgent = "kcm-suite"

// pollInterval is how often conditions are looked at, and so the error of a measured time.
const pollInterval = 10 * time.Millisecond

// Auditing says what the API server logs.
type Auditing int

const (
	// AuditNone logs nothing.
	AuditNone Auditing = iota
	// AuditManagers logs one line for each request of a manager, without bodies: the cheap way to count.
	AuditManagers
	// AuditExact is the exact log of package audit, with the bodies of writes. Cluster.Audit reads it.
	AuditExact
)

// Options say what Start starts.
type Options struct {
	// Audit is what the API server logs.
	Audit Auditing
	// APIServerArgs are more flags of kube-apiserver.
	APIServerArgs []string
	// KeepDir leaves the folder with all logs behind.
	KeepDir bool
	// Log receives a line per step of the control plane. Nil: none.
	Log io.Writer
}

// Cluster is a running control plane and what runs on it. Start makes one.
type Cluster struct {
	*controlplane.ControlPlane
	// Client is the administrator's, without a rate limit.
	Client kubernetes.Interface
	// Audit is the exact audit log; nil unless Options.Audit is AuditExact.
	Audit *audit.Log

	keep      bool
	dir       string
	auditPath string

	mu sync.Mutex // guards the following
	// managers counts those that were started: each is a component with a name of its own.
	managers int
	kubelets []func() error
}

// Start starts etcd and kube-apiserver in a folder of their own.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	dir, err := os.MkdirTemp("", "kcm-cluster-")
	if err != nil {
		return nil, fmt.Errorf("creating the cluster's folder: %w", err)
	}
	c := &Cluster{keep: o.KeepDir, dir: dir}
	args, err := c.auditArgs(o.Audit)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: dir, APIServerArgs: append(args, o.APIServerArgs...), Log: o.Log,
	})
	if err != nil {
		return nil, err // names a log in the folder, which therefore stays
	}
	config := c.Config()
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, errors.Join(fmt.Errorf("administrator's client: %w", err), c.Stop())
	}
	if o.Audit == AuditExact {
		c.Audit = audit.NewLog(c.auditPath, func(ctx context.Context, userAgent string) error {
			return c.Client.CoreV1().RESTClient().Get().Resource("namespaces").Name(metav1.NamespaceDefault).
				SetHeader("User-Agent", userAgent).Do(ctx).Error()
		})
	}
	return c, nil
}

// Config is the administrator's config, quiet about deprecated kinds and without a rate limit.
func (c *Cluster) Config() *rest.Config {
	config := c.RESTConfig()
	config.UserAgent = UserAgent
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// Stop ends kubelets, managers and the control plane, and removes the folder.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	kubelets := c.kubelets
	c.kubelets = nil
	c.mu.Unlock()
	var errs []error
	for _, stop := range kubelets {
		errs = append(errs, stop())
	}
	errs = append(errs, c.ControlPlane.Stop())
	if err := errors.Join(errs...); err != nil || c.keep {
		return err
	}
	return os.RemoveAll(c.dir)
}

// LogsDir is where the components' logs are.
func (c *Cluster) LogsDir() string { return filepath.Join(c.dir, "logs") }

// Kubelet plays nodes until Stop; it returns when all nodes exist and all pods are known. Binds nil: every pod.
func (c *Cluster) Kubelet(ctx context.Context, opts fakekubelet.Options) (*fakekubelet.Kubelet, error) {
	if opts.Binds == nil {
		opts.Binds = func(*corev1.Pod) bool { return true }
	}
	kubelet, err := fakekubelet.New(c.Config(), opts)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- kubelet.Run(running) }()
	c.mu.Lock()
	c.kubelets = append(c.kubelets, func() error {
		cancel()
		return <-done
	})
	c.mu.Unlock()
	return kubelet, WaitFor(ctx, "the fake kubelet to know all pods", 2*time.Minute, func(context.Context) (bool, error) {
		return kubelet.HasSynced(), nil
	})
}

// Namespace creates a namespace with a default service account, so that pods are admitted at once.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.Client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the default service account of namespace %s: %w", name, err)
	}
	return nil
}

// WaitFor waits until the condition holds. An error of the condition means not yet; the last one is told when the time
// is up.
func WaitFor(ctx context.Context, what string, timeout time.Duration, condition func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %v", timeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		done, err := condition(ctx)
		if done {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx)), last)
		}
	}
}
