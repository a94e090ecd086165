// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	jobutil "github.com/kcm-dev/kcm/pkg/controller/job/util"
)

// world is an API server with Jobs and Pods, in memory: with resource versions, conflicts,
// finalizers and generated names, and with caches that show what happened only when they
// are told to. It checks what must hold after every write.
type world struct {
	tester
	client *fake.Clientset
	clock  *clocktesting.FakeClock

	// mu guards the following fields.
	mu      sync.Mutex
	version int
	jobs    map[string]*batch.Job
	pods    map[string]*v1.Pod
	log     []change
	created int
	writes  []string // of the controller, as "verb resource"
	// dieAfter, when not 0, is the number of writes of the controller after which it is dead:
	// that write is carried out, its answer lost, and nothing is after it.
	dieAfter int
	// busy says that other Jobs wait for the controller.
	busy bool
	// fail, when not nil, may refuse a write of the controller.
	fail  func(verb, resource, name string) error
	wrong error // the first thing that was seen and must not be

	*Controller
	recorder   *record.FakeRecorder
	jobIndexer cache.Indexer
	podIndexer cache.Indexer
	shown      [2]int // how much of the log the caches of Jobs and Pods have seen
}

// change is one event of a watch.
type change struct {
	version int
	job     *batch.Job
	pod     *v1.Pod
	gone    bool
}

type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

const (
	ofJobs = iota
	ofPods
)

var errDead = errors.New("the controller is dead")

func newWorld(t tester, jobs ...*batch.Job) *world {
	w := &world{tester: t, clock: clocktesting.NewFakeClock(testNow), jobs: map[string]*batch.Job{}, pods: map[string]*v1.Pod{}}
	for _, job := range jobs {
		w.putJob(job.DeepCopy())
	}
	w.restart()
	return w
}

// restart replaces the controller by a new one, whose caches have seen everything.
func (w *world) restart() { w.Helper(); w.restartBehind(len(w.log), len(w.log)) }

// restartBehind is restart with caches that have seen the log only up to an entry.
func (w *world) restartBehind(jobsShown, podsShown int) {
	w.Helper()
	w.stop()
	w.client = fake.NewClientset()
	w.client.PrependReactor("*", "*", w.react)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	c, err := newController(w.Context(), w.client, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(), w.clock)
	if err != nil {
		w.Fatal(err)
	}
	w.Controller, w.recorder = c, record.NewFakeRecorder(10000)
	c.recorder = w.recorder
	w.jobIndexer, w.podIndexer = factory.Batch().V1().Jobs().Informer().GetIndexer(), factory.Core().V1().Pods().Informer().GetIndexer()
	w.dieAfter, w.shown = 0, [2]int{}
	w.podIndexer.Bookmark("1")
	w.jobIndexer.Bookmark("1")
	w.show(ofJobs, jobsShown)
	w.show(ofPods, podsShown)
	if w.busy {
		w.worker.Add(cache.ObjectName{Namespace: "ns", Name: "other"})
	}
}

// stop ends the goroutines of the controller's queues.
func (w *world) stop() {
	if w.Controller != nil {
		w.end(w.Context())
	}
}

// show lets a cache see the log up to an entry.
func (w *world) show(which, upTo int) {
	for ; w.shown[which] < upTo; w.shown[which]++ {
		entry := w.log[w.shown[which]]
		indexer, object := w.podIndexer, runtime.Object(entry.pod)
		if which == ofJobs {
			indexer, object = w.jobIndexer, entry.job
		}
		switch {
		case (entry.job != nil) != (which == ofJobs):
			continue
		case entry.gone:
			_ = indexer.Delete(object)
		default:
			_ = indexer.Update(object)
		}
		indexer.Bookmark(strconv.Itoa(entry.version))
	}
}

func (w *world) showAll() {
	w.show(ofJobs, len(w.log))
	w.show(ofPods, len(w.log))
}

// syncAll syncs every Job once; errors are expected under faults.
func (w *world) syncJob(name string) error {
	return w.sync(w.Context(), cache.ObjectName{Namespace: "ns", Name: name})
}

// drainOrphans lets the orphan queue do its work for a Pod, as its events would.
func (w *world) drainOrphans() {
	for _, obj := range w.podIndexer.List() {
		_ = w.syncOrphan(w.Context(), onePod(obj.(*v1.Pod)))
	}
}

