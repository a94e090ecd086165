// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// ManagerOptions say which manager to start, and how.
type ManagerOptions struct {
	// Path of the binary.
	Path string
	// Args replace the control plane's kubeadm-style flags that set the same, and follow the rest.
	Args []string
	// MayEnd says that its end is no failure: a manager that loses its lease ends.
	MayEnd bool
	// Via, if set, is the proxy that stands between the manager and the API server.
	Via *faultproxy.Proxy
}

// Manager is a controller manager's process. Which one leads is Leader's to say.
type Manager struct {
	// Pid of the process.
	Pid int

	cluster *Cluster
	name    controlplane.Component
	port    int
}

// StartManager starts a manager and returns when it serves /healthz, which says nothing of leadership.
func (c *Cluster) StartManager(ctx context.Context, o ManagerOptions) (*Manager, error) {
	c.mu.Lock()
	c.managers++
	name := controlplane.Component(fmt.Sprintf("%s-%d", controlplane.ComponentManager, c.managers))
	c.mu.Unlock()
	port, err := c.FreePort()
	if err != nil {
		return nil, err
	}
	args := o.Args
	if o.Via != nil {
		path := filepath.Join(c.dir, string(name)+".kubeconfig")
		if err := writeKubeconfig(path, o.Via.Config(c.ConfigFor(controlplane.ManagerUser))); err != nil {
			return nil, err
		}
		args = append([]string{"--kubeconfig=" + path}, args...)
	}
	if err := c.ControlPlane.StartManager(ctx, controlplane.Manager{Path: o.Path, Name: name, Port: port, Args: args, MayEnd: o.MayEnd}); err != nil {
		return nil, err
	}
	pid, err := c.ControlPlane.Pid(name)
	if err != nil {
		return nil, err
	}
	return &Manager{Pid: pid, cluster: c, name: name, port: port}, nil
}

// Proxy puts a fault proxy in front of the API server. The caller closes it. The tag is added to user agents, see
// faultproxy.Options.
func (c *Cluster) Proxy(tag string) (*faultproxy.Proxy, error) {
	return faultproxy.Start(faultproxy.Options{
		Upstream: c.Config(),
		ConfigFor: func(user string, groups ...string) (*rest.Config, error) {
			return c.ConfigFor(user, groups...), nil
		},
		Tag: tag,
	})
}

func writeKubeconfig(path string, cfg *rest.Config) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("writing a manager's kubeconfig: %w", err)
	}
	return nil
}

// Terminate sends SIGTERM and returns when the process has ended.
func (m *Manager) Terminate() error { return m.cluster.StopComponent(m.name) }

// Kill sends SIGKILL and returns when the process has ended.
func (m *Manager) Kill() error { return m.cluster.KillComponent(m.name) }

// Restart starts a manager again that has ended, with the same flags.
func (m *Manager) Restart(ctx context.Context) error {
	if err := m.cluster.StartComponent(ctx, m.name); err != nil {
		return err
	}
	pid, err := m.cluster.ControlPlane.Pid(m.name)
	m.Pid = pid
	return err
}

// LogPath is where the manager's output is.
func (m *Manager) LogPath() string { return m.cluster.LogPath(m.name) }

// Get asks the manager for a path as the administrator.
func (m *Manager) Get(ctx context.Context, path string) (string, error) {
	tlsConfig, err := rest.TLSConfigFor(m.cluster.Config())
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", m.name, err)
	}
	tlsConfig.InsecureSkipVerify = true // it made its certificate itself
	return get(ctx, tlsConfig, "https://127.0.0.1:"+strconv.Itoa(m.port)+path)
}

func get(ctx context.Context, tlsConfig *tls.Config, url string) (string, error) {
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), nil
}

// lease is the managers' lock in kube-system.
const lease = "kube-controller-manager"

// Leader returns the holder of the managers' lease, "" when nobody holds it.
func (c *Cluster) Leader(ctx context.Context) (string, error) {
	l, err := c.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || l.Spec.HolderIdentity == nil {
		return "", err
	}
	return *l.Spec.HolderIdentity, nil
}

// WaitForLeader waits until somebody holds the lease who is none of those given.
func (c *Cluster) WaitForLeader(ctx context.Context, timeout time.Duration, not ...string) (string, error) {
	leader := ""
	err := WaitFor(ctx, "a leader", timeout, func(ctx context.Context) (bool, error) {
		holder, err := c.Leader(ctx)
		if err != nil || holder == "" {
			return false, err
		}
		for _, n := range not {
			if holder == n {
				return false, nil
			}
		}
		leader = holder
		return true, nil
	})
	return leader, err
}

// DropLease takes the lease away, so that the next manager need not wait for a killed one's to run out.
func (c *Cluster) DropLease(ctx context.Context) error {
	err := c.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, lease, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// QuickElection are flags with which a lease passes on within seconds.
func QuickElection() []string {
	return []string{"--leader-elect-retry-period=500ms", "--leader-elect-renew-deadline=4s", "--leader-elect-lease-duration=6s"}
}

// Log returns all that the manager has printed.
func (m *Manager) Log() string {
	data, err := os.ReadFile(m.LogPath())
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return strings.TrimSpace(string(data))
}
