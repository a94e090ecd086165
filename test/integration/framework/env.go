// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

const (
	// adminAgent is the user agent of Env.Client and of the framework's own requests.
	adminAgent = "integration-test"
	// cleanupTimeout bounds each cleanup of a test.
	cleanupTimeout = 60 * time.Second
)

// Env is one test's view of the package's control plane.
type Env struct {
	// ControlPlane is shared by the package's tests: one that stops a component must start it again.
	ControlPlane *controlplane.ControlPlane
	// Client is the administrator's, without a rate limit.
	Client kubernetes.Interface

	suite *suite

	mu sync.Mutex
	// mu guards the following field.
	namespaces []string
}

// New returns the Env of a test. The package's TestMain must call Main.
func New(t testing.TB) *Env {
	t.Helper()
	s := current.Load()
	if s == nil {
		t.Fatal("no control plane: the package's TestMain must call framework.Main")
	}
	if err := s.cp.Err(); err != nil {
		t.Fatalf("the control plane broke in an earlier test: %v", err)
	}
	return &Env{ControlPlane: s.cp, Client: s.admin, suite: s}
}

// Config returns the administrator's config. The caller may change it.
func (e *Env) Config() *rest.Config { return e.ControlPlane.RESTConfig() }

// ConfigFor returns a config of a user with the given groups, authenticated by
// certificate. system:authenticated is a group of every user.
func (e *Env) ConfigFor(user string, groups ...string) *rest.Config {
	return e.ControlPlane.ConfigFor(user, groups...)
}

// ClientFor returns a client of a user with the given groups, without a rate limit.
func (e *Env) ClientFor(t testing.TB, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	return newClient(t, e.ConfigFor(user, groups...))
}

// ServiceAccountConfig returns a config of a service account in kube-system,
// with the groups that service accounts have, so that RBAC decides as it does
// for the real controller.
func (e *Env) ServiceAccountConfig(name string) *rest.Config {
	cfg := e.ConfigFor("system:serviceaccount:kube-system:"+name, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	cfg.UserAgent = name
	return cfg
}

func newClient(t testing.TB, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}

// Namespace creates a namespace "<prefix>-xxxxx" with a default service
// account, so that pods are admitted, and deletes it with everything in it at
// the end of the test.
func (e *Env) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	name := e.BareNamespace(t, prefix)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := e.Client.CoreV1().ServiceAccounts(name).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) { // a running manager may be quicker
		t.Fatalf("creating the default service account of namespace %s: %v", name, err)
	}
	return name
}

// BareNamespace is Namespace without the service account.
func (e *Env) BareNamespace(t testing.TB, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	ns, err := e.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace %s-…: %v", prefix, err)
	}
	e.mu.Lock()
	e.namespaces = append(e.namespaces, ns.Name)
	e.mu.Unlock()
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := e.suite.purge.namespace(ctx, ns.Name); err != nil {
			t.Errorf("deleting namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// Owns tells whether the namespace was created by this Env.
func (e *Env) Owns(namespace string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.namespaces, namespace)
}

func (e *Env) ownNamespaces() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.namespaces)
}

// cleanupContext is for cleanups, where the test's own context is done already.
func cleanupContext(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
}

// Kubelet plays nodes until the end of the test, and returns when it knows all
// pods. Nodes: "<name>-0", "<name>-1", … where opts names none; they are
// deleted at the end. Binds: unscheduled pods of the Env's own namespaces where
// opts says nothing else.
func (e *Env) Kubelet(t testing.TB, nodes int, opts fakekubelet.Options) *fakekubelet.Kubelet {
	t.Helper()
	for i := range nodes {
		opts.Nodes = append(opts.Nodes, fmt.Sprintf("%s-%d", uniqueName(t), i))
	}
	if opts.Binds == nil {
		opts.Binds = func(pod *corev1.Pod) bool { return e.Owns(pod.Namespace) }
	}
	kubelet, err := fakekubelet.New(e.Config(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- kubelet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := cleanupContext(t)
		defer cancel()
		for _, node := range opts.Nodes {
			if err := e.suite.purge.node(ctx, node); err != nil {
				t.Errorf("deleting node %s: %v", node, err)
			}
		}
	})
	e.WaitFor(t, "the fake kubelet to know all pods", 30*time.Second, func(context.Context) (bool, error) {
		return kubelet.HasSynced(), nil
	})
	return kubelet
}

// Proxy puts a fault proxy in front of the API server until the end of the
// test. tag, if not empty, is added to the user agents that pass through it.
func (e *Env) Proxy(t testing.TB, tag string) *faultproxy.Proxy {
	t.Helper()
	proxy, err := faultproxy.Start(faultproxy.Options{
		Upstream: e.Config(),
		ConfigFor: func(user string, groups ...string) (*rest.Config, error) {
			return e.ConfigFor(user, groups...), nil
		},
		Tag: tag,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// AuditMark returns the present end of the audit log, for AuditSince.
func (e *Env) AuditMark(t testing.TB) audit.Mark {
	t.Helper()
	mark, err := e.suite.audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// AuditSince returns every request that was answered between the mark and now.
func (e *Env) AuditSince(t testing.TB, mark audit.Mark) audit.Events {
	t.Helper()
	events, err := e.suite.audit.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	return events
}