func (w *world) putJob(job *batch.Job) {
	w.version++
	job.ResourceVersion = strconv.Itoa(w.version)
	w.jobs[job.Name] = job
	w.log = append(w.log, change{version: w.version, job: job})
}

func (w *world) putPod(pod *v1.Pod) {
	w.version++
	pod.ResourceVersion = strconv.Itoa(w.version)
	gone := pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0
	if gone {
		delete(w.pods, pod.Name)
	} else {
		w.pods[pod.Name] = pod
	}
	w.log = append(w.log, change{version: w.version, pod: pod, gone: gone})
}

// setPhase plays the kubelet.
func (w *world) setPhase(name string, phase v1.PodPhase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := w.pods[name]
	if !ok {
		return
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	if phase == v1.PodSucceeded || phase == v1.PodFailed {
		exited(map[v1.PodPhase]int32{v1.PodFailed: 1}[phase], testNow.Sub(w.clock.Now()))(pod)
	}
	w.putPod(pod)
}

// deletePod plays a user.
func (w *world) deletePod(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pod, ok := w.pods[name]; ok {
		w.markDeleted(pod)
	}
}

func (w *world) markDeleted(pod *v1.Pod) {
	if pod.DeletionTimestamp != nil {
		return
	}
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = new(metav1.NewTime(w.clock.Now()))
	w.putPod(pod)
}

func (w *world) updateJob(name string, change func(*batch.Job)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	job := w.jobs[name].DeepCopy()
	change(job)
	job.Generation++
	w.putJob(job)
}

// podNames returns the names of the Pods for which want is true, sorted.
func (w *world) podNames(want func(*v1.Pod) bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if want(w.pods[name]) {
			names = append(names, name)
		}
	}
	return names
}

func alive(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodFailed && pod.Status.Phase != v1.PodSucceeded
}

// react is the API server.
func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verb, resource := action.GetVerb(), action.GetResource().Resource
	if sub := action.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	if w.dieAfter != 0 && len(w.writes) >= w.dieAfter {
		return true, nil, errDead
	}
	write := verb != "get" && verb != "list"
	if write && w.fail != nil {
		name := ""
		if named, ok := action.(interface{ GetName() string }); ok {
			name = named.GetName()
		}
		if err := w.fail(verb, resource, name); err != nil {
			return true, nil, err
		}
	}
	object, err := w.serve(verb, action)
	if !write || err != nil {
		return true, object, err
	}
	w.writes = append(w.writes, verb+" "+resource)
	w.check()
	if len(w.writes) == w.dieAfter {
		return true, nil, errDead
	}
	return true, object, nil
}

func (w *world) serve(verb string, action clienttesting.Action) (runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		pod := a.GetObject().(*v1.Pod).DeepCopy()
		w.created++
		pod.Name = fmt.Sprintf("%s%03d", pod.GenerateName, w.created)
		pod.Namespace, pod.UID, pod.CreationTimestamp = "ns", types.UID("uid-"+pod.Name), metav1.NewTime(w.clock.Now())
		pod.Status.Phase = v1.PodPending
		w.putPod(pod)
		return pod, nil
	case clienttesting.PatchActionImpl:
		return w.patchPod(a)
	case clienttesting.DeleteActionImpl:
		pod, ok := w.pods[a.Name]
		if !ok {
			return nil, apierrors.NewNotFound(v1.Resource("pods"), a.Name)
		}
		w.markDeleted(pod)
		return nil, nil
	case clienttesting.UpdateActionImpl:
		return w.updateStatusOf(a.GetObject().(*batch.Job))
	case clienttesting.GetActionImpl:
		job, ok := w.jobs[a.Name]
		if !ok {
			return nil, apierrors.NewNotFound(batch.Resource("jobs"), a.Name)
		}
		return job.DeepCopy(), nil
	case clienttesting.ListActionImpl:
		list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(w.version)}}
		for _, pod := range w.pods {
			if a.GetListRestrictions().Labels.Matches(labels.Set(pod.Labels)) {
				list.Items = append(list.Items, *pod.DeepCopy())
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected %s of %T", verb, action)
}

func (w *world) patchPod(a clienttesting.PatchActionImpl) (runtime.Object, error) {
	old, ok := w.pods[a.Name]
	if !ok {
		return nil, apierrors.NewNotFound(v1.Resource("pods"), a.Name)
	}
	before, err := runtime.Encode(fakeCodec, old)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, a.Patch, v1.Pod{})
	if err != nil {
		return nil, err
	}
	pod := &v1.Pod{}
	if err := runtime.DecodeInto(fakeCodec, after, pod); err != nil {
		return nil, err
	}
	if pod.UID != old.UID {
		return nil, apierrors.NewConflict(v1.Resource("pods"), a.Name, errors.New("another UID"))
	}
	w.putPod(pod)
	return pod, nil
}

