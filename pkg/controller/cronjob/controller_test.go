// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kcm-dev/kcm/pkg/controller/cronjob/metrics"
	"github.com/kcm-dev/kcm/pkg/controller/testutil"
	"github.com/kcm-dev/kcm/pkg/controller/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a controller that runs on a fake API server in a synctest bubble, whose clock begins
// with the year 2000.
type cluster struct {
	t        *testing.T
	client   *fake.Clientset
	versions *testutil.Versions
	c        *ControllerV2
	start    time.Time
	wall     atomic.Int64 // by how much the wall clock was set
	stop     func()
}

// run calls test while a controller runs. The CronJob, if any, was created when the time began.
func run(t *testing.T, test func(*cluster), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset(), start: time.Now()}
		for _, o := range objects {
			if cj, ok := o.(*batch.CronJob); ok {
				cj.CreationTimestamp = metav1.NewTime(c.start)
			}
			if err := c.client.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		c.client.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
			action.(clienttesting.CreateAction).GetObject().(*batch.Job).CreationTimestamp = metav1.Now()
			return false, nil, nil
		})
		c.versions = testutil.CountVersions(c.client, 100)
		c.restart()
		defer func() { c.stop() }()
		test(c)
	})
}

func (c *cluster) restart() {
	if c.stop != nil {
		c.stop()
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := informers.NewSharedInformerFactory(c.client, 0)
	controller, err := NewControllerV2(ctx, factory.Batch().V1().Jobs(), factory.Batch().V1().CronJobs(), c.client)
	if err != nil {
		c.t.Fatal(err)
	}
	c.c = controller
	c.c.now = func() time.Time { return time.Now().Add(time.Duration(c.wall.Load())) }
	factory.StartWithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		controller.Run(ctx, 2)
	}()
	c.stop = func() {
		cancel()
		<-done
		factory.Shutdown()
	}
	time.Sleep(time.Second) // caches are synced
	synctest.Wait()
}

// until lets time pass until so long after the start.
func (c *cluster) until(d time.Duration) {
	c.t.Helper()
	time.Sleep(d - time.Since(c.start))
	synctest.Wait()
}

func (c *cluster) cronJob() *batch.CronJob {
	c.t.Helper()
	obj, err := c.client.Tracker().Get(batch.SchemeGroupVersion.WithResource("cronjobs"), "ns", "tick")
	if err != nil {
		c.t.Fatal(err)
	}
	return obj.(*batch.CronJob).DeepCopy()
}

