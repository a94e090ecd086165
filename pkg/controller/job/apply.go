// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/pkg/controller/job/metrics"
)

// parallelWrites is how many Pods of one Job are written at a time.
const parallelWrites = 50

// apply carries out the plan.
func (s *syncer) apply(ctx context.Context, state *state, c *census, p *plan) outcome {
	switch {
	case len(p.remove) > 0:
		s.action = metrics.JobSyncActionPodsDeleted
		return s.deletePods(ctx, p)
	case len(p.create) > 0 && !state.noReplacements:
		s.action = metrics.JobSyncActionPodsCreated
		return s.createPods(ctx, state, c, p)
	}
	return outcome{}
}

// deletePods deletes the plan's Pods.
func (s *syncer) deletePods(ctx context.Context, p *plan) outcome {
	klog.FromContext(ctx).V(2).Info("Deleting pods", "count", len(p.remove), "release", p.release)
	for _, pod := range p.remove {
		s.guard.Deleting(s.name, s.job.UID, pod.UID)
	}
	errs := inParallel(len(p.remove), func(i int) error { return s.deletePod(ctx, p.remove[i], p.release) })
	var out outcome
	for i, err := range errs {
		if err == nil {
			out.deleted = append(out.deleted, p.remove[i])
			continue
		}
		if controller.OutcomeUnknown(err) {
			s.memory.unsettled = s.clock.Now()
		}
		if out.err == nil {
			out.err = err
		}
	}
	return out
}

func (s *syncer) deletePod(ctx context.Context, pod *v1.Pod, release bool) error {
	if release && isTracked(pod) {
		if err := s.removeFinalizer(ctx, s.pods, pod); err != nil {
			s.guard.DeleteFailed(s.name, pod.UID)
			return fmt.Errorf("removing the finalizer of a pod to delete: %w", err)
		}
	}
	err := s.pods.DeletePodByUID(ctx, pod, s.job)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case !controller.OutcomeUnknown(err):
		s.guard.DeleteFailed(s.name, pod.UID)
	}
	return err
}

// createPods creates the plan's Pods, few at first. What one batch could not create, the
// next ones do not try.
func (s *syncer) createPods(ctx context.Context, state *state, c *census, p *plan) outcome {
	klog.FromContext(ctx).V(2).Info("Creating pods", "count", len(p.create))
	template := podTemplate(s.job)
	ref := metav1.NewControllerRef(s.job, controllerKind)
	var mu sync.Mutex
	var unknown, refused bool
	tried := 0
	created, err := controller.SlowStartBatch(ctx, len(p.create), controller.SlowStartInitialBatchSize, func(ctx context.Context, i int) error {
		generateName := podNamePrefix(s.job, p.create[i])
		err := s.pods.CreatePodsWithGenerateName(ctx, s.job.Namespace, indexTemplate(template, s.job, p.create[i]), s.job, ref, generateName)
		mu.Lock()
		defer mu.Unlock()
		tried++
		unknown = unknown || controller.OutcomeUnknown(err)
		refused = refused || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause)
		return err
	})
	reason := creationReason(state.job, c)
	metrics.JobPodsCreationTotal.WithLabelValues(reason, metrics.Succeeded).Add(float64(created))
	metrics.JobPodsCreationTotal.WithLabelValues(reason, metrics.Failed).Add(float64(tried - created))
	if unknown {
		s.memory.unsettled = s.clock.Now()
	}
	if refused {
		// No failure of the Job's: it will be deleted, and every further Pod is refused too.
		s.memory.namespaceTerminating = s.clock.Now()
		p.waitFor(SyncJobBatchPeriod) // Pods that waited for their replacement are let go
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("creating pods: %w", err)
	}
	return outcome{created: created, err: err}
}

func creationReason(job *batch.Job, c *census) string {
	switch {
	case c.failed > 0 && job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batch.Failed:
		return metrics.PodRecreateFailed
	case c.failed > 0 || len(c.terminating) > 0:
		return metrics.PodRecreateTerminatingOrFailed
	}
	return metrics.PodCreateNew
}

// track stores the status, takes the finalizer off the Pods that it lists, and ends the Job
// if nothing is left. It says whether the Job has ended.
func (s *syncer) track(ctx context.Context, state *state, c *census, t *tracking) (bool, error) {
	if len(t.untrack) > 0 && s.action == metrics.JobSyncActionReconciling {
		s.action = metrics.JobSyncActionTracking
	}
	job := s.job
	// A status that nothing waits for is stored together with the end.
	final, ends := t.conclude(state, c, s.untrackedLater(t))
	if !ends && !equality.Semantic.DeepEqual(job.Status, t.status) {
		written, err := s.updateStatus(ctx, job, t.status)
		if err != nil {
			return false, fmt.Errorf("tracking status: adding uncounted pods to status: %w", err)
		}
		if written == nil {
			return true, nil // the Job is gone
		}
		job = written
	}
	s.memory.backoff = &c.backoff
	if ends {
		return s.finish(ctx, job, t, final, true)
	}
	s.reportCounted(t)
	untracked, err := s.untrack(ctx, t.untrack)
	if err != nil {
		return false, fmt.Errorf("tracking status: removing finalizers: %w", err)
	}
	if final, ends = t.conclude(state, c, untracked); ends {
		return s.finish(ctx, job, t, final, false)
	}
	return false, nil
}

