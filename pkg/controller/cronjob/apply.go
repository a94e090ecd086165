// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/cronjob/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

// round is one sync of a CronJob.
type round struct {
	c      *ControllerV2
	key    types.NamespacedName
	cj     *batch.CronJob // of the cache
	jobs   []*batch.Job   // of the cache
	status batch.CronJobStatus
	events []message
}

func (c *ControllerV2) syncCronJob(ctx context.Context, key cache.ObjectName, cj *batch.CronJob) error {
	jobs, err := c.jobsOf(cj)
	if err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *batch.Job) int { return strings.Compare(a.Name, b.Name) })
	r := &round{c: c, key: key.AsNamespacedName(), cj: cj, jobs: jobs}
	defer func() {
		for _, m := range c.memory.untold(key, cj.UID, r.events) {
			c.recorder.Event(cj, m.eventType, m.reason, m.text)
		}
	}()
	next, syncErr := r.run(ctx)
	// What has happened is written down, whatever else failed.
	if err := r.writeStatus(ctx); err != nil {
		return err
	}
	if syncErr != nil {
		return syncErr
	}
	if !next.IsZero() {
		return worker.RequeueAfter(next.Sub(c.now()) + afterStart)
	}
	return nil
}

// run returns the time at which the CronJob is to be looked at again, zero for none.
func (r *round) run(ctx context.Context) (time.Time, error) {
	now := r.c.now()
	deleted := r.deleteExcess(ctx)
	o := observe(r.cj, r.jobs, deleted, now)
	r.status = o.status
	r.events = append(r.events, o.events...)
	if err := r.checkMissing(ctx, o.missing); err != nil {
		return time.Time{}, err
	}
	d := decide(r.cj, &r.status, r.c.memory.changedAt(cache.NewObjectName(r.key.Namespace, r.key.Name), r.cj.UID), now)
	r.events = append(r.events, d.events...)
	if d.run.IsZero() {
		return d.next, nil
	}
	if err := r.replace(ctx, d.replace); err != nil {
		return time.Time{}, err
	}
	return d.next, r.start(ctx, d.run)
}

// deleteExcess deletes finished Jobs beyond the history limits, and returns the UIDs of all Jobs that
// the controller has deleted and the cache may still have. One that cannot be deleted is left for
// the next time.
func (r *round) deleteExcess(ctx context.Context) sets.Set[types.UID] {
	present := sets.New[types.UID]()
	for _, job := range r.jobs {
		if job.DeletionTimestamp == nil {
			present.Insert(job.UID)
		}
	}
	r.c.guard.Observe(r.key, present)
	deleted := sets.New[types.UID]()
	var left []*batch.Job
	for _, job := range r.jobs {
		if r.c.guard.IsDeleting(r.key, job.UID) {
			deleted.Insert(job.UID)
		} else {
			left = append(left, job)
		}
	}
	for _, job := range excess(r.cj, left) {
		if err := r.deleteJob(ctx, job.Name, job.UID); err == nil {
			deleted.Insert(job.UID)
		}
	}
	return deleted
}

// deleteJob deletes exactly this Job, its Pods after it. A Job that is gone already is no failure.
func (r *round) deleteJob(ctx context.Context, name string, uid types.UID) error {
	r.c.guard.Deleting(r.key, r.cj.UID, uid)
	err := r.c.client.BatchV1().Jobs(r.key.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	switch {
	case err == nil:
		r.events = append(r.events, jobDeleted(name))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	r.c.guard.DeleteFailed(r.key, uid)
	if apierrors.IsConflict(err) {
		// Another Job has that name now, or the API server had a reason of its own: the next round tells.
		return fmt.Errorf("deleting job %s/%s: %w", r.key.Namespace, name, err)
	}
	r.events = append(r.events, jobNotDeleted(err))
	return fmt.Errorf("deleting job %s/%s: %w", r.key.Namespace, name, err)
}

// checkMissing takes the active Jobs off the status that the API server does not have either.
func (r *round) checkMissing(ctx context.Context, missing []v1.ObjectReference) error {
	for _, ref := range missing {
		job, err := r.c.client.BatchV1().Jobs(r.key.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case err == nil && job.UID == ref.UID:
			continue // the cache is late
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for active job %s/%s: %w", r.key.Namespace, ref.Name, err)
		}
		dropActive(&r.status, ref.UID)
		r.events = append(r.events, missingJob(ref.Name))
	}
	return nil
}

// replace deletes the Jobs that a new one replaces.
func (r *round) replace(ctx context.Context, refs []v1.ObjectReference) error {
	for _, ref := range refs {
		if err := r.deleteJob(ctx, ref.Name, ref.UID); err != nil {
			return fmt.Errorf("could not replace job %s/%s: %w", r.key.Namespace, ref.Name, err)
		}
		dropActive(&r.status, ref.UID)
	}
	return nil
}

// start creates the Job of a scheduled time and writes it into the status.
func (r *round) start(ctx context.Context, scheduled time.Time) error {
	job, err := r.c.client.BatchV1().Jobs(r.key.Namespace).Create(ctx, newJob(r.cj, scheduled), metav1.CreateOptions{})
	switch {
	case err == nil:
		metrics.CronJobCreationSkew.Observe(job.CreationTimestamp.Sub(scheduled).Seconds())
		r.events = append(r.events, jobCreated(job.Name))
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		klog.FromContext(ctx).V(2).Info("The namespace is being deleted, so is the cron job", "reason", err.Error())
		return nil
	case apierrors.IsAlreadyExists(err):
		if job, err = r.existing(ctx, jobName(r.cj, scheduled)); job == nil {
			return err
		}
	default:
		r.events = append(r.events, jobNotCreated(err))
		return fmt.Errorf("creating job %s/%s: %w", r.key.Namespace, jobName(r.cj, scheduled), err)
	}
	r.c.guard.WroteAt(r.key, r.cj.UID, jobResource, job.ResourceVersion)
	if finishedAs(job) == "" && !isActive(&r.status, job.UID) {
		r.status.Active = append(r.status.Active, referenceTo(job))
	}
	r.status.LastScheduleTime = &metav1.Time{Time: scheduled}
	return nil
}

// existing returns the Job that has the name of the one to be created, if it is the CronJob's, and
// nil when it is somebody else's: then its time is left out, unless it leaves before the next.
func (r *round) existing(ctx context.Context, name string) (*batch.Job, error) {
	job, err := r.c.client.BatchV1().Jobs(r.key.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading job %s/%s, which exists: %w", r.key.Namespace, name, err)
	}
	if metav1.IsControlledBy(job, r.cj) {
		return job, nil
	}
	r.events = append(r.events, nameTaken(name))
	return nil, nil
}

// writeStatus writes the status if it has changed.
func (r *round) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(r.cj.Status, r.status) {
		return nil
	}
	cj := r.cj.DeepCopy()
	cj.Status = r.status
	written, err := r.c.client.BatchV1().CronJobs(cj.Namespace).UpdateStatus(ctx, cj, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // deleted, with what there was to say
	}
	if err != nil {
		return fmt.Errorf("writing the status of cron job %s: %w", klog.KObj(cj), err)
	}
	r.c.guard.WroteAt(r.key, r.cj.UID, cronJobResource, written.ResourceVersion)
	return nil
}