func (c *cluster) update(change func(*batch.CronJob)) {
	c.t.Helper()
	cj := c.cronJob()
	change(cj)
	cj.ResourceVersion = c.versions.Next()
	if err := c.client.Tracker().Update(batch.SchemeGroupVersion.WithResource("cronjobs"), cj, "ns"); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) finish(name string, as batch.JobConditionType) {
	c.t.Helper()
	jobs := batch.SchemeGroupVersion.WithResource("jobs")
	obj, err := c.client.Tracker().Get(jobs, "ns", name)
	if err != nil {
		c.t.Fatal(err)
	}
	job := obj.(*batch.Job).DeepCopy()
	finishedJob(as, time.Now())(job)
	job.ResourceVersion = c.versions.Next()
	if err := c.client.Tracker().Update(jobs, job, "ns"); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// react puts a reaction in front, while the controller may be sending requests.
func (c *cluster) react(verb, resource string, reaction clienttesting.ReactionFunc) {
	c.client.Lock()
	defer c.client.Unlock()
	c.client.PrependReactor(verb, resource, reaction)
}

// happened lists the requests for Jobs, the events and the writes of the status since the last call.
func (c *cluster) happened() string {
	var requests, events []string
	for _, action := range c.client.Actions() {
		switch a, verb := action, action.GetVerb(); verb {
		case "create":
			if event, ok := a.(clienttesting.CreateAction).GetObject().(*v1.Event); ok {
				events = append(events, event.Reason)
			} else {
				requests = append(requests, "create "+a.(clienttesting.CreateAction).GetObject().(*batch.Job).Name)
			}
		case "update":
			requests = append(requests, "status")
		case "patch": // of an event that repeats
			events = append(events, "again")
		case "delete":
			a := a.(clienttesting.DeleteAction)
			o := a.GetDeleteOptions()
			requests = append(requests, fmt.Sprintf("delete %s %s %s", a.GetName(), *o.PropagationPolicy, *o.Preconditions.UID))
		case "get":
			requests = append(requests, "get "+a.(clienttesting.GetAction).GetName())
		}
	}
	c.client.ClearActions()
	return strings.Join(append(requests, events...), ", ")
}

func (c *cluster) want(when, want string) {
	c.t.Helper()
	if got := c.happened(); got != want {
		c.t.Errorf("%s:\ngot  %q\nwant %q", when, got, want)
	}
}

func (c *cluster) wantStatus(activeJobs string, last time.Duration) {
	c.t.Helper()
	status := c.cronJob().Status
	if got := names(status.Active); got != activeJobs {
		c.t.Errorf("active %q, want %q", got, activeJobs)
	}
	if !sameTime(status.LastScheduleTime, c.start.Add(last)) {
		c.t.Errorf("last schedule time %v, want %s after the start", status.LastScheduleTime, last)
	}
}

const (
	job1 = "tick-15778081" // of the first minute of 2000
	job2 = "tick-15778082"
	job3 = "tick-15778083"
)

func minutely(changes ...func(*batch.CronJob)) *batch.CronJob {
	return newCronJob(append([]func(*batch.CronJob){schedule("* * * * *"), limits(3, 1)}, changes...)...)
}

func TestRunsEachMinute(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(time.Minute)
		c.want("before it is time", "")
		c.until(time.Minute + afterStart)
		c.want("when it is time", "create "+job1+", status, SuccessfulCreate")
		c.wantStatus(job1, time.Minute)
		c.finish(job1, batch.JobComplete)
		c.want("when it has finished", "status, SawCompletedJob")
		c.wantStatus("", time.Minute)
		if got := c.cronJob().Status.LastSuccessfulTime; !sameTime(got, c.start.Add(time.Minute+afterStart)) {
			t.Errorf("last successful time %v", got)
		}
		c.until(2*time.Minute + time.Second)
		c.want("the second one", "create "+job2+", status, SuccessfulCreate")
		c.wantStatus(job2, 2*time.Minute)
	}, minutely())
}

func TestPolicies(t *testing.T) {
	tests := []struct {
		policy          batch.ConcurrencyPolicy
		happens, active string
		last            time.Duration
	}{
		{batch.AllowConcurrent, "create " + job2 + ", status, SuccessfulCreate", job1 + "," + job2, 2 * time.Minute},
		{batch.ForbidConcurrent, "JobAlreadyActive", job1, time.Minute},
		{batch.ReplaceConcurrent, "delete " + job1 + " Background uid-" + job1 + ", create " + job2 + ", status, SuccessfulDelete, SuccessfulCreate", job2, 2 * time.Minute},
	}
	for _, tc := range tests {
		t.Run(string(tc.policy), func(t *testing.T) {
			run(t, func(c *cluster) {
				c.until(time.Minute + time.Second)
				c.happened()
				c.until(2*time.Minute + 30*time.Second)
				c.want("in the second minute", tc.happens)
				c.wantStatus(tc.active, tc.last)
			}, minutely(policy(tc.policy)))
		})
	}
}

// With Forbid the run that waited starts when the one before it has finished.
func TestForbidStartsLate(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(2*time.Minute + 10*time.Second)
		c.happened()
		c.finish(job1, batch.JobFailed)
		c.want("when the first has failed", "create "+job2+", status, SawCompletedJob, SuccessfulCreate")
		c.wantStatus(job2, 2*time.Minute)
	}, minutely(policy(batch.ForbidConcurrent)))
}

