// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestOptionsThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"detached without a folder":   {Options{Detached: true}, "option Detached needs option Dir"},
		"negative nodes":              {Options{Nodes: -1}, "option Nodes is -1, must be 0 or more"},
		"service CIDR that is none":   {Options{ServiceCIDR: "10.0.0.1"}, "option ServiceCIDR: invalid CIDR address: 10.0.0.1"},
		"pod CIDR that is none":       {Options{PodCIDR: "x"}, "option PodCIDR: invalid CIDR address: x"},
		"two at once, first reported": {Options{Nodes: -1, PodCIDR: "x"}, "option Nodes is -1, must be 0 or more\noption PodCIDR"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), tc.options)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPortsAreReservedOnce(t *testing.T) {
	seen := map[int]bool{}
	var releases []func()
	for range 3 {
		ports, release, err := ReservePorts(4)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
		for _, port := range ports {
			if seen[port] {
				t.Errorf("port %d was given twice", port)
			}
			seen[port] = true
			if err := checkFree(port); err != nil {
				t.Errorf("port %d is not free: %v", port, err)
			}
		}
	}
	releases[0]()
	ports, release, err := ReservePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		if !seen[port] {
			t.Errorf("port %d is new: released ones were not given again", port)
		}
	}
	for _, release := range append(releases[1:], release) {
		release()
	}
}

func TestCertificatesAreKept(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadPKI(dir, DefaultServiceCIDR); err != nil {
		t.Fatal(err)
	}
	before := readAll(t, dir)
	if _, err := loadPKI(dir, DefaultServiceCIDR); err != nil {
		t.Fatal(err)
	}
	for path, content := range readAll(t, dir) {
		if !bytes.Equal(before[path], content) {
			t.Errorf("%s was changed by the second start", path)
		}
	}

	t.Run("but not for another service CIDR", func(t *testing.T) {
		p, err := loadPKI(dir, "10.200.0.0/16")
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(p.apiServer.cert)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := parseCertificate(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.VerifyHostname("10.200.0.1"); err != nil {
			t.Errorf("the API server's certificate: %v", err)
		}
		if !bytes.Equal(before["ca.crt"], readAll(t, dir)["ca.crt"]) {
			t.Error("the authority was replaced")
		}
	})
	t.Run("and none from another authority", func(t *testing.T) {
		if _, err := loadPKI(dir, DefaultServiceCIDR); err != nil {
			t.Fatal(err)
		}
		before := readAll(t, dir)
		for _, name := range []string{"ca.crt", "ca.key"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := loadPKI(dir, DefaultServiceCIDR); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before["apiserver.crt"], readAll(t, dir)["apiserver.crt"]) {
			t.Error("the API server's certificate is still the old authority's")
		}
	})
}

func TestKeysAreSecret(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadPKI(dir, DefaultServiceCIDR); err != nil {
		t.Fatal(err)
	}
	keys := 0
	for path := range readAll(t, dir) {
		if !strings.HasSuffix(path, ".key") {
			continue
		}
		keys++
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode())
		}
	}
	if keys != 10 {
		t.Errorf("%d keys, want 10", keys)
	}
}

func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(dir, path)
		files[relative] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	pki, err := loadPKI(filepath.Join(dir, "pki"), DefaultServiceCIDR)
	if err != nil {
		t.Fatal(err)
	}
	c := &ControlPlane{options: Options{Dir: dir}, ports: Ports{APIServer: 12345}, pki: pki, identities: map[string]identity{}}
	path, err := c.KubeconfigFor("system:serviceaccount:ns:name", "group/one")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	want := c.ConfigFor("system:serviceaccount:ns:name", "group/one")
	if config.Host != "https://127.0.0.1:12345" || !bytes.Equal(config.CertData, want.CertData) || !bytes.Equal(config.KeyData, want.KeyData) {
		t.Errorf("kubeconfig %+v, want what ConfigFor returns", config)
	}
	cert, err := parseCertificate(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	if cert.Subject.CommonName != "system:serviceaccount:ns:name" || len(cert.Subject.Organization) != 1 || cert.Subject.Organization[0] != "group/one" {
		t.Errorf("the certificate's subject is %v", cert.Subject)
	}
	if other, err := c.KubeconfigFor("system:serviceaccount:ns:name"); err != nil || other == path {
		t.Errorf("the same user in other groups has the kubeconfig %s (error %v), too", other, err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	content := "before\n" + strings.Repeat("x", tailBytes) + "\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		from int64
		want string
	}{
		"the last lines":       {0, "2 3 4 5 6 7 8 9"},
		"not before the start": {int64(len(content) - 4), "8 9"},
		"nothing new":          {int64(len(content)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(tail(path, tc.from), " "); got != tc.want {
				t.Errorf("tail %q, want %q", got, tc.want)
			}
		})
	}
	if got := tail(path+".missing", 0); got != nil {
		t.Errorf("tail of no file: %q", got)
	}
}

func TestHealthPageIsShortened(t *testing.T) {
	page := "[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: not finished\n[+]log ok\nreadyz check failed\n"
	if got, want := lastFailedCheck(page), "[-]poststarthook/rbac/bootstrap-roles failed: not finished"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := lastFailedCheck("unauthorized\n"); got != "unauthorized" {
		t.Errorf("got %q", got)
	}
}

func TestFeatureGates(t *testing.T) {
	got := featureGateArgs(map[string]bool{"B": true, "A": false})
	if len(got) != 1 || got[0] != "--feature-gates=A=false,B=true" {
		t.Errorf("args %q", got)
	}
	if got := featureGateArgs(nil); got != nil {
		t.Errorf("args %q for no gates", got)
	}
}

func TestArgumentsTakeTheUsualOnesPlace(t *testing.T) {
	usual := []string{"--controllers=*,tokencleaner", "--leader-elect=true", "--v=2", "--bind-address=127.0.0.1"}
	for name, tc := range map[string]struct{ others, want []string }{
		"none":              {nil, usual},
		"another flag":      {[]string{"--controllers-x=1"}, append(slices.Clone(usual), "--controllers-x=1")},
		"a list, twice":     {[]string{"--controllers=a", "--controllers=b"}, []string{"--leader-elect=true", "--v=2", "--bind-address=127.0.0.1", "--controllers=a", "--controllers=b"}},
		"with underscores":  {[]string{"--leader_elect=false"}, []string{"--controllers=*,tokencleaner", "--v=2", "--bind-address=127.0.0.1", "--leader_elect=false"}},
		"value as the next": {[]string{"--bind-address", "0.0.0.0"}, []string{"--controllers=*,tokencleaner", "--leader-elect=true", "--v=2", "--bind-address", "0.0.0.0"}},
		"a value named so":  {[]string{"--x", "v"}, append(slices.Clone(usual), "--x", "v")},
		"without a value":   {[]string{"--leader-elect"}, []string{"--controllers=*,tokencleaner", "--v=2", "--bind-address=127.0.0.1", "--leader-elect"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := overrideArgs(usual, tc.others); !slices.Equal(got, tc.want) {
				t.Errorf("args\n%q, want\n%q", got, tc.want)
			}
		})
	}
}
