// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// world is an API server, with a cache that trails it and requests that fail in every
// way: refused, lost on the way there, and lost on the way back.
type world struct {
	t       *rapid.T
	f       *fixture
	set     *apps.ReplicaSet
	version int
	pods    map[string]*v1.Pod
	// history holds the Pods at each version, from which the cache is served.
	history  []map[string]*v1.Pod
	cached   int
	calm     bool
	lucks    []luck
	onWrite  func(*v1.Pod)
	mostEver int
}

var _ controller.PodControlInterface = &world{}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, set: newSet("web", rapid.Int32Range(0, 6).Draw(t, "replicas")), pods: map[string]*v1.Pod{}}
	w.f = newFixture(t, rapid.IntRange(1, 6).Draw(t, "burst"), w.set) // within what drawLuck prepares
	w.f.ReplicaSetController.podControl = func(onWrite func(*v1.Pod)) controller.PodControlInterface {
		w.onWrite = onWrite
		return w
	}
	w.f.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &v1.PodList{}
		for _, pod := range w.pods {
			list.Items = append(list.Items, *pod)
		}
		return true, list, nil
	})
	w.commit()
	w.advanceTo(w.version)
	return w
}

// commit makes what the Pods are now the newest version.
func (w *world) commit() {
	w.version++
	now := map[string]*v1.Pod{}
	for name, pod := range w.pods {
		now[name] = pod
	}
	for len(w.history) < w.version {
		w.history = append(w.history, nil)
	}
	w.history = append(w.history, now)
	w.mostEver = max(w.mostEver, w.active())
}

func (w *world) active() int {
	n := 0
	for _, pod := range w.pods {
		if controller.IsPodActive(pod) {
			n++
		}
	}
	return n
}

// advanceTo shows the cache that version.
func (w *world) advanceTo(version int) {
	w.cached = version
	var objs []any
	for _, pod := range w.history[version] {
		objs = append(objs, pod)
	}
	if err := w.f.podIndexer.Replace(objs, strconv.Itoa(version)); err != nil {
		w.t.Fatal(err)
	}
}

// luck is what becomes of one request.
type luck struct {
	done     bool  // it is carried out
	err      error // it is answered by
	graceful bool  // a deletion leaves the Pod terminating
}

// drawLuck prepares what becomes of the requests of one sync. They are sent in parallel,
// and drawing is for one goroutine.
func (w *world) drawLuck() {
	w.lucks = nil
	for range 16 {
		l := luck{done: true, graceful: rapid.Bool().Draw(w.t, "graceful")}
		if !w.calm {
			switch rapid.IntRange(0, 5).Draw(w.t, "fate") {
			case 0:
				l.done, l.err = false, apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("quota"))
			case 1:
				l.done, l.err = false, noAnswer()
			case 2:
				l.err = noAnswer()
			}
		}
		w.lucks = append(w.lucks, l)
	}
}

func (w *world) nextLuck() luck {
	l := w.lucks[0]
	w.lucks = w.lucks[1:]
	return l
}

func (w *world) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, ref *metav1.OwnerReference) error {
	return w.CreatePodsWithGenerateName(ctx, namespace, template, object, ref, "")
}

// The slow start calls this in parallel; the world is one thing after the other.
func (w *world) CreatePodsWithGenerateName(_ context.Context, _ string, _ *v1.PodTemplateSpec, _ runtime.Object, ref *metav1.OwnerReference, _ string) error {
	w.f.podControl.Lock()
	defer w.f.podControl.Unlock()
	l := w.nextLuck()
	if !l.done {
		return l.err
	}
	name := fmt.Sprintf("p%d", w.version+1)
	pod := newPod(name, w.set, version(strconv.Itoa(w.version+1)), createdAt(w.f.clock.Now()))
	pod.OwnerReferences = []metav1.OwnerReference{*ref}
	w.pods[name] = pod
	w.commit()
	if l.err == nil {
		w.onWrite(pod)
	}
	return l.err
}

func (w *world) DeletePodByUID(_ context.Context, pod *v1.Pod, _ runtime.Object) error {
	w.f.podControl.Lock()
	defer w.f.podControl.Unlock()
	l := w.nextLuck()
	if !l.done {
		return l.err
	}
	live, ok := w.pods[pod.Name]
	if !ok {
		return apierrors.NewNotFound(v1.Resource("pods"), pod.Name)
	}
	if l.graceful {
		live = live.DeepCopy()
		live.DeletionTimestamp = new(metav1.NewTime(w.f.clock.Now()))
		live.ResourceVersion = strconv.Itoa(w.version + 1)
		w.pods[pod.Name] = live
	} else {
		delete(w.pods, pod.Name)
	}
	w.commit()
	return l.err
}

func (w *world) DeletePod(context.Context, string, string, runtime.Object) error {
	return errors.New("a Pod is deleted by name alone")
}

func (w *world) PatchPod(context.Context, string, string, []byte) error { return nil }

func (w *world) sync() {
	w.drawLuck()
	_ = w.f.sync(w.t.Context(), cache.MetaObjectToName(w.set))
}

// kill makes a Pod fail, or go, by other hands.
func (w *world) kill() {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(w.t, "victim")
	if rapid.Bool().Draw(w.t, "gone") {
		delete(w.pods, name)
	} else {
		failed := w.pods[name].DeepCopy()
		failed.Status.Phase = v1.PodFailed
		failed.Status.ContainerStatuses = []v1.ContainerStatus{{LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
		failed.ResourceVersion = strconv.Itoa(w.version + 1)
		w.pods[name] = failed
	}
	w.commit()
}

func (w *world) names() []string {
	var names []string
	for name := range w.pods {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// Safety: whatever the cache shows and whatever becomes of requests, there are never
// more active Pods than wanted. Liveness: once the cache catches up and requests are
// answered, there are as many as wanted.
func TestNeverTooManyPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		wanted := int(*w.set.Spec.Replicas)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				w.sync()
			case 2:
				w.advanceTo(rapid.IntRange(w.cached, w.version).Draw(t, "to"))
			case 3:
				w.f.clock.Step(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			case 4:
				w.kill()
			}
			if w.mostEver > wanted {
				t.Fatalf("%d active Pods, %d wanted", w.mostEver, wanted)
			}
		}
		w.calm = true
		for range 20 {
			w.advanceTo(w.version)
			w.f.clock.Step(2 * time.Second)
			w.sync()
		}
		if w.active() != wanted || w.mostEver > wanted {
			t.Fatalf("ends with %d active Pods of %d wanted, %d at most", w.active(), wanted, w.mostEver)
		}
	})
}

// The same when scaling: never fewer than the smaller number of replicas that was asked
// for, unless Pods die by other hands.
func TestNeverTooFewPodsOnScaleDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
			name := fmt.Sprintf("old%d", i)
			w.pods[name] = newPod(name, w.set, version(strconv.Itoa(w.version+1)))
			w.commit()
		}
		w.advanceTo(w.version)
		wanted := int(*w.set.Spec.Replicas)
		floor := min(wanted, w.active())
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				w.sync()
			case 2:
				w.advanceTo(rapid.IntRange(w.cached, w.version).Draw(t, "to"))
			case 3:
				w.f.clock.Step(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			}
			if w.active() < floor {
				t.Fatalf("%d active Pods, %d wanted", w.active(), wanted)
			}
		}
	})
}
