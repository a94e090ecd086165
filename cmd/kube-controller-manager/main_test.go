// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/internal/fakeapi"
)

// runMain in the environment makes the test's binary the manager's.
const runMain = "KCM_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a running manager.
type program struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.CommandContext(t.Context(), self, args...)}
	p.cmd.Args[0] = "kube-controller-manager"
	p.cmd.Env = append(os.Environ(), runMain+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait returns the exit code; -1 means ended by a signal.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func TestMistakesAreALineEachAndExitCodeIsOne(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"unknown flag", []string{"--nmae=x"}, []string{"Error: unknown flag: --nmae"}},
		{"argument", []string{"run"}, []string{`Error: "kube-controller-manager" does not take any arguments, got ["run"]`}},
		{"bad value", []string{"--leader-elect-lease-duration=soon"}, []string{`Error: invalid argument "soon" for "--leader-elect-lease-duration" flag: time: invalid duration "soon"`}},
		{"all on the command line", []string{"--nmae=x", "--leader-elect=maybe", "run"}, []string{
			"Error: unknown flag: --nmae",
			`Error: invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax`,
			`Error: "kube-controller-manager" does not take any arguments, got ["run"]`,
		}},
		{"what does not parse beside what is not valid", []string{"--controllers=foo", "--kube-api-qps=x", "--feature-gates=Nope=true"}, []string{
			`Error: invalid argument "x" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "x": invalid syntax`,
			"Error: --feature-gates: unrecognized feature gate: Nope",
			`Error: --controllers: "foo" is not in the list of known controllers, --help shows it`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := startProgram(t, test.args...)
			if code := p.wait(t); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if got, want := p.stderr.String(), strings.Join(test.want, "\n")+"\n"; got != want {
				t.Errorf("stderr:\n%swant:\n%s", got, want)
			}
		})
	}
}

func TestBadConfigurationIsALinePerProblem(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"flags of the controllers", []string{"--controllers=foo,bar", "--concurrent-deployment-syncs=0"}, []string{
			`(?m)^\s+--controllers: "foo" is not in the list of known controllers`,
			`(?m)^\s+--controllers: "bar" is not in the list of known controllers`,
			`(?m)^\s+--concurrent-deployment-syncs=0: `,
		}},
		{"a feature gate beside others", []string{"--feature-gates=Foo=true", "--controllers=foo"}, []string{
			`(?m)^\s+--feature-gates: unrecognized feature gate: Foo`,
			`(?m)^\s+--controllers: "foo" is not in the list of known controllers`,
		}},
		{"logging beside others", []string{"--logging-format=yaml", "--controllers=foo"}, []string{
			`(?m)^\s.*--logging-format.*yaml`,
			`(?m)^\s+--controllers: "foo" is not in the list of known controllers`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := startProgram(t, append(test.args, "--master=http://127.0.0.1:1")...)
			if code := p.wait(t); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, want := range append(test.want, `(?m)"command failed" err=<$`) {
				if n := len(regexp.MustCompile(want).FindAllString(p.stderr.String(), -1)); n != 1 {
					t.Errorf("stderr has %d lines like %s, want 1:\n%s", n, want, p.stderr.String())
				}
			}
		})
	}
}

func TestDeprecatedFlagsAreNamed(t *testing.T) {
	p := startProgram(t, "--insecure-port=0", "--version")
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if got := p.stderr.String(); strings.Count(got, "Flag --insecure-port has been deprecated") != 1 {
		t.Errorf("stderr does not say once that the flag is deprecated:\n%s", got)
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"--version=true", "--controllers=foo"}} {
		p := startProgram(t, args...)
		if code := p.wait(t); code != 0 {
			t.Errorf("%v: exit code %d, want 0", args, code)
		}
		if !regexp.MustCompile(`^Kubernetes v\S+\n$`).MatchString(p.stdout.String()) {
			t.Errorf("%v: stdout is %q", args, p.stdout.String())
		}
	}
}

func TestHelpNamesControllersThatAreMissing(t *testing.T) {
	p := startProgram(t, "--help")
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		"Leader-migration flags:\n",
		"Deployment-controller flags:\n",
		"Global flags:\n",
		"All controllers: bootstrap-signer-controller, ",
		"Disabled-by-default controllers: bootstrap-signer-controller, selinux-warning-controller, token-cleaner-controller\n",
		"Not available in this release: " + strings.Join(app.ControllersNotAvailable(), ", "),
	} {
		if !strings.Contains(p.stdout.String(), want) {
			t.Errorf("--help lacks %q", want)
		}
	}
}

func TestFirstSignalHandsOverAndExitCodeIsZero(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		api := fakeapi.New(t)
		p := startProgram(t, append(api.Flags(t), "--secure-port=0")...)
		api.WaitForHolder(t, "kube-controller-manager")
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(t); code != 0 {
			t.Errorf("%v: exit code %d, want 0:\n%s", sig, code, p.stderr.String())
		}
		if holder := api.Holder("kube-controller-manager"); holder != "" {
			t.Errorf("%v: the lease is still held by %q", sig, holder)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	api := fakeapi.New(t)
	p := startProgram(t, append(api.Flags(t), "--secure-port=0")...)
	api.WaitForHolder(t, "kube-controller-manager")
	defer api.Freeze()() // Giving the lease back hangs.
	// Two pending signals of one kind are one, so these are two kinds.
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	// Had the second signal not ended it, it would go on until the release has failed, and exit with 0.
	if code := p.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1:\n%s", code, p.stderr.String())
	}
}

func TestLostLeaseEndsWithExitCodeOne(t *testing.T) {
	api := fakeapi.New(t)
	p := startProgram(t, append(api.Flags(t), "--secure-port=0")...)
	api.WaitForHolder(t, "kube-controller-manager")
	api.SetHolder("kube-controller-manager", "usurper")
	if code := p.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(p.stderr.String(), `"command failed" err="leaderelection lost: lease kube-system/kube-controller-manager"`) {
		t.Errorf("stderr does not say why:\n%s", p.stderr.String())
	}
}
