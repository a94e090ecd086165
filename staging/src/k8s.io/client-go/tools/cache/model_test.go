// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientcache "k8s.io/client-go/tools/cache"
)

var modelSeeds = flag.Int("model.seeds", 150, "how many random lives of an informer to try")

// TestModel lets an informer live through a random history with faults, beside an oracle: the
// server's own map. When the faults end, the store and every handler's idea of the world must be
// the oracle's; every notification must fit to those before it; and nothing may stay behind.
func TestModel(t *testing.T) {
	for seed := range uint64(*modelSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newModel(t, seed).run() })
		})
	}
}

type model struct {
	t        *testing.T
	random   *rand.Rand
	server   *fakeServer
	informer *Informer
	handlers []*modelHandler
	restored bool
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 2)), server: newFakeServer(seed)}
	if m.random.IntN(3) == 0 {
		m.server.faults.noStreams = true
	}
	m.informer = NewInformer(m.server, &corev1.Pod{}, Options{Indexers: clientcache.Indexers{"parity": parityIndex}})
	return m
}

func parityIndex(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Labels["parity"], "all"}, nil
}

func (m *model) run() {
	ctx, cancel := context.WithCancel(m.t.Context())
	for range m.random.IntN(60) {
		m.write()
	}
	m.addHandler()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.informer.RunWithContext(ctx)
	}()
	for range 150 {
		m.step()
	}
	m.settle()
	m.check()

	cancel()
	<-stopped
	if n := m.server.openWatches; n != 0 {
		m.t.Errorf("%d watches are still open", n)
	}
	if !m.informer.IsStopped() {
		m.t.Error("the informer does not say that it has stopped")
	}
}

func (m *model) name() string {
	n := m.random.IntN(40)
	return strings.Repeat("x", n%2) + fmt.Sprint(n)
}

func (m *model) write() { m.server.write(m.name()) }

func (m *model) step() {
	switch n := m.random.IntN(100); {
	case n < 45:
		m.write()
	case n < 65:
		m.server.delete(m.name())
	case n < 68:
		m.server.compact()
	case n < 73:
		m.server.kick()
	case n < 80:
		m.server.set(m.randomFaults())
	case n < 83:
		m.addHandler()
	case n < 86:
		m.removeHandler()
	case n < 87 && !m.restored:
		m.restore()
	case n < 88:
		m.addIndex()
	default:
		time.Sleep(time.Duration(m.random.IntN(3000)) * time.Millisecond << m.random.IntN(4))
	}
}

func (m *model) randomFaults() faults {
	chance := func(most int) int {
		if m.random.IntN(3) > 0 {
			return 0
		}
		return m.random.IntN(most + 1)
	}
	return faults{
		refuse: chance(50), throttle: chance(30), fail: chance(30),
		noStreams: m.random.IntN(4) == 0, noBookmarkEnd: m.random.IntN(8) == 0, expireContinue: chance(30),
		end: chance(20), drop: chance(20), gone: chance(10), stall: chance(10),
		duplicate: chance(30), rewind: chance(30), delay: chance(30), tellsFuture: m.random.IntN(2) == 0, bursts: m.random.IntN(2) == 0, pageSize: 1 + m.random.IntN(20),
	}
}

// restore takes the server back to a backup. What happens then until clients have noticed is not
// told from the lost history, by anyone, if it reaches the same versions: so nothing happens.
func (m *model) restore() {
	m.restored = true
	m.server.set(faults{tellsFuture: m.random.IntN(2) == 0})
	time.Sleep(10 * time.Minute)
	restore := m.server.backup()
	for range 1 + m.random.IntN(10) {
		m.write()
		m.server.delete(m.name())
	}
	time.Sleep(time.Duration(m.random.IntN(10)) * time.Second)
	restore()
	time.Sleep(3 * time.Minute)
}

func (m *model) addHandler() {
	h := &modelHandler{m: m, view: map[string]*corev1.Pod{}}
	if m.random.IntN(3) == 0 {
		h.slow = time.Duration(m.random.IntN(2000)) * time.Millisecond
	}
	resync := time.Duration(m.random.IntN(3)) * 7 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	registration, err := m.informer.AddEventHandlerWithResyncPeriod(h, resync)
	if err != nil {
		m.t.Fatal(err)
	}
	h.registration = registration
	m.handlers = append(m.handlers, h)
}

