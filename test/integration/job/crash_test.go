// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package job

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// writesGate lets so many writes of the job-controller through, and holds the others until
// their client is gone.
type writesGate struct {
	// mu guards the following fields.
	mu      sync.Mutex
	left    int
	passed  int
	reached chan struct{} // closed when a write is held
}

func (g *writesGate) intercept(_ http.ResponseWriter, r *http.Request) bool {
	g.mu.Lock()
	if g.left == 0 {
		select {
		case <-g.reached:
		default:
			close(g.reached)
		}
		g.mu.Unlock()
		<-r.Context().Done()
		return true
	}
	g.left--
	g.passed++
	g.mu.Unlock()
	return false
}

func (g *writesGate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed
}

// gatedManager starts our manager behind a proxy that lets only so many of its writes of
// Jobs and Pods through.
func gatedManager(t *testing.T, env *framework.Env, name string, writes int) (*framework.Manager, *writesGate) {
	t.Helper()
	proxy := env.Proxy(t, "")
	gate := &writesGate{left: writes, reached: make(chan struct{})}
	proxy.Add(faultproxy.Rule{
		Match:     faultproxy.Match{Verbs: faultproxy.WriteVerbs(), Path: regexp.MustCompile(`/(pods|jobs)(/|$)`), UserAgent: regexp.MustCompile(serviceAccount)},
		Intercept: gate.intercept,
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	cfg := proxy.Config(env.ConfigFor(controlplane.ManagerUser))
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return env.StartManager(t, framework.ManagerOptions{Name: name, BareArgs: true, Args: managerArgs(env, "--kubeconfig="+path)}), gate
}

// TestKilledAfterEachWrite kills our manager's process with SIGKILL after each single write
// of a Job's life, one run per write. Whichever it was, another manager brings the Job to
// the right end.
func TestKilledAfterEachWrite(t *testing.T) {
	env := framework.New(t)
	kubelet(t, env)
	for _, tc := range []struct {
		name   string
		change func(*batch.Job)
	}{{"NonIndexed", func(*batch.Job) {}}, {"Indexed", indexed}} {
		t.Run(tc.name, func(t *testing.T) {
			all := killAfter(t, env, tc.change, 1<<20)
			t.Logf("%d writes", all)
			if all < 6 {
				t.Fatalf("%d writes in a life cannot be", all)
			}
			// The kill after the last write is in the run above.
			for k := 1; k < all; k++ {
				t.Run(fmt.Sprintf("%d", k), func(t *testing.T) { killAfter(t, env, tc.change, k) })
			}
		})
	}
}

// killAfter runs a Job with a manager that is killed after so many writes, and then with
// another one. It returns how many writes passed of the first.
func killAfter(t *testing.T, env *framework.Env, change func(*batch.Job), writes int) int {
	c := newCluster(t, env)
	first, gate := gatedManager(t, env, "kcm-first", writes)
	job := c.create(newJob("work", 2, 2, change, outcome("succeeded")))
	if writes < 1<<20 {
		select {
		case <-gate.reached:
		case <-t.Context().Done():
			t.Fatal("the manager never came so far")
		}
		first.Signal(t, syscall.SIGKILL)
		first.Wait(t, timeout)
		second, _ := gatedManager(t, env, "kcm-second", 1<<20)
		defer second.Signal(t, os.Kill)
	}
	s := c.waitComplete("work").Status
	if s.Succeeded != 2 || s.Failed != 0 || s.Active != 0 || !nothingUncounted(s) {
		t.Errorf("status %+v", s)
	}
	c.waitNoFinalizers()
	if pods := c.pods(); len(pods) != 2 {
		t.Errorf("%d pods of %s, want 2", len(pods), job.Name)
	}
	passed := gate.count()
	if writes == 1<<20 {
		// Killed after the last write: the one after it finds nothing left to do.
		first.Signal(t, os.Kill)
		first.Wait(t, timeout)
		second, after := gatedManager(t, env, "kcm-second", 1<<20)
		defer second.Signal(t, os.Kill)
		probe := c.create(newJob("probe", 1, 1, outcome("succeeded")))
		c.waitComplete(probe.Name)
		c.waitNoFinalizers()
		if n := after.count(); n > 5 {
			t.Errorf("%d writes after the end; another job has a pod, three statuses and a finalizer", n)
		}
		if again, err := c.getJob(t.Context(), "work"); err != nil || !equality.Semantic.DeepEqual(again.Status, s) {
			t.Errorf("status %+v, then %+v (%v)", s, again.Status, err)
		}
	}
	return passed
}
