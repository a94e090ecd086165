// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manager

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kcm-dev/kcm/test/integration/framework"
)

const commandTimeout = 30 * time.Second

func TestMistakesOnTheCommandLineEndWithOneLineEach(t *testing.T) {
	env := framework.New(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("nonsense: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, taken, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := managerKubeconfig(t, env)

	tests := []struct {
		name string
		args []string
		// want are expressions that each match one line of its own; no other line of stderr may speak of an error.
		want []string
	}{
		{"unknown flag", []string{"--no-such-flag"}, []string{`unknown flag: --no-such-flag`}},
		{"bad value", []string{"--concurrent-deployment-syncs=many"}, []string{`"many".*concurrent-deployment-syncs`}},
		{"argument", []string{"serve"}, []string{`does not take any arguments.*serve`}},
		{"unknown controller", []string{"--controllers=*,nosuch"}, []string{`"nosuch" is not in the list of known controllers`}},
		{"two unknown controllers", []string{"--controllers=nosuch,-other"}, []string{`"nosuch" is not in the list`, `"other" is not in the list`}},
		{"bad lock", []string{"--leader-elect-resource-lock=endpoints"}, []string{`leases`}},
		{"unknown gate", []string{"--feature-gates=NoSuchGate=true"}, []string{`NoSuchGate`}},
		{"missing kubeconfig", []string{"--kubeconfig=/nonexistent/kubeconfig"}, []string{`/nonexistent/kubeconfig`}},
		{"broken kubeconfig", []string{"--kubeconfig=" + broken}, []string{regexp.QuoteMeta(broken)}},
		{"port in use", []string{"--bind-address=127.0.0.1", "--secure-port=" + taken, "--leader-elect=false"}, []string{`listen.*` + taken}},
		{"all at once", []string{"--no-such-flag", "--concurrent-deployment-syncs=many", "serve"},
			[]string{`--no-such-flag`, `concurrent-deployment-syncs`, `does not take any arguments`}},
		{"all of validation at once", []string{"--controllers=nosuch", "--attach-detach-reconcile-sync-period=1ms"},
			[]string{`"nosuch" is not in the list`, `reconcile-sync`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if !strings.Contains(strings.Join(args, " "), "--kubeconfig") {
				args = append([]string{"--kubeconfig=" + kubeconfig}, args...)
			}
			code, stdout, stderr := env.RunCommand(t, commandTimeout, args...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			complaints := complaintsIn(stderr)
			for _, want := range tt.want {
				matching := 0
				for _, line := range complaints {
					if regexp.MustCompile(want).MatchString(line) {
						matching++
					}
				}
				if matching != 1 {
					t.Errorf("%d lines match %s, want 1", matching, want)
				}
			}
			if len(complaints) != len(tt.want) {
				t.Errorf("%d lines of complaint, want %d", len(complaints), len(tt.want))
			}
			if strings.TrimSpace(stdout) != "" {
				t.Errorf("stdout: %s", stdout)
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", stderr)
			}
		})
	}
}

var infoLine = regexp.MustCompile(`^[IW]\d{4} `)

// complaintsIn are the lines of stderr that are not log lines of level info or
// warning. An error of several lines is one that klog prints between "err=<"
// and ">"; a single one it quotes.
func complaintsIn(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line != "" && line != ">" && !strings.HasSuffix(line, "err=<") && !infoLine.MatchString(line) {
			lines = append(lines, strings.ReplaceAll(line, `\"`, `"`))
		}
	}
	return lines
}

func TestVersionAndHelp(t *testing.T) {
	env := framework.New(t)
	code, stdout, _ := env.RunCommand(t, commandTimeout, "--version")
	if code != 0 || !regexp.MustCompile(`^Kubernetes v\d`).MatchString(stdout) {
		t.Errorf("--version: exit code %d, %q", code, stdout)
	}
	code, stdout, _ = env.RunCommand(t, commandTimeout, "--help")
	if code != 0 {
		t.Errorf("--help: exit code %d", code)
	}
	for _, want := range []string{"Usage:", "Generic flags:", "Secure serving flags:", "Deployment-controller flags:", "Global flags:", "--leader-elect", "Not available in this release:"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help lacks %q", want)
		}
	}
}
