// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	batch "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var jobs = batch.SchemeGroupVersion.WithResource("jobs")

// cluster is a controller that runs on a fake API server in a synctest bubble.
type cluster struct {
	t        *testing.T
	client   *fake.Clientset
	ttl      *Controller
	registry k8smetrics.KubeRegistry
	start    time.Time
}

// run calls test while a controller runs; job, if any, is there from the start. It finished
// when the bubble's time began, at c.start.
func run(t *testing.T, job func(start time.Time) *batch.Job, test func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset(), start: time.Now()}
		if job != nil {
			if err := c.client.Tracker().Add(job(c.start)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(c.client, 0)
		c.ttl = New(ctx, factory.Batch().V1().Jobs(), c.client)
		c.ttl.deletionDuration = newDeletionDuration()
		c.registry = k8smetrics.NewKubeRegistry()
		c.registry.MustRegister(c.ttl.deletionDuration)
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.ttl.Run(ctx, 2)
		}()
		defer func() {
			cancel()
			<-done
			factory.Shutdown()
		}()
		c.until(time.Second) // caches are synced
		test(c)
	})
}

// until lets time pass until so long after the start.
func (c *cluster) until(d time.Duration) {
	c.t.Helper()
	time.Sleep(d - time.Since(c.start))
	synctest.Wait()
}

func (c *cluster) update(change func(*batch.Job)) {
	c.t.Helper()
	obj, err := c.client.Tracker().Get(jobs, "default", "job")
	if err != nil {
		c.t.Fatal(err)
	}
	job := obj.(*batch.Job).DeepCopy()
	version, _ := strconv.Atoi(job.ResourceVersion)
	job.ResourceVersion = strconv.Itoa(version + 1)
	change(job)
	if err := c.client.Tracker().Update(jobs, job, "default"); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// requests lists what was sent for single Jobs since the last call.
func (c *cluster) requests() string {
	var all []string
	for _, action := range c.client.Actions() {
		switch a := action.(type) {
		case clienttesting.DeleteAction:
			o := a.GetDeleteOptions()
			all = append(all, fmt.Sprintf("delete %s %s uid=%s version=%s", a.GetName(), *o.PropagationPolicy, *o.Preconditions.UID, *o.Preconditions.ResourceVersion))
		case clienttesting.GetAction:
			all = append(all, "get "+a.GetName())
		}
	}
	c.client.ClearActions()
	return strings.Join(all, ", ")
}

func (c *cluster) want(when, requests string) {
	c.t.Helper()
	if got := c.requests(); got != requests {
		c.t.Errorf("%s: requests %q, want %q", when, got, requests)
	}
}

const deleted = "get job, delete job Foreground uid=uid version="

func ttl(seconds int32) func(*batch.Job) {
	return func(job *batch.Job) { job.Spec.TTLSecondsAfterFinished = &seconds }
}

func finished(seconds int32) func(time.Time) *batch.Job {
	return func(start time.Time) *batch.Job { return newJob(batch.JobComplete, &start, seconds) }
}

func TestDeletesWhenExpired(t *testing.T) {
	for _, condition := range []batch.JobConditionType{batch.JobComplete, batch.JobFailed} {
		t.Run(string(condition), func(t *testing.T) {
			run(t, func(start time.Time) *batch.Job { return newJob(condition, &start, 10) }, func(c *cluster) {
				c.until(10*time.Second - time.Millisecond)
				c.want("before", "")
				c.until(10 * time.Second)
				c.want("when expired", deleted+"1")
				c.until(time.Hour)
				c.want("later", "")
			})
		})
	}
}

func TestJobFinishesWhileWatched(t *testing.T) {
	run(t, func(time.Time) *batch.Job { return newJob(batch.JobComplete, nil, 5) }, func(c *cluster) {
		c.until(time.Minute)
		c.want("running", "")
		c.update(func(job *batch.Job) { job.Status = newJob(batch.JobComplete, new(time.Now()), 5).Status })
		c.until(65*time.Second - time.Millisecond)
		c.want("finished", "")
		c.until(65 * time.Second)
		c.want("expired", deleted+"2")
	})
}

// The user may change the TTL of a finished Job (BC094).
func TestTTLIsEdited(t *testing.T) {
	t.Run("raised", func(t *testing.T) {
		run(t, finished(5), func(c *cluster) {
			c.until(3 * time.Second)
			c.update(ttl(60))
			c.until(60*time.Second - time.Millisecond)
			c.want("before", "")
			c.until(60 * time.Second)
			c.want("expired", deleted+"2")
		})
	})
	t.Run("lowered", func(t *testing.T) {
		run(t, finished(600), func(c *cluster) {
			c.until(3 * time.Second)
			c.update(ttl(5))
			c.until(5 * time.Second)
			c.want("expired", deleted+"2")
		})
	})
	t.Run("lowered to what has passed", func(t *testing.T) {
		run(t, finished(600), func(c *cluster) {
			c.until(3 * time.Second)
			c.update(ttl(2))
			c.want("at once", deleted+"2")
		})
	})
	t.Run("taken away", func(t *testing.T) {
		run(t, finished(5), func(c *cluster) {
			c.until(3 * time.Second)
			c.update(func(job *batch.Job) { job.Spec.TTLSecondsAfterFinished = nil })
			c.until(time.Hour)
			c.want("later", "")
		})
	})
	t.Run("given", func(t *testing.T) {
		run(t, finished(-1), func(c *cluster) {
			c.until(3 * time.Second)
			c.update(func(*batch.Job) {}) // some event
			c.update(ttl(5))
			c.until(5 * time.Second)
			c.want("expired", deleted+"3")
		})
	})
}

// What the cache does not show yet is seen in the live read, which is all that is sent then.
func TestLateCache(t *testing.T) {
	tests := map[string]struct {
		live  func(start time.Time) *batch.Job // nil: gone
		later string                           // requests from a minute to an hour later
	}{
		"TTL was raised": {finished(60), deleted + "1"},
		"TTL was taken":  {finished(-1), ""},
		"made anew and not finished": {func(time.Time) *batch.Job {
			return newJob(batch.JobComplete, nil, 5, func(j *batch.Job) { j.UID = "new" })
		}, ""},
		"in deletion": {func(start time.Time) *batch.Job {
			return newJob(batch.JobComplete, &start, 5, func(j *batch.Job) { j.DeletionTimestamp = new(metav1.Now()) })
		}, ""},
		"gone":                {nil, ""},
		"finished at no time": {func(time.Time) *batch.Job { return newJob(batch.JobComplete, &time.Time{}, 5) }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, finished(5), func(c *cluster) {
				c.react("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					if tc.live == nil {
						return true, nil, apierrors.NewNotFound(batch.Resource("jobs"), "job")
					}
					return true, tc.live(c.start), nil
				})
				c.until(59 * time.Second)
				c.want("while the cache is late", "get job")
				c.until(time.Hour)
				c.want("later", tc.later)
			})
		})
	}
}

