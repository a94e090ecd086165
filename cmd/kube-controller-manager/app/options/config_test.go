// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
)

// apiServer answers every request with 404, as an API server without the
// extension-apiserver-authentication ConfigMap does, and keeps the headers.
type apiServer struct {
	*httptest.Server
	mu sync.Mutex
	// mu guards the following fields.
	headers []http.Header
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	return writeFile(t, "kubeconfig", `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// listen makes the options serve on a free loopback port.
func listen(t *testing.T, s *KubeControllerManagerOptions) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.SecureServing.Listener = l
}

// mustConfig returns the options' configuration and frees it after the test.
func mustConfig(t *testing.T, s *KubeControllerManagerOptions) *config.Config {
	t.Helper()
	c, err := s.Config(t.Context(), testControllers, testDisabled, testAliases)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.EventBroadcaster.Shutdown()
		closeListeners(c)
	})
	return c
}

func TestConfig(t *testing.T) {
	api := newAPIServer(t)
	s := parse(t, "--master="+api.URL, "--controllers=*,-deployment", "--controller-shutdown-timeout=3s",
		"--kube-api-content-type=application/json", "--concurrent-job-syncs=9")
	listen(t, s)
	c := mustConfig(t, s)

	if got := c.ComponentConfig.Generic.Controllers; len(got) != 2 || got[1] != "-deployment-controller" {
		t.Errorf("controllers: %v", got)
	}
	if c.ComponentConfig.JobController.ConcurrentJobSyncs != 9 || c.ControllerShutdownTimeout.String() != "3s" {
		t.Errorf("flags not applied: %+v", c)
	}
	if c.Kubeconfig.Host != api.URL || !c.Kubeconfig.DisableCompression || c.Kubeconfig.ContentType != "application/json" {
		t.Errorf("kubeconfig: %v", c.Kubeconfig)
	}
	if c.Kubeconfig.UserAgent != "" {
		t.Errorf("builders add the user agent, but there is %q already", c.Kubeconfig.UserAgent)
	}
	if c.SecureServing == nil || c.SecureServing.Cert == nil || c.Authentication.Authenticator == nil || c.Authorization.Authorizer == nil {
		t.Errorf("serving is not set up: %+v", c)
	}
	if c.InsecureServing != nil {
		t.Error("plain HTTP is on without being asked for")
	}
	if c.Flagz.GetFlagz()["concurrent-job-syncs"] != "9" {
		t.Errorf("flagz: %v", c.Flagz.GetFlagz())
	}
	if c.EventRecorder == nil || c.ComponentGlobalsRegistry != s.ComponentGlobalsRegistry {
		t.Errorf("incomplete: %+v", c)
	}
	if _, err := c.Client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err == nil {
		t.Fatal("no answer expected")
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	last := api.headers[len(api.headers)-1]
	if agent := last.Get("User-Agent"); !strings.HasSuffix(agent, "/kube-controller-manager") {
		t.Errorf("user agent %q", agent)
	}
}

func TestClientLimits(t *testing.T) {
	api := newAPIServer(t)
	for _, test := range []struct {
		args  []string
		given bool
		qps   float32
		burst int
	}{
		{args: nil, qps: -1},
		{args: []string{"--kube-api-qps=20"}, given: true, qps: 20, burst: 30}, // the default, but asked for
		{args: []string{"--kube-api-qps=100"}, given: true, qps: 100, burst: 30},
		{args: []string{"--kube-api-burst=300"}, given: true, qps: 20, burst: 300},
		{args: []string{"--kube-api-qps=100", "--kube-api-burst=300"}, given: true, qps: 100, burst: 300},
		{args: []string{"--kube-api-qps=-1"}, given: true, qps: -1, burst: 30},
	} {
		s := parse(t, append(test.args, "--master="+api.URL, "--secure-port=0")...)
		c := mustConfig(t, s)
		if c.ClientLimitsGiven != test.given || c.Kubeconfig.QPS != test.qps || c.Kubeconfig.Burst != test.burst {
			t.Errorf("%v: given %v, qps %v, burst %v", test.args, c.ClientLimitsGiven, c.Kubeconfig.QPS, c.Kubeconfig.Burst)
		}
		if limiter := c.Client.CoreV1().RESTClient().GetRateLimiter(); (limiter == nil) != (test.qps < 0) {
			t.Errorf("%v: client has limiter %v", test.args, limiter)
		}
		if len(test.args) == 0 {
			// What /configz shows is the flags, as upstream's.
			if got := c.ComponentConfig.Generic.ClientConnection; got.QPS != 20 || got.Burst != 30 {
				t.Errorf("configuration shows %v and %v", got.QPS, got.Burst)
			}
		}
	}
}

func TestConfigReportsAllProblemsAtOnce(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	migration := writeFile(t, "migration.yaml", `
kind: LeaderMigrationConfiguration
apiVersion: controllermanager.config.k8s.io/v1beta1
leaderName: old
resourceLock: endpoints
controllerLeaders: []
`)
	s := parse(t, "--controllers=foo,bar", "--concurrent-job-syncs=0", "--cloud-provider=aws", "--insecure-bind-address=10.0.0.1",
		"--leader-elect-resource-lock=endpoints", "--kubeconfig="+missing, "--allocate-node-cidrs",
		"--controllers=nodeipam", "--secure-port=-1", "--logging-format=yaml", "--feature-gates=NoSuchGate=true",
		"--enable-leader-migration", "--leader-migration-config="+migration)
	c, err := s.Config(t.Context(), testControllers, testDisabled, testAliases)
	if c != nil {
		t.Error("a configuration in spite of errors")
	}
	want := []string{
		`--feature-gates: unrecognized feature gate: NoSuchGate`,
		`--controllers: "foo" is not in the list of known controllers, --help shows it`,
		`--controllers: "bar" is not in the list of known controllers, --help shows it`,
		`--leader-elect-resource-lock="endpoints": resourceLock value must be "leases": "endpoints" was removed in Kubernetes 1.28, a cluster that still uses it migrates through "endpointsleases" first`,
		`--cloud-provider="aws": built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider`,
		`--concurrent-job-syncs=0: must be greater than 0`,
		`--cluster-cidr must be set with --allocate-node-cidrs=true`,
		`--secure-port=-1: must be between 0 and 65535, 0 turns secure serving off`,
		`--insecure-bind-address=10.0.0.1: must be a loopback address, in 127.0.0.0/8 or ::1`,
		`--logging-format: Invalid value: "yaml": Unsupported log format`,
		fmt.Sprintf(`--leader-migration-config=%q: resourceLock "endpoints" is gone, use "leases"`, migration),
		fmt.Sprintf(`--kubeconfig=%q: stat %s: no such file or directory`, missing, missing),
	}
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigNamesTheFlagsOfUnreadableFiles(t *testing.T) {
	names := []string{
		"tls-cert-file", "tls-private-key-file", "client-ca-file", "requestheader-client-ca-file",
		"authentication-kubeconfig", "authorization-kubeconfig",
	}
	args := []string{"--master=http://127.0.0.1:1", "--tls-sni-cert-key=/no/crt,/no/key"}
	var want []string
	for _, name := range names {
		args = append(args, fmt.Sprintf("--%s=/no/%s", name, name))
		want = append(want, fmt.Sprintf(`--%s="/no/%s": no such file or directory`, name, name))
	}
	want = append(want, `--tls-sni-cert-key="/no/crt": no such file or directory`, `--tls-sni-cert-key="/no/key": no such file or directory`)
	_, err := parse(t, args...).Config(t.Context(), testControllers, testDisabled, testAliases)
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigNamesTheFlagOfTheCertificateDirectory(t *testing.T) {
	file := writeFile(t, "file", "")
	s := parse(t, "--master=http://127.0.0.1:1", "--cert-dir="+file)
	listen(t, s)
	_, err := s.Config(t.Context(), testControllers, testDisabled, testAliases)
	if want := fmt.Sprintf("creating self-signed certificates in --cert-dir=%q: ", file); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestConfigWithoutAWayToTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_MASTER", "")
	_, err := parse(t, "--secure-port=0").Config(t.Context(), testControllers, testDisabled, testAliases)
	if got := lines(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "no way to the API server: set --kubeconfig or --master") {
		t.Errorf("got %q", got)
	}
}

func TestMasterFromTheEnvironment(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_MASTER", "http://127.0.0.1:1")
	if c := mustConfig(t, parse(t, "--secure-port=0")); c.Kubeconfig.Host != "http://127.0.0.1:1" {
		t.Errorf("host %q", c.Kubeconfig.Host)
	}
}

func TestMasterOverridesKubeconfig(t *testing.T) {
	api := newAPIServer(t)
	c := mustConfig(t, parse(t, "--kubeconfig="+api.kubeconfig(t), "--master=https://127.0.0.1:1", "--secure-port=0"))
	if c.Kubeconfig.Host != "https://127.0.0.1:1" || c.Kubeconfig.BearerToken != "secret" {
		t.Errorf("host %q, token %q", c.Kubeconfig.Host, c.Kubeconfig.BearerToken)
	}
}

func TestSecurePortZeroServesNothing(t *testing.T) {
	c := mustConfig(t, parse(t, "--master=http://127.0.0.1:1", "--secure-port=0",
		"--authentication-kubeconfig=/does/not/exist", "--authorization-kubeconfig=/does/not/exist"))
	if c.SecureServing != nil || c.Authentication.Authenticator != nil || c.Authorization.Authorizer != nil {
		t.Errorf("serving: %+v", c)
	}
}

// kubeadm, kwokctl and tests read the files that are made in --cert-dir.
func TestCertDir(t *testing.T) {
	dir := t.TempDir()
	s := parse(t, "--master=http://127.0.0.1:1", "--cert-dir="+dir, "--authentication-skip-lookup")
	listen(t, s)
	mustConfig(t, s)
	certs, err := cert.CertsFromFile(filepath.Join(dir, "kube-controller-manager.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := certs[0].VerifyHostname("127.0.0.1"); err != nil {
		t.Error(err)
	}
	if err := certs[0].VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kube-controller-manager.key")); err != nil {
		t.Error(err)
	}
}

func TestInsecureServing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	args := []string{"--master=http://127.0.0.1:1", "--secure-port=0", fmt.Sprintf("--insecure-port=%d", port)}

	_, err = parse(t, args...).Config(t.Context(), testControllers, testDisabled, testAliases)
	if err == nil || !strings.HasPrefix(err.Error(), "opening --insecure-port: ") {
		t.Errorf("port in use: %v", err)
	}
	l.Close()
	c := mustConfig(t, parse(t, args...))
	if got := c.InsecureServing.Listener.Addr().String(); got != fmt.Sprintf("127.0.0.1:%d", port) {
		t.Errorf("listens on %s", got)
	}
}

// A manager that is embedded, or is started again, must find the port free.
func TestConfigClosesPortsOnFailure(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	s := parse(t, "--master=http://127.0.0.1:1", "--authorization-kubeconfig="+writeFile(t, "kubeconfig", "nonsense"), "--authentication-skip-lookup",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", free.Addr().(*net.TCPAddr).Port))
	_, err = s.Config(t.Context(), testControllers, testDisabled, testAliases)
	if err == nil || !strings.HasPrefix(err.Error(), "setting up authorization of requests to --secure-port: ") {
		t.Fatalf("got %v", err)
	}
	// The same options, mended, open the same port.
	s.Authorization.RemoteKubeConfigFile = ""
	c := mustConfig(t, s)
	if conn, err := net.Dial("tcp", c.SecureServing.Listener.Addr().String()); err != nil {
		t.Errorf("not listening: %v", err)
	} else {
		conn.Close()
	}
}

func TestLeaderMigration(t *testing.T) {
	file := writeFile(t, "migration.yaml", `
kind: LeaderMigrationConfiguration
apiVersion: controllermanager.config.k8s.io/v1
leaderName: my-migration
controllerLeaders:
- {name: deployment-controller, component: "*"}
`)
	for _, test := range []struct {
		args    []string
		enabled bool
		leader  string
		wantErr string
	}{
		{args: nil},
		{args: []string{"--leader-migration-config=/does/not/exist"}}, // not read
		{args: []string{"--enable-leader-migration"}, enabled: true, leader: "cloud-provider-extraction-migration"},
		{args: []string{"--enable-leader-migration", "--leader-migration-config=" + file}, enabled: true, leader: "my-migration"},
		{args: []string{"--enable-leader-migration", "--leader-migration-config=/does/not/exist"}, wantErr: `--leader-migration-config="/does/not/exist": `},
	} {
		var c componentConfig
		errs := parse(t, test.args...).applyTo(&c, testAliases)
		if test.wantErr != "" {
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), test.wantErr) {
				t.Errorf("%v: got %v", test.args, errs)
			}
			continue
		}
		if len(errs) > 0 || c.Generic.LeaderMigrationEnabled != test.enabled || c.Generic.LeaderMigration.LeaderName != test.leader {
			t.Errorf("%v: %v, %+v", test.args, errs, c.Generic.LeaderMigration)
		}
	}
}

// The manifests and command lines of well-known installers start unchanged.
func TestInstallersCommandLines(t *testing.T) {
	api := newAPIServer(t)
	kubeconfig, pki := api.kubeconfig(t), t.TempDir()
	ca := filepath.Join(pki, "ca.crt")
	certificate, _, err := cert.GenerateSelfSignedCertKey("ca", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"kubeadm": {
			"--allocate-node-cidrs=true", "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", "--client-ca-file=" + ca, "--cluster-cidr=10.244.0.0/16", "--cluster-name=kubernetes",
			"--cluster-signing-cert-file=" + ca, "--cluster-signing-key-file=" + ca, "--controllers=*,bootstrapsigner,tokencleaner",
			"--kubeconfig=" + kubeconfig, "--leader-elect=true", "--requestheader-client-ca-file=" + ca, "--root-ca-file=" + ca,
			"--service-account-private-key-file=" + ca, "--service-cluster-ip-range=10.96.0.0/12", "--use-service-account-credentials=true",
		},
		"kubeadm with an external CA": {
			"--authentication-kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", "--cluster-signing-cert-file=" + ca,
			"--cluster-signing-key-file=", "--controllers=*,bootstrapsigner,tokencleaner", "--kubeconfig=" + kubeconfig,
		},
		"kwokctl": {
			"--kubeconfig=" + kubeconfig, "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
			"--bind-address=127.0.0.1", "--secure-port=10257", "--kube-api-qps=4000", "--kube-api-burst=8000",
			"--node-monitor-period=25s", "--node-monitor-grace-period=3m20s", "--leader-elect=false",
			"--root-ca-file=" + ca, "--service-account-private-key-file=" + ca, "--v=2", "--feature-gates=", "--controllers=*",
		},
		"local-up-cluster": {
			"--v=3", "--vmodule=", "--service-account-private-key-file=" + ca, "--service-cluster-ip-range=10.0.0.0/24",
			"--root-ca-file=" + ca, "--cluster-signing-cert-file=" + ca, "--cluster-signing-key-file=" + ca,
			"--enable-hostpath-provisioner=false", "--pvclaimbinder-sync-period=15s", "--feature-gates=AllAlpha=false",
			"--cloud-provider=", "--cloud-config=", "--configure-cloud-routes=false", "--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig, "--kubeconfig=" + kubeconfig, "--use-service-account-credentials",
			"--controllers=*", "--leader-elect=false", "--cert-dir=" + pki, "--allocate-node-cidrs=true", "--cluster-cidr=10.1.0.0/16",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, args...)
			listen(t, s)
			c := mustConfig(t, s)
			if c.Kubeconfig.Host != api.URL {
				t.Errorf("host %s", c.Kubeconfig.Host)
			}
		})
	}
}