func (w *world) updateStatusOf(next *batch.Job) (runtime.Object, error) {
	old, ok := w.jobs[next.Name]
	if !ok {
		return nil, apierrors.NewNotFound(batch.Resource("jobs"), next.Name)
	}
	if old.ResourceVersion != next.ResourceVersion {
		return nil, apierrors.NewConflict(batch.Resource("jobs"), next.Name, errors.New("not the newest"))
	}
	if err := validStatus(old, next); err != nil && w.wrong == nil {
		w.wrong = err
	}
	job := old.DeepCopy()
	job.Status = *next.Status.DeepCopy()
	w.putJob(job)
	return job.DeepCopy(), nil
}

// validStatus is what the API server holds against a status, as far as it concerns counting.
func validStatus(old, next *batch.Job) error {
	s := next.Status
	listed := s.UncountedTerminatedPods
	if listed == nil {
		return errors.New("no list of uncounted pods")
	}
	seen := map[types.UID]bool{}
	for _, uid := range append(slices.Clone(listed.Succeeded), listed.Failed...) {
		if seen[uid] {
			return fmt.Errorf("pod %s is listed twice", uid)
		}
		seen[uid] = true
	}
	shrunk := old.Spec.Completions != nil && isIndexed(old)
	if !shrunk && s.Succeeded < old.Status.Succeeded || s.Failed < old.Status.Failed {
		return fmt.Errorf("counts go back: %+v after %+v", s, old.Status)
	}
	if *s.Ready > s.Active {
		return fmt.Errorf("%d ready of %d active", *s.Ready, s.Active)
	}
	if jobutil.IsJobFinished(next) && (s.Active != 0 || *s.Terminating != 0 || len(seen) != 0 || s.StartTime == nil && !isSuspended(next)) {
		return fmt.Errorf("finished with %+v", s)
	}
	if jobutil.IsJobFinished(old) {
		return errors.New("the status of a finished job is written")
	}
	if fmt.Sprint(old.Status) == fmt.Sprint(s) {
		return errors.New("a status is written that changes nothing")
	}
	return nil
}

// check looks after each write for what must never be.
func (w *world) check() {
	active := map[types.UID]int{}
	for _, pod := range w.pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && alive(pod) {
			active[owner.UID]++
		}
	}
	for _, job := range w.jobs {
		if n := active[job.UID]; n > int(*job.Spec.Parallelism) && w.wrong == nil {
			w.wrong = fmt.Errorf("%d pods of %s are active, parallelism is %d", n, job.Name, *job.Spec.Parallelism)
		}
	}
}

func (w *world) mustBeRight() {
	w.Helper()
	if w.wrong != nil {
		w.Fatalf("%v\nwrites: %s", w.wrong, strings.Join(w.writes, ", "))
	}
}

// settle syncs and shows until the Job has ended, at most so often.
func (w *world) settle(name string, rounds int, kubelet func()) {
	w.Helper()
	var last error
	for range rounds {
		w.showAll()
		if jobutil.IsJobFinished(w.jobs[name]) && len(w.podNames(isTracked)) == 0 {
			return
		}
		last = w.syncJob(name)
		w.drainOrphans()
		w.mustBeRight()
		kubelet()
		w.clock.Step(20 * time.Second)
	}
	w.Fatalf("job %s has not ended (last sync: %v): %+v, tracked pods %v\nwrites: %s", name, last, w.jobs[name].Status, w.podNames(isTracked), strings.Join(w.writes, ", "))
}

func (w *world) events() []string {
	var all []string
	for {
		select {
		case e := <-w.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
