// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/internal/fakeapi"
)

// ignoredLeaks are goroutines of libraries that have no way to be ended.
func ignoredLeaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
	}
}

func TestStartTestServer(t *testing.T) {
	api := fakeapi.New(t)
	before := ignoredLeaks()
	server := StartTestServerOrDie(t, t.Context(), api.Flags(t))
	defer server.TearDownFn()

	certificate := filepath.Join(server.TmpDir, "kube-controller-manager.crt")
	if _, err := os.Stat(certificate); err != nil {
		t.Errorf("no certificate was made: %v", err)
	}
	if server.Options.SecureServing.BindPort == 10257 || server.Config.SecureServing == nil {
		t.Error("the manager does not serve on a port of its own")
	}

	api.WaitForHolder(t, "kube-controller-manager")
	server.TearDownFn()
	server.TearDownFn()
	if _, err := os.Stat(server.TmpDir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if holder := api.Holder("kube-controller-manager"); holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}
	api.DropConnections()
	goleak.VerifyNone(t, before...)
}

func TestTwoManagersInOneProcess(t *testing.T) {
	one, two := fakeapi.New(t), fakeapi.New(t)
	first := StartTestServerOrDie(t, t.Context(), one.Flags(t))
	defer first.TearDownFn()
	second := StartTestServerOrDie(t, t.Context(), append(two.Flags(t), "--leader-elect=false"))
	second.TearDownFn()
	one.WaitForHolder(t, "kube-controller-manager")
	if two.Lease("kube-controller-manager") != nil {
		t.Error("a manager without leader election took a lease")
	}
}

func TestStartTestServerReportsWhyItFailed(t *testing.T) {
	api := fakeapi.New(t)
	taken, port, err := listenOnFreePort()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"unknown flag":       {[]string{"--nmae"}, "unknown flag: --nmae"},
		"unknown controller": {append(api.Flags(t), "--controllers=foo"), `"foo" is not in the list of known controllers`},
		"port in use":        {append(api.Flags(t), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)), "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server, err := StartTestServer(t, ctx, test.flags)
			if err == nil {
				server.TearDownFn()
				t.Fatal("the manager started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want it to say %q", err, test.want)
			}
		})
	}
}