// BC044: many times have passed while it was suspended.
func TestUnsuspend(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(3*time.Hour + 30*time.Second)
		c.want("suspended", "")
		c.update(func(cj *batch.CronJob) { cj.Spec.Suspend = nil })
		c.want("resumed", "create tick-15778260, status, TooManyMissedTimes, SuccessfulCreate")
		c.until(3*time.Hour + 70*time.Second)
		c.want("next minute", "create tick-15778261, status, SuccessfulCreate")
	}, minutely(suspended))
}

// BC045: a new schedule does not start what it would have started earlier.
func TestScheduleIsEdited(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(12 * time.Hour)
		c.update(schedule("0 9 * * *"))
		c.update(func(cj *batch.CronJob) { cj.Labels = map[string]string{"any": "event"} })
		c.until(24*time.Hour + 8*time.Hour)
		c.want("until the new time", "")
		c.until(24*time.Hour + 10*time.Hour)
		c.want("at the new time", "create tick-15780060, status, SuccessfulCreate")
		c.until(24*time.Hour + 12*time.Hour)
		c.update(zone("Asia/Tokyo")) // 9 o'clock there is midnight here
		c.want("in another zone", "")
		c.until(48*time.Hour + time.Minute)
		c.want("at the time of the other zone", "create tick-15780960, status, SuccessfulCreate")
	}, newCronJob(schedule("0 23 * * *"), func(cj *batch.CronJob) { cj.Status.LastScheduleTime = nil }))
}

// A run that was about to start when the schedule was edited is not lost.
func TestScheduleIsEditedWhenItIsTime(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(time.Minute + afterStart/2)
		c.update(schedule("*/1 * * * *"))
		c.want("edited", "create "+job1+", status, SuccessfulCreate")
	}, minutely())
}

// BC046: the times of @every do not shift with restarts.
func TestEvery(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(100 * time.Second)
		c.wantStatus(job1, 90*time.Second)
		c.restart()
		c.until(170 * time.Second)
		c.restart()
		c.until(181 * time.Second)
		c.wantStatus(job1+","+job3, 180*time.Second)
		c.until(271 * time.Second)
		c.wantStatus(job1+","+job3+",tick-15778084", 270*time.Second)
	}, newCronJob(schedule("@every 90s")))
}

// BC049: the manager ended between the Job's creation and the write of the status.
func TestJobExistsButNotInTheStatus(t *testing.T) {
	cj := minutely(policy(batch.ForbidConcurrent))
	run(t, func(c *cluster) {
		c.until(70 * time.Second)
		c.stop()
		c.update(func(cj *batch.CronJob) { cj.Status = batch.CronJobStatus{} })
		c.happened()
		c.restart()
		c.want("after the restart", "status")
		c.wantStatus(job1, time.Minute)
		c.until(2*time.Minute + time.Second)
		c.want("at the next time", "JobAlreadyActive")
	}, cj)
}

// The cache does not have the Job yet, the API server does.
func TestJobExistsButNotInTheCache(t *testing.T) {
	tests := map[string]struct {
		owner  func(cj *batch.CronJob, job *batch.Job)
		want   string
		active string
	}{
		"its own":       {func(*batch.CronJob, *batch.Job) {}, "create " + job1 + ", get " + job1 + ", status, get " + job1, job1},
		"its own, done": {func(_ *batch.CronJob, job *batch.Job) { finishedJob(batch.JobComplete, theHour)(job) }, "create " + job1 + ", get " + job1 + ", status", ""},
		"another owner": {func(_ *batch.CronJob, job *batch.Job) { job.OwnerReferences[0].UID = "other" }, "create " + job1 + ", get " + job1 + ", FailedCreate", ""},
		"no owner":      {func(_ *batch.CronJob, job *batch.Job) { job.OwnerReferences = nil }, "create " + job1 + ", get " + job1 + ", FailedCreate", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cj := minutely()
			run(t, func(c *cluster) {
				job := jobOf(cj, c.start.Add(time.Minute))
				tc.owner(cj, job)
				c.react("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewAlreadyExists(batch.Resource("jobs"), job.Name)
				})
				c.react("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, job, nil })
				c.until(70 * time.Second)
				c.want("when it is time", tc.want)
				if got := names(c.cronJob().Status.Active); tc.active != "" && got != tc.active {
					t.Errorf("active %q, want %q", got, tc.active)
				}
			}, cj)
		})
	}
}

