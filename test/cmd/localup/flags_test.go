// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kcm-dev/kcm/test/controlplane"
)

// parse returns the flags of an up with these arguments.
func parse(t *testing.T, args ...string) (*upFlags, *pflag.FlagSet) {
	t.Helper()
	u, set := &upFlags{}, pflag.NewFlagSet("up", pflag.ContinueOnError)
	u.add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return u, set
}

func TestFlagsContinueACluster(t *testing.T) {
	defaults := controlplane.PortsFrom(defaultFirstPort)
	moved := controlplane.PortsFrom(12000)
	one := moved
	one.APIServer = 6443

	for name, tc := range map[string]struct {
		before         state
		isNew, running bool
		args           []string
		want           state
		wantChanges    changes
	}{
		"new":                           {isNew: true, want: state{Ports: defaults, Nodes: 3}, wantChanges: changes{ports: true}},
		"new with everything":           {isNew: true, args: []string{"--nodes=7", "--ports-from=12000", "--apiserver-port=6443", "--kcm=/bin/sh", "--kcm-arg=--v=4"}, want: state{Ports: one, Nodes: 7, ManagerPath: "/bin/sh", ManagerArgs: []string{"--v=4"}}, wantChanges: changes{ports: true, manager: true}},
		"keeps ports and nodes":         {before: state{Ports: moved, Nodes: 7, ExampleApplied: true}, want: state{Ports: moved, Nodes: 7, ExampleApplied: true}},
		"other nodes":                   {before: state{Ports: moved, Nodes: 7}, args: []string{"--nodes=0"}, want: state{Ports: moved}},
		"one other port":                {before: state{Ports: moved}, args: []string{"--apiserver-port=6443"}, want: state{Ports: one}, wantChanges: changes{ports: true}},
		"ports back":                    {before: state{Ports: one}, args: []string{"--ports-from=26440"}, want: state{Ports: defaults}, wantChanges: changes{ports: true}},
		"stopped: manager is ours":      {before: state{Ports: moved, ManagerPath: "/other", ManagerArgs: []string{"--v=4"}}, want: state{Ports: moved}, wantChanges: changes{manager: true}},
		"running: manager stays":        {before: state{Ports: moved, ManagerPath: "/other", ManagerArgs: []string{"--v=4"}}, running: true, want: state{Ports: moved, ManagerPath: "/other", ManagerArgs: []string{"--v=4"}}},
		"running: another manager":      {before: state{Ports: moved}, running: true, args: []string{"--kcm=/bin/sh"}, want: state{Ports: moved, ManagerPath: "/bin/sh"}, wantChanges: changes{manager: true}},
		"running: manager's other args": {before: state{Ports: moved}, running: true, args: []string{"--kcm-arg=--v=4"}, want: state{Ports: moved, ManagerArgs: []string{"--v=4"}}, wantChanges: changes{manager: true}},
		"API server's args":             {before: state{Ports: moved}, args: []string{"--apiserver-arg=--v=4"}, want: state{Ports: moved}, wantChanges: changes{apiServer: true}},
	} {
		t.Run(name, func(t *testing.T) {
			u, set := parse(t, tc.args...)
			if err := u.validate(); err != nil {
				t.Fatal(err)
			}
			got := tc.before
			gotChanges := u.apply(&got, tc.isNew, tc.running, set)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("state\n%+v, want\n%+v", got, tc.want)
			}
			if gotChanges != tc.wantChanges {
				t.Errorf("changes %+v, want %+v", gotChanges, tc.wantChanges)
			}
		})
	}
}

func TestBadFlagsAreAllNamed(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u, _ := parse(t, "--nodes=-1", "--ports-from=65535", "--etcd-port=70000", "--kcm-port=-2", "--kcm="+notExecutable)
	err := u.validate()
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		"--nodes: -1 is not from 0 to 5000",
		"--ports-from: 65535 is not from 1 to 65530",
		"--etcd-port: 70000 is not from 0 to 65535",
		"--kcm-port: -2 is not from 0 to 65535",
		`--kcm: "` + notExecutable + `" is no program that can be run`,
	}
	if got := strings.Split(err.Error(), "\n"); !reflect.DeepEqual(got, want) {
		t.Errorf("errors\n%q, want\n%q", got, want)
	}
}

func TestPortsThatTwoProgramsShareAreNamed(t *testing.T) {
	ports := controlplane.PortsFrom(26440)
	if err := checkPorts(ports); err != nil {
		t.Errorf("ports in a row: error %v", err)
	}
	ports.Etcd, ports.Manager = ports.APIServer, ports.Scheduler
	want := "port 26443 is given both to etcd (--etcd-port) and to the API server (--apiserver-port): choose another one for either\n" +
		"port 26444 is given both to the scheduler (--scheduler-port) and to the controller manager (--kcm-port): choose another one for either"
	if err := checkPorts(ports); err == nil || err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
}

func TestManagerIsTriedFirst(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "manager")
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := checkManager(t.Context(), write("#!/bin/sh\nexit 1\n")); err != nil {
		t.Errorf("a program that fails is none of its business, error %v", err)
	}
	for name, tc := range map[string]struct{ content, want string }{
		"no program":     {"just text\n", "exec format error"},
		"no interpreter": {"#!/no/such/shell\n", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(tc.content)
			want := fmt.Sprintf("--kcm: %q cannot be run: %s", path, tc.want)
			if err := checkManager(t.Context(), path); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

func TestHintsNameTheFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		dir, variable string
		args          []string
		want          string
	}{
		"default":               {homeDataDir(), "", nil, "make down"},
		"default, purge":        {homeDataDir(), "", []string{"--purge"}, `make down ARGS="--purge"`},
		"another folder":        {"/tmp/x", "", nil, `make down ARGS="--data-dir /tmp/x"`},
		"another folder, purge": {"/tmp/x", "", []string{"--purge"}, `make down ARGS="--data-dir /tmp/x --purge"`},
		"folder of $KCM_DATA":   {"/tmp/x", "/tmp/x", nil, `make down ARGS="--data-dir /tmp/x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KCM_DATA", tc.variable)
			if got := (&cluster{dir: tc.dir}).hint("down", tc.args...); got != tc.want {
				t.Errorf("hint %s, want %s", got, tc.want)
			}
		})
	}
}

func TestChangesThatNeedAStoppedCluster(t *testing.T) {
	api := map[controlplane.Component]controlplane.Detached{controlplane.ComponentAPIServer: {}}
	etcd := map[controlplane.Component]controlplane.Detached{controlplane.ComponentEtcd: {}}
	for name, tc := range map[string]struct {
		change  changes
		running map[controlplane.Component]controlplane.Detached
		refused bool
	}{
		"nothing changes":             {changes{}, api, false},
		"ports, stopped":              {changes{ports: true}, nil, false},
		"ports, running":              {changes{ports: true}, etcd, true},
		"API server's flags, stopped": {changes{apiServer: true}, etcd, false},
		"API server's flags, running": {changes{apiServer: true}, api, true},
		"manager, running":            {changes{manager: true}, api, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (&cluster{}).refuseLateChange(tc.change, tc.running); (err != nil) != tc.refused {
				t.Errorf("error %v, refused should be %t", err, tc.refused)
			}
		})
	}
}