func (m *model) removeHandler() {
	if len(m.handlers) < 2 {
		return
	}
	i := m.random.IntN(len(m.handlers))
	h := m.handlers[i]
	m.handlers = slices.Delete(m.handlers, i, i+1)
	for range 2 {
		if err := m.informer.RemoveEventHandler(h.registration); err != nil {
			m.t.Fatal(err)
		}
	}
	time.Sleep(h.slow)
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

func (m *model) addIndex() {
	name := fmt.Sprintf("index-%d", len(m.informer.GetIndexer().GetIndexers()))
	if err := m.informer.AddIndexers(clientcache.Indexers{name: parityIndex}); err != nil {
		m.t.Fatal(err)
	}
}

// settle ends the faults and waits until everyone had the time to catch up.
func (m *model) settle() {
	m.server.set(faults{})
	time.Sleep(20 * time.Minute)
	synctest.Wait()
}

func (m *model) check() {
	want := m.server.state()
	if !m.informer.HasSynced() {
		m.t.Fatal("not synced")
	}
	if got := objectsOf(m.informer.GetStore().List()); !samePods(got, want) {
		m.t.Errorf("the store has %v, want %v", versions(got), versions(want))
	}
	if got := m.informer.Status(time.Now()); got.Objects != len(want) || got.Bytes != int64(100*len(want)) || got.Unhealthy != "" {
		m.t.Errorf("status %+v, want %d objects of 100 bytes", got, len(want))
	}
	m.checkIndexes(want)
	for i, h := range m.handlers {
		h.mu.Lock()
		if !samePods(h.view, want) {
			m.t.Errorf("handler %d believes in %v, want %v", i, versions(h.view), versions(want))
		}
		if !h.registration.HasSynced() {
			m.t.Errorf("handler %d has not synced", i)
		}
		h.mu.Unlock()
	}
}

func (m *model) checkIndexes(want map[string]*corev1.Pod) {
	for name := range m.informer.GetIndexer().GetIndexers() {
		for _, value := range []string{"0", "1", "2", "all"} {
			expected := maps.Clone(want)
			maps.DeleteFunc(expected, func(_ string, pod *corev1.Pod) bool { return value != "all" && pod.Labels["parity"] != value })
			objs, err := m.informer.GetIndexer().ByIndex(name, value)
			if err != nil {
				m.t.Fatal(err)
			}
			if got := objectsOf(objs); !samePods(got, expected) || len(objs) != len(expected) {
				m.t.Errorf("index %s, value %s: %v, want %v", name, value, versions(got), versions(expected))
			}
		}
	}
}

func objectsOf(objs []any) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, obj := range objs {
		pod := obj.(*corev1.Pod)
		pods[pod.Namespace+"/"+pod.Name] = pod
	}
	return pods
}

func samePods(a, b map[string]*corev1.Pod) bool {
	return maps.EqualFunc(a, b, func(x, y *corev1.Pod) bool {
		return x.ResourceVersion == y.ResourceVersion && x.UID == y.UID && x.Generation == y.Generation
	})
}

func versions(pods map[string]*corev1.Pod) []string {
	var all []string
	for key, pod := range pods {
		all = append(all, key+"@"+pod.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

// modelHandler builds its idea of the world from what it is told, and checks that each
// notification fits to it.
type modelHandler struct {
	m            *model
	slow         time.Duration
	registration clientcache.ResourceEventHandlerRegistration

	// mu guards the following fields.
	mu      sync.Mutex
	view    map[string]*corev1.Pod
	removed bool
}

func (h *modelHandler) lock() func() {
	time.Sleep(h.slow)
	h.mu.Lock()
	if h.removed {
		h.m.t.Error("a removed handler is called")
	}
	return h.mu.Unlock
}

func (h *modelHandler) OnAdd(obj any, initial bool) {
	defer h.lock()()
	pod := obj.(*corev1.Pod)
	key := pod.Namespace + "/" + pod.Name
	if have := h.view[key]; have != nil {
		h.m.t.Errorf("added %s@%s, but %s is known", key, pod.ResourceVersion, have.ResourceVersion)
	}
	if initial && h.registration != nil && h.registration.HasSynced() {
		h.m.t.Errorf("%s of the initial list comes after it", key)
	}
	h.view[key] = pod
}

func (h *modelHandler) OnUpdate(oldObj, newObj any) {
	defer h.lock()()
	before, pod := oldObj.(*corev1.Pod), newObj.(*corev1.Pod)
	key := pod.Namespace + "/" + pod.Name
	if have := h.view[key]; have != before {
		h.m.t.Errorf("updated %s from %p to %p, but %p is known", key, before, pod, have)
	}
	if pod.Generation < before.Generation && !h.m.restored {
		h.m.t.Errorf("%s went back from generation %d to %d", key, before.Generation, pod.Generation)
	}
	if before.UID != pod.UID {
		h.m.t.Errorf("updated %s from UID %s to %s", key, before.UID, pod.UID)
	}
	h.view[key] = pod
}

func (h *modelHandler) OnDelete(obj any) {
	defer h.lock()()
	if unknown, ok := obj.(clientcache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj // It may be newer than what was known: an update that the end has overtaken.
	}
	pod := obj.(*corev1.Pod)
	key := pod.Namespace + "/" + pod.Name
	have := h.view[key]
	if have == nil || have.UID != pod.UID {
		h.m.t.Errorf("deleted %s of UID %s, but %v is known", key, pod.UID, have)
	}
	delete(h.view, key)
}