func TestFailures(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("down"))
	terminating := apierrors.NewForbidden(batch.Resource("jobs"), job1, errors.New("no"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
	conflict := apierrors.NewConflict(batch.Resource("cronjobs"), "tick", errors.New("changed"))
	tests := []struct {
		name, verb, resource string
		err                  error
		policy               batch.ConcurrencyPolicy
		want                 string // in the second minute
	}{
		{"create job failed", "create", "jobs", internal, "", "create " + job2 + ", create " + job2 + ", status, FailedCreate, SuccessfulCreate"},
		{"the namespace is terminating", "create", "jobs", terminating, "", "create " + job2},
		{"the status conflicts", "update", "cronjobs", conflict, "", "create " + job2 + ", status, status, SuccessfulCreate"},
		{"the status fails", "update", "cronjobs", internal, "", "create " + job2 + ", status, status, SuccessfulCreate"},
		{"a job cannot be replaced", "delete", "jobs", internal, batch.ReplaceConcurrent,
			"delete " + job1 + " Background uid-" + job1 + ", delete " + job1 + " Background uid-" + job1 + ", create " + job2 + ", status, FailedDelete, SuccessfulDelete, SuccessfulCreate"},
		{"a job is not replaced at first, with a conflict", "delete", "jobs", apierrors.NewConflict(batch.Resource("jobs"), job1, errors.New("not now")), batch.ReplaceConcurrent,
			"delete " + job1 + " Background uid-" + job1 + ", delete " + job1 + " Background uid-" + job1 + ", create " + job2 + ", status, SuccessfulDelete, SuccessfulCreate"},
		{"the job to be replaced is gone", "delete", "jobs", apierrors.NewNotFound(batch.Resource("jobs"), job1), batch.ReplaceConcurrent,
			"delete " + job1 + " Background uid-" + job1 + ", create " + job2 + ", status, SuccessfulCreate"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			run(t, func(c *cluster) {
				c.until(70 * time.Second)
				c.happened()
				failures := 1
				c.react(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					failures--
					return failures >= 0, nil, tc.err
				})
				c.until(2*time.Minute + 50*time.Second)
				c.want("in the second minute", tc.want)
			}, minutely(policy(tc.policy)))
		})
	}
}

func TestActiveJobGoesMissing(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(70 * time.Second)
		c.happened()
		failures := 1
		c.react("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, apierrors.NewInternalError(errors.New("down"))
		})
		if err := c.client.Tracker().Delete(batch.SchemeGroupVersion.WithResource("jobs"), "ns", job1); err != nil {
			t.Fatal(err)
		}
		c.until(80 * time.Second)
		c.want("gone", "get "+job1+", get "+job1+", status, MissingJob")
		c.wantStatus("", time.Minute)
	}, minutely())
}

// BC051: old Jobs are deleted although new ones are refused.
func TestHistoryIsCleanedUp(t *testing.T) {
	run(t, func(c *cluster) {
		for _, job := range []string{job1, job2, job3} {
			c.until(time.Since(c.start).Truncate(time.Minute) + 61*time.Second)
			c.finish(job, batch.JobComplete)
		}
		c.react("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(batch.Resource("jobs"), "tick", errors.New("exceeded quota"))
		})
		c.happened()
		c.update(limits(1, 1))
		c.want("limit 1", "delete "+job1+" Background uid-"+job1+", delete "+job2+" Background uid-"+job2+", SuccessfulDelete, SuccessfulDelete")
		c.until(3*time.Minute + 50*time.Second)
		c.update(limits(0, 0))
		c.want("limit 0", "delete "+job3+" Background uid-"+job3+", SuccessfulDelete")
		c.until(4*time.Minute + time.Second)
		if got := c.happened(); !strings.HasPrefix(got, "create tick-15778084, ") || !strings.Contains(got, "FailedCreate") {
			t.Errorf("next time: %s", got)
		}
	}, minutely(limits(3, 1)))
}

