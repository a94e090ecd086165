// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const loopback = "127.0.0.1"

func (c *ControlPlane) etcd() *component {
	client := httpsURL(c.ports.Etcd)
	peer := httpsURL(c.ports.EtcdPeer)
	args := []string{
		"--name=kcm",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=kcm=" + peer,
		"--client-cert-auth",
		"--cert-file=" + c.pki.etcdServer.cert,
		"--key-file=" + c.pki.etcdServer.key,
		"--trusted-ca-file=" + c.pki.etcdCA.path,
		"--peer-client-cert-auth",
		"--peer-cert-file=" + c.pki.etcdPeer.cert,
		"--peer-key-file=" + c.pki.etcdPeer.key,
		"--peer-trusted-ca-file=" + c.pki.etcdCA.path,
		// kube-apiserver's watch cache wants to hear of progress; kubeadm sets the same.
		"--watch-progress-notify-interval=5s",
		"--log-level=warn",
	}
	if !c.options.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	return &component{
		program: program{name: ComponentEtcd, path: c.options.Binaries.Etcd, args: args},
		port:    c.ports.Etcd,
		ready: func(ctx context.Context) error {
			return askOK(ctx, client+"/health", rest.TLSClientConfig{
				CAFile: c.pki.etcdCA.path, CertFile: c.pki.apiServerEtcdClient.cert, KeyFile: c.pki.apiServerEtcdClient.key,
			})
		},
	}
}

func (c *ControlPlane) apiServer() (*component, error) {
	args := []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.ports.APIServer),
		// Endpoints may hold no loopback address, so there is nothing to reconcile.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + httpsURL(c.ports.Etcd),
		"--etcd-cafile=" + c.pki.etcdCA.path,
		"--etcd-certfile=" + c.pki.apiServerEtcdClient.cert,
		"--etcd-keyfile=" + c.pki.apiServerEtcdClient.key,
		"--tls-cert-file=" + c.pki.apiServer.cert,
		"--tls-private-key-file=" + c.pki.apiServer.key,
		"--client-ca-file=" + c.pki.ca.path,
		"--requestheader-client-ca-file=" + c.pki.frontProxyCA.path,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki.frontProxyClient.cert,
		"--proxy-client-key-file=" + c.pki.frontProxyClient.key,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki.serviceAccountPub,
		"--service-account-signing-key-file=" + c.pki.serviceAccountKey,
		"--service-cluster-ip-range=" + c.options.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--allow-privileged",
	}
	if c.options.Kwok {
		// It taints every new Node not-ready. A kubelet never lifts that, node-lifecycle-controller does, and not every
		// manager that is tried here has it: pods would wait for ever.
		args = append(args, "--disable-admission-plugins=TaintNodesByCondition")
	}
	args = append(args, featureGateArgs(c.options.FeatureGates)...)
	args = append(args, c.options.APIServerArgs...)
	return &component{
		program: program{name: ComponentAPIServer, path: c.options.Binaries.APIServer, args: args},
		port:    c.ports.APIServer,
		ready:   c.apiServerReady,
	}, nil
}

// apiServerReady also waits for the namespaces that the server creates on its own after it is ready.
func (c *ControlPlane) apiServerReady(ctx context.Context) error {
	admin := c.RESTConfig().TLSClientConfig
	for _, path := range []string{"/readyz", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"} {
		if err := askOK(ctx, c.URL()+path, admin); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) scheduler() *component {
	args := []string{
		"--kubeconfig=" + c.schedulerKubeconfig,
		"--authentication-kubeconfig=" + c.schedulerKubeconfig,
		"--authorization-kubeconfig=" + c.schedulerKubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.ports.Scheduler),
		"--tls-cert-file=" + c.pki.scheduler.cert,
		"--tls-private-key-file=" + c.pki.scheduler.key,
		// There is one: it need not wait for the lease of its killed predecessor.
		"--leader-elect=false",
	}
	return &component{
		program: program{name: ComponentScheduler, path: c.options.Binaries.Scheduler, args: args},
		port:    c.ports.Scheduler,
		ready: func(ctx context.Context) error {
			return askOK(ctx, httpsURL(c.ports.Scheduler)+"/readyz", rest.TLSClientConfig{CAData: c.pki.ca.certPEM})
		},
	}
}

