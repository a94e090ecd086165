// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users of the control plane's own programs, as kubeadm names them.
const (
	AdminUser     = "kubernetes-admin"
	MastersGroup  = "system:masters"
	ManagerUser   = "system:kube-controller-manager"
	schedulerUser = "system:kube-scheduler"
)

// RESTConfig returns a configuration of the administrator (group system:masters), without a rate limit.
func (c *ControlPlane) RESTConfig() *rest.Config {
	return c.ConfigFor(AdminUser, MastersGroup)
}

// ConfigFor returns a configuration with a client certificate of the user, without a client-side rate limit. RBAC
// decides what the user may do.
func (c *ControlPlane) ConfigFor(user string, groups ...string) *rest.Config {
	id := c.identity(user, groups)
	return &rest.Config{
		Host: c.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.pki.ca.certPEM,
			CertData: id.cert,
			KeyData:  id.key,
		},
		QPS: -1,
	}
}

// KubeconfigFor writes a kubeconfig of the user, with everything in it, and returns its path under Dir/kubeconfig. The
// same user and groups give the same path.
func (c *ControlPlane) KubeconfigFor(user string, groups ...string) (string, error) {
	id := c.identity(user, groups)
	config := clientcmdapi.NewConfig()
	config.Clusters["kcm"] = &clientcmdapi.Cluster{Server: c.URL(), CertificateAuthorityData: c.pki.ca.certPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: id.cert, ClientKeyData: id.key}
	config.Contexts["kcm"] = &clientcmdapi.Context{Cluster: "kcm", AuthInfo: user}
	config.CurrentContext = "kcm"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("encoding the kubeconfig of %s: %w", user, err)
	}

	dir := filepath.Join(c.options.Dir, "kubeconfig")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	name := strings.NewReplacer(":", "-", "/", "-").Replace(strings.Join(append([]string{user}, groups...), "_"))
	path := filepath.Join(dir, name+".conf")
	return path, writeFile(path, data, 0o600)
}

// identity is a user's client certificate.
type identity struct{ cert, key []byte }

// identity returns the user's certificate, one per process and user.
func (c *ControlPlane) identity(user string, groups []string) identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.Join(append([]string{user}, groups...), "\x00")
	if id, known := c.identities[name]; known {
		return id
	}
	cert, key, err := c.pki.ca.issue(clientTemplate(user, groups...))
	if err != nil {
		// Signing with a key in memory fails only without a source of randomness: nothing would work then.
		panic(err)
	}
	id := identity{cert: cert, key: key}
	c.identities[name] = id
	return id
}