// With limit 0 the Job is deleted only when its time is written down.
func TestLastSuccessfulTimeWithHistoryLimits(t *testing.T) {
	for name, limit := range map[string]*int32{"zero": new(int32(0)), "ten": new(int32(10)), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			run(t, func(c *cluster) {
				c.until(61 * time.Second)
				c.finish(job1, batch.JobComplete)
				c.until(70 * time.Second)
				if got := c.cronJob().Status.LastSuccessfulTime; !sameTime(got, c.start.Add(61*time.Second)) {
					t.Errorf("last successful time %v", got)
				}
				c.wantStatus("", time.Minute)
				if got := strings.Contains(c.happened(), "delete "+job1); got != (name == "zero") {
					t.Errorf("deleted: %t", got)
				}
			}, minutely(func(cj *batch.CronJob) { cj.Spec.SuccessfulJobsHistoryLimit = limit }))
		})
	}
}

// What is wrong with a schedule is told once, and again when it is another one.
func TestScheduleIsToldOnce(t *testing.T) {
	touch := func(cj *batch.CronJob) {
		cj.Labels = map[string]string{"touched": fmt.Sprint(len(cj.Labels["touched"]))}
	}
	tests := []struct {
		name  string
		wrong func(*batch.CronJob)
		told  string
		other func(*batch.CronJob)
		again string
	}{
		{"unparseable", schedule("nonsense"), "UnparseableSchedule", schedule("other"), "UnParseableCronJobSchedule"},
		{"no times", schedule("0 0 31 2 *"), "InvalidSchedule", schedule("0 0 30 2 *"), "InvalidSchedule"},
		{"zone", zone("Mars/Base"), "UnknownTimeZone", zone("Moon/Base"), "UnknownTimeZone"},
		{"zone in schedule", schedule("TZ=UTC 0 0 1 1 *"), "UnsupportedSchedule", schedule("TZ=UTC 0 0 2 1 *"), "UnsupportedSchedule"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			run(t, func(c *cluster) {
				c.want("at first", tc.told)
				c.update(touch)
				c.until(time.Hour)
				c.want("the same", "")
				c.update(tc.other)
				c.until(2 * time.Hour)
				c.want("another", tc.again)
				c.update(schedule("0 5 1 1 *"))
				c.update(func(cj *batch.CronJob) { cj.Spec.TimeZone = nil })
				c.until(3 * time.Hour)
				c.want("good", "")
				c.until(6 * time.Hour)
				c.want("good, when it is time", "create tick-15778380, status, SuccessfulCreate")
			}, newCronJob(tc.wrong))
		})
	}
}

// A Job that is not the controller's is told once.
func TestUnexpectedJobIsToldOnce(t *testing.T) {
	cj := minutely()
	run(t, func(c *cluster) {
		c.want("at first", "UnexpectedJob")
		c.until(61 * time.Second)
		c.want("at the next sync", "create "+job1+", status, SuccessfulCreate")
	}, cj, jobOf(cj, theHour, byHand))
}

// The wall clock is set while timers run by another one.
func TestClockIsSet(t *testing.T) {
	run(t, func(c *cluster) {
		c.until(10 * time.Minute)
		c.wall.Store(int64(50 * time.Minute))
		c.until(10*time.Minute + clockCheck + time.Second)
		c.want("forward", "create tick-15778140, status, SuccessfulCreate")
		c.wall.Store(0)
		c.until(49 * time.Minute)
		c.want("back", "")
		c.until(61 * time.Minute)
		c.want("the same time again", "")
		c.until(121 * time.Minute)
		c.want("the next time", "create tick-15778200, status, SuccessfulCreate")
	}, newCronJob(schedule("0 * * * *")))
}