// ManagerArgs returns the flags that kubeadm gives a kube-controller-manager, for this control plane: leader election,
// a service account per controller, all controllers, on Ports().Manager. Repeating one after them wins, but a list adds up.
func (c *ControlPlane) ManagerArgs() []string {
	return []string{
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=" + c.managerKubeconfig,
		"--authorization-kubeconfig=" + c.managerKubeconfig,
		"--bind-address=" + loopback,
		"--client-ca-file=" + c.pki.ca.path,
		"--cluster-cidr=" + c.options.PodCIDR,
		"--cluster-name=kubernetes",
		"--cluster-signing-cert-file=" + c.pki.ca.path,
		"--cluster-signing-key-file=" + c.pki.ca.keyPath,
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kubeconfig=" + c.managerKubeconfig,
		"--leader-elect=true",
		"--requestheader-client-ca-file=" + c.pki.frontProxyCA.path,
		"--root-ca-file=" + c.pki.ca.path,
		"--secure-port=" + strconv.Itoa(c.ports.Manager),
		"--service-account-private-key-file=" + c.pki.serviceAccountKey,
		"--service-cluster-ip-range=" + c.options.ServiceCIDR,
		"--use-service-account-credentials=true",
	}
}

// Manager is a controller manager's binary to run beside the control plane.
type Manager struct {
	// Path of the binary: ours, upstream's or any other with the same flags.
	Path string
	// Name for its log and for StopComponent; default ComponentManager. A second manager needs another one.
	Name Component
	// Port to serve on; 0 is Ports().Manager. A second manager needs another one, see FreePort.
	Port int
	// MayEnd says that its end is no failure of the control plane: a manager that loses its lease ends.
	MayEnd bool
	// Args replace those of ManagerArgs that set the same flag, and follow the rest.
	Args []string
}

// StartManager runs a controller manager as one more component, and returns when its /healthz is OK, which says nothing
// of leadership.
func (c *ControlPlane) StartManager(ctx context.Context, m Manager) error {
	port := cmp.Or(m.Port, c.ports.Manager)
	args := overrideArgs(c.ManagerArgs(), []string{"--secure-port=" + strconv.Itoa(port)})
	return c.launch(ctx, &component{
		program: program{name: cmp.Or(m.Name, ComponentManager), path: m.Path, args: overrideArgs(args, m.Args)},
		port:    port,
		mayEnd:  m.MayEnd,
		// /healthz is asked of a standby, too: no more than that is known.
		reached: "is running",
		ready: func(ctx context.Context) error {
			// Its certificate is its own, made at start.
			return askOK(ctx, httpsURL(port)+"/healthz", rest.TLSClientConfig{Insecure: true})
		},
	})
}

// overrideArgs returns the usual arguments without the flags that others set, and then the others, all of them. Leaving
// them out matters for lists: a second --controllers adds to the first one.
func overrideArgs(usual, others []string) []string {
	args := slices.DeleteFunc(slices.Clone(usual), func(arg string) bool {
		return slices.ContainsFunc(others, func(other string) bool {
			return strings.HasPrefix(other, "--") && flagName(other) == flagName(arg)
		})
	})
	return append(args, others...)
}

// flagName returns the name that is set by an argument like --name=value. Kubernetes takes _ for - in names.
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	return strings.ReplaceAll(name, "_", "-")
}

func featureGateArgs(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		list = append(list, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(list, ",")}
}

func httpsURL(port int) string { return "https://" + loopback + ":" + strconv.Itoa(port) }

// askOK gets the URL and returns nil when the answer is 200. It leaves no connection behind.
func askOK(ctx context.Context, url string, security rest.TLSClientConfig) error {
	// One that accepts and does not answer, because it is paused or still starting, must not use up the whole wait.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tlsConfig, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: security})
	if err != nil {
		return fmt.Errorf("preparing a request to %s: %w", url, err)
	}
	return ask(ctx, url, tlsConfig)
}

func ask(ctx context.Context, url string, tlsConfig *tls.Config) error {
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	defer utilnet.CloseIdleConnectionsFor(transport)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", url, response.Status, lastFailedCheck(string(body)))
	}
	return nil
}

// lastFailedCheck shortens a health page, a line per check, to the check that is waited for.
func lastFailedCheck(page string) string {
	lines := strings.Split(strings.TrimSpace(page), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "[-]") {
			return line
		}
	}
	return lines[len(lines)-1]
}
