// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

var path = regexp.MustCompile(`/configmaps(/|\?|$)`)

// writer writes and deletes ConfigMaps at random, whether or not the server answers.
type writer struct {
	env    *framework.Env
	ns     string
	random *rand.Rand
	// acknowledged counts the writes that the server has answered.
	acknowledged int
}

func (w *writer) step(ctx context.Context) error {
	name := fmt.Sprintf("cm-%d", w.random.IntN(60))
	maps := w.env.Client.CoreV1().ConfigMaps(w.ns)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if w.random.IntN(4) == 0 {
		err := maps.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	data := map[string]string{"step": fmt.Sprint(w.random.Uint64())}
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Appendf(nil, `{"data":{"step":"%d"}}`, w.random.Uint64())
		_, err = maps.Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	}
	return err
}

// run writes until stop is closed. That the server is away is a part of the test.
func (w *writer) run(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			if w.step(ctx) == nil {
				w.acknowledged++
			}
		}
	}
}

// whileWriting runs body while others write.
func whileWriting(t *testing.T, env *framework.Env, body func()) {
	t.Helper()
	ns := env.Namespace(t, "informers")
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writers := make([]*writer, 2)
	for i := range writers {
		writers[i] = &writer{env: env, ns: ns, random: rand.New(rand.NewPCG(uint64(i), 1))}
		writing.Go(func() { writers[i].run(t.Context(), stop) })
	}
	body()
	close(stop)
	writing.Wait()
	for _, w := range writers {
		if w.acknowledged < 20 {
			t.Errorf("only %d writes were carried out", w.acknowledged)
		}
	}
}

// Watches break, hang, lag and are refused, while much is written.
func TestFaults(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	watchers := start(t, proxy.Config(env.ConfigFor(controlplane.ManagerUser)))
	random := rand.New(rand.NewPCG(7, 7))
	watches := faultproxy.Match{Verbs: []string{"watch"}, Path: path}
	reads := faultproxy.Match{Verbs: []string{"watch", "list"}, Path: path}
	faults := []faultproxy.Rule{
		{Match: watches, EventDelay: 30 * time.Millisecond},
		{Match: watches, WithholdEvents: true},
		{Match: watches, Status: http.StatusGone, Times: 8},
		{Match: watches, Status: http.StatusUnprocessableEntity, Times: 4},
		{Match: reads, Status: http.StatusInternalServerError, Times: 8},
		{Match: reads, Status: http.StatusTooManyRequests, RetryAfter: time.Second, Times: 4},
		{Match: reads, Drop: faultproxy.DropBefore, Times: 8},
		{Match: reads, Drop: faultproxy.DropAfter, Times: 8},
		{Match: reads, Delay: 500 * time.Millisecond, Times: 8},
	}
	whileWriting(t, env, func() {
		for range 40 {
			rule := proxy.Add(faults[random.IntN(len(faults))])
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			if random.IntN(2) == 0 {
				proxy.CutWatches(watches)
				time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			}
			rule.Remove()
		}
	})
	waitConverged(t, env, watchers)
}

// The API server and etcd crash and come again, while much is written.
func TestRestarts(t *testing.T) {
	env := framework.New(t)
	watchers := start(t, env.ConfigFor(controlplane.ManagerUser))
	waitConverged(t, env, watchers)
	lists := map[string]int{}
	for _, w := range watchers {
		lists[w.name] = total(w.informer.Status(time.Now()).Lists)
	}
	whileWriting(t, env, func() {
		for _, component := range []controlplane.Component{controlplane.ComponentAPIServer, controlplane.ComponentEtcd, controlplane.ComponentAPIServer} {
			time.Sleep(time.Second)
			must(t, env.ControlPlane.KillComponent(component))
			must(t, env.ControlPlane.StartComponent(t.Context(), component))
			time.Sleep(time.Second)
		}
	})
	waitConverged(t, env, watchers)
	for _, w := range watchers {
		if n := total(w.informer.Status(time.Now()).Lists) - lists[w.name]; n > 3 {
			t.Errorf("%s listed everything %d times anew, want to go on from where it was", w.name, n)
		}
	}
}

func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// etcd is restored from a backup: what has happened since has never been.
func TestRestoreFromBackup(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "restored")
	watchers := start(t, env.ConfigFor(controlplane.ManagerUser))
	w := &writer{env: env, ns: ns, random: rand.New(rand.NewPCG(3, 1))}
	for range 30 {
		must(t, w.step(t.Context()))
	}
	data := filepath.Join(env.ControlPlane.Dir(), "etcd")
	backup := filepath.Join(t.TempDir(), "backup")
	restart(t, env, func() error { return os.CopyFS(backup, os.DirFS(data)) })

	for range 100 {
		must(t, w.step(t.Context()))
	}
	waitConverged(t, env, watchers)
	restart(t, env, func() error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(backup))
	})
	waitConverged(t, env, watchers)
	for _, watcher := range watchers {
		if watcher.informer.Barrier().Epoch() == 0 {
			t.Errorf("%s has not noticed that the versions went back: %+v", watcher.name, watcher.informer.Status(time.Now()))
		}
	}
	for range 30 {
		must(t, w.step(t.Context()))
	}
	waitConverged(t, env, watchers)
}

// restart stops the server and etcd, and starts them again after what is done between.
func restart(t *testing.T, env *framework.Env, between func() error) {
	t.Helper()
	components := []controlplane.Component{controlplane.ComponentAPIServer, controlplane.ComponentEtcd}
	for _, c := range components {
		must(t, env.ControlPlane.StopComponent(c))
	}
	must(t, between())
	for i := range components {
		must(t, env.ControlPlane.StartComponent(t.Context(), components[len(components)-1-i]))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