// untrackedLater returns the Pods of a Job that ends which may have their finalizer until after
// the end. They are none, unless other Jobs wait for a sync: those go on first, and jobUpdated
// leaves these Pods to the orphans. A finished Job counts no Pod any more, so that none of its
// Pods is counted twice.
func (s *syncer) untrackedLater(t *tracking) map[types.UID]bool {
	if t.verdict == nil || !s.behind() {
		return nil
	}
	later := make(map[types.UID]bool, len(t.untrack))
	for _, pod := range t.untrack {
		later[pod.UID] = true
	}
	return later
}

// finish stores the status of the ended Job. With news, what t counts is in no status yet.
func (s *syncer) finish(ctx context.Context, job *batch.Job, t *tracking, final batch.JobStatus, news bool) (bool, error) {
	written, err := s.updateStatus(ctx, job, final)
	if err != nil {
		return false, fmt.Errorf("tracking status: removing uncounted pods from status: %w", err)
	}
	if written == nil {
		return true, nil
	}
	if news {
		s.reportCounted(t)
	}
	result := metrics.Succeeded
	if t.verdict.failed() {
		result = metrics.Failed
	}
	metrics.JobFinishedNum.WithLabelValues(completionMode(s.job), result, t.verdict.reason).Inc()
	reportEnd(s.recorder, s.job, t.verdict, final.Succeeded)
	return true, nil
}

// updateStatus writes the status under the precondition of job's resourceVersion. It returns
// nil when the Job is gone.
func (s *syncer) updateStatus(ctx context.Context, job *batch.Job, status batch.JobStatus) (*batch.Job, error) {
	next := *job
	next.Status = status
	written, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, &next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.guard.WroteAt(s.name, s.job.UID, batch.Resource("jobs"), written.ResourceVersion)
	return written, nil
}

// reportCounted records what the stored status counts that the one before did not.
func (s *syncer) reportCounted(t *tracking) {
	reportSuspension(s.recorder, s.job, t)
	mode := completionMode(s.job)
	succeeded, failed := countedPods(&s.job.Status)
	nowSucceeded, nowFailed := countedPods(&t.status)
	// An elastic Job that was made smaller has fewer.
	metrics.JobPodsFinished.WithLabelValues(mode, metrics.Succeeded).Add(float64(max(nowSucceeded-succeeded, 0)))
	metrics.JobPodsFinished.WithLabelValues(mode, metrics.Failed).Add(float64(max(nowFailed-failed, 0)))
	for action, n := range t.handled {
		metrics.PodFailuresHandledByFailurePolicy.WithLabelValues(string(action)).Add(float64(n))
	}
	if !isIndexed(s.job) {
		return
	}
	limit := metrics.BackoffLimitGlobal
	if s.job.Spec.BackoffLimitPerIndex != nil {
		limit = metrics.BackoffLimitPerIndex
	}
	metrics.JobFinishedIndexesTotal.WithLabelValues(metrics.Succeeded, limit).Add(float64(max(t.newSucceeded, 0)))
	metrics.JobFinishedIndexesTotal.WithLabelValues(metrics.Failed, limit).Add(float64(max(t.newFailed, 0)))
}

func countedPods(status *batch.JobStatus) (succeeded, failed int) {
	succeeded, failed = int(status.Succeeded), int(status.Failed)
	if listed := status.UncountedTerminatedPods; listed != nil {
		succeeded += len(listed.Succeeded)
		failed += len(listed.Failed)
	}
	return succeeded, failed
}

// untrack takes the finalizer off the Pods. It returns those that have lost it, and the
// first error.
func (s *syncer) untrack(ctx context.Context, pods []*v1.Pod) (map[types.UID]bool, error) {
	untracked := make(map[types.UID]bool, len(pods))
	var failed error
	for i, err := range inParallel(len(pods), func(i int) error { return s.removeFinalizer(ctx, s.pods, pods[i]) }) {
		if err == nil {
			untracked[pods[i].UID] = true
		} else if failed == nil {
			failed = err
		}
	}
	return untracked, failed
}

// removeFinalizer takes the finalizer off the Pod. A Pod that is gone is no error.
func (c *Controller) removeFinalizer(ctx context.Context, pods controller.PodControlInterface, pod *v1.Pod) error {
	patch, err := finalizerPatch(pod)
	if err != nil {
		return err
	}
	if err := pods.PatchPod(ctx, pod.Namespace, pod.Name, patch); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// finalizerPatch removes the finalizer from the Pod of this UID, and no other of its name.
func finalizerPatch(pod *v1.Pod) ([]byte, error) {
	type meta struct {
		UID    types.UID `json:"uid"`
		Delete []string  `json:"$deleteFromPrimitiveList/finalizers"`
	}
	return json.Marshal(struct {
		Metadata meta `json:"metadata"`
	}{meta{pod.UID, []string{batch.JobTrackingFinalizer}}})
}

// inParallel calls fn for 0 … n-1, parallelWrites at a time, and returns what each returned.
func inParallel(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	free := make(chan struct{}, parallelWrites)
	var wg sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			errs[i] = fn(i)
		})
	}
	wg.Wait()
	return errs
}