// Jobs lead to their CronJob, also when they change hands.
func TestOwnersOfJobs(t *testing.T) {
	job := jobOf(newCronJob(), theHour)
	if key, ok := ownerOf(job); !ok || key.String() != "ns/tick" {
		t.Errorf("owner %s, %t", key, ok)
	}
	for _, ref := range []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: "tick", Controller: new(true)},
		{APIVersion: "example.com/v1", Kind: "CronJob", Name: "tick", Controller: new(true)},
		{APIVersion: "a/b/c", Kind: "CronJob", Name: "tick", Controller: new(true)},
		{APIVersion: "batch/v1", Kind: "CronJob", Name: "tick"},
	} {
		other := job.DeepCopy()
		other.OwnerReferences = []metav1.OwnerReference{ref}
		if key, ok := ownerOf(other); ok {
			t.Errorf("%v: owner %s", ref, key)
		}
	}
	run(t, func(c *cluster) {
		var synced []string
		orphan, theirs := job.DeepCopy(), job.DeepCopy()
		orphan.OwnerReferences = nil
		theirs.OwnerReferences[0].Name = "tock"
		sync := c.c.queue
		c.c.queue = worker.New(worker.Options[cache.ObjectName]{Controller: controllerName, Sync: func(_ context.Context, key cache.ObjectName) error {
			synced = append(synced, key.Name)
			return nil
		}})
		want := func(what, keys string) {
			t.Helper()
			for c.c.queue.Len() > 0 {
				c.c.queue.ProcessNextItem(c.t.Context())
			}
			if got := strings.Join(synced, ","); got != keys {
				t.Errorf("%s: synced %q, want %q", what, got, keys)
			}
			synced = nil
		}
		c.c.jobUpdated(job, job)
		want("a change", "tick")
		c.c.jobUpdated(job, orphan)
		want("let go", "tick")
		c.c.jobUpdated(orphan, orphan)
		want("an orphan", "")
		c.c.jobUpdated(orphan, job)
		want("taken in", "tick")
		c.c.jobUpdated(job, theirs)
		want("given away", "tick,tock")
		ended, cancel := context.WithCancel(c.t.Context())
		cancel()
		c.c.queue.Run(ended, 0)
		c.c.queue = sync
	})
}

// A deleted CronJob leaves nothing in memory.
func TestDeletedCronJobIsForgotten(t *testing.T) {
	run(t, func(c *cluster) {
		c.update(schedule("other nonsense"))
		c.until(2 * time.Second)
		if err := c.client.Tracker().Delete(batch.SchemeGroupVersion.WithResource("cronjobs"), "ns", "tick"); err != nil {
			t.Fatal(err)
		}
		c.until(3 * time.Second)
		if len(c.c.memory.jobs) != 0 {
			t.Errorf("remembers %v", c.c.memory.jobs)
		}
		if all, _ := c.c.cronJobs.List(labels.Everything()); len(all) != 0 {
			t.Errorf("cached %v", all)
		}
	}, newCronJob(schedule("nonsense")))
}

// The metric tells how late Jobs are created.
func TestCreationSkew(t *testing.T) {
	run(t, func(c *cluster) {
		before := skew(c.t)
		c.wall.Store(int64(-5 * time.Second)) // the API server's clock is ahead
		c.until(70 * time.Second)
		if after := skew(c.t); after-before < 5 || after-before > 6 {
			c.t.Errorf("skew %v to %v; want 5.1 s more", before, after)
		}
	}, minutely())
}

// skew returns the sum of the metric so far.
func skew(t *testing.T) float64 {
	t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "cronjob_controller_job_creation_skew_duration_seconds" {
			continue
		}
		histogram := family.GetMetric()[0].GetHistogram()
		if buckets := histogram.GetBucket(); len(buckets) != 10 || buckets[0].GetUpperBound() != 1 || buckets[9].GetUpperBound() != 512 {
			t.Errorf("buckets %v", buckets)
		}
		return histogram.GetSampleSum()
	}
	t.Fatal("the metric is not registered")
	return 0
}