func TestFailures(t *testing.T) {
	conflict := apierrors.NewConflict(batch.Resource("jobs"), "job", errors.New("changed"))
	notFound := apierrors.NewNotFound(batch.Resource("jobs"), "job")
	internal := apierrors.NewInternalError(errors.New("down"))
	tests := []struct {
		name, verb string
		err        error
		want       string // requests in a minute
	}{
		{"changed in between", "delete", conflict, deleted + "1, " + deleted + "1"},
		{"gone in between", "delete", notFound, deleted + "1"},
		{"deletion fails", "delete", internal, deleted + "1, " + deleted + "1"},
		{"gone before", "get", notFound, "get job"},
		{"read fails", "get", internal, "get job, " + deleted + "1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			run(t, finished(5), func(c *cluster) {
				failures := 1
				c.react(tc.verb, "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					failures--
					return failures >= 0, nil, tc.err
				})
				c.until(time.Minute)
				c.want("in a minute", tc.want)
			})
		})
	}
}

func TestFinishedInTheFuture(t *testing.T) {
	run(t, func(start time.Time) *batch.Job { return newJob(batch.JobComplete, new(start.Add(time.Minute)), 10) }, func(c *cluster) {
		c.until(70*time.Second - time.Millisecond)
		c.want("before", "")
		c.until(70 * time.Second)
		c.want("expired", deleted+"1")
	})
}

// A Job that finished at no time is told once, and is looked at again when it changes.
func TestFinishedAtNoTime(t *testing.T) {
	run(t, func(time.Time) *batch.Job { return newJob(batch.JobComplete, &time.Time{}, 0) }, func(c *cluster) {
		c.until(time.Hour)
		record := c.ttl.Workers()[0].Record()
		if record.Errors != 1 || record.FailingCount != 1 || record.Failing[0].Retrying ||
			record.Failing[0].LastError != "unable to find the time when the Job default/job finished" {
			t.Errorf("record %+v", record)
		}
		c.update(func(job *batch.Job) { job.Status = newJob(batch.JobComplete, &c.start, 0).Status })
		c.want("with a time", deleted+"2")
	})
}

func TestInitialListAndQueue(t *testing.T) {
	run(t, finished(0), func(c *cluster) {
		c.want("at the start", deleted+"1")
		record := c.ttl.Workers()[0].Record()
		if record.Queue != "ttl_jobs_to_delete" || record.Controller != "ttl-after-finished-controller" || record.Workers != 2 {
			t.Errorf("record %+v", record)
		}
	})
}

// The metric tells how long after its expiry a Job was deleted.
func TestDeletionDuration(t *testing.T) {
	run(t, finished(2), func(c *cluster) {
		c.react("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(1100 * time.Millisecond) // a slow API server
			return false, nil, nil
		})
		c.until(time.Minute)
		var want strings.Builder
		want.WriteString("# HELP ttl_after_finished_controller_job_deletion_duration_seconds [ALPHA] The time it took to delete the job since it became eligible for deletion\n" +
			"# TYPE ttl_after_finished_controller_job_deletion_duration_seconds histogram\n")
		// 14 buckets that double, as in upstream's /metrics.
		for _, bound := range []string{"0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "6.4", "12.8", "25.6", "51.2", "102.4", "204.8", "409.6", "819.2", "+Inf"} {
			count := 1
			if strings.HasPrefix(bound, "0.") {
				count = 0
			}
			fmt.Fprintf(&want, "ttl_after_finished_controller_job_deletion_duration_seconds_bucket{le=%q} %d\n", bound, count)
		}
		want.WriteString("ttl_after_finished_controller_job_deletion_duration_seconds_sum 1.1\nttl_after_finished_controller_job_deletion_duration_seconds_count 1\n")
		if err := testutil.GatherAndCompare(c.registry, strings.NewReader(want.String()), "ttl_after_finished_controller_job_deletion_duration_seconds"); err != nil {
			t.Error(err)
		}
	})
	if first, second := registeredDeletionDuration(), registeredDeletionDuration(); first != second {
		t.Error("two collectors for one process")
	}
}

// react puts a reaction in front, while the controller may be sending requests.
func (c *cluster) react(verb, resource string, reaction clienttesting.ReactionFunc) {
	c.client.Lock()
	defer c.client.Unlock()
	c.client.PrependReactor(verb, resource, reaction)
}
