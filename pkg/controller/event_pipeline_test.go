// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

func eventObject() *v1.ReplicationController {
	rc := testOwner("owner-uid", "ns")
	rc.ResourceVersion = "5"
	return rc
}

func TestEventPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		pipeline := NewEventPipeline(t.Context(), client, "replicaset-controller")
		recorder := pipeline.Recorder()
		recorder.Eventf(eventObject(), v1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", "a")
		recorder.AnnotatedEventf(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, map[string]string{"k": "v"}, v1.EventTypeWarning, "Bad", "x")
		synctest.Wait()
		if len(client.Actions()) != 0 {
			t.Fatal("an event was sent before Run")
		}

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pipeline.Run(ctx) }()
		synctest.Wait()
		recorder.Event(eventObject(), v1.EventTypeNormal, "SuccessfulCreate", "Created pod: a") // a repeat
		synctest.Wait()
		stop()
		<-done

		if got := verbs(client); got != "create create patch" {
			t.Fatalf("requests %q", got)
		}
		event := client.Actions()[0].(clienttesting.CreateAction).GetObject().(*v1.Event)
		now := metav1.NewTime(time.Now())
		if !strings.HasPrefix(event.Name, "owner.") || event.Namespace != "ns" ||
			event.Reason != "SuccessfulCreate" || event.Message != "Created pod: a" || event.Type != v1.EventTypeNormal ||
			event.Source.Component != "replicaset-controller" || event.ReportingController != "replicaset-controller" ||
			!event.FirstTimestamp.Equal(&now) || !event.LastTimestamp.Equal(&now) {
			t.Errorf("event %+v", event)
		}
		wantRef := v1.ObjectReference{APIVersion: "v1", Kind: "ReplicationController", Namespace: "ns", Name: "owner", UID: "owner-uid", ResourceVersion: "5"}
		if event.InvolvedObject != wantRef {
			t.Errorf("about %+v, want %+v", event.InvolvedObject, wantRef)
		}
		clusterScoped := client.Actions()[1].(clienttesting.CreateAction).GetObject().(*v1.Event)
		if clusterScoped.Namespace != metav1.NamespaceDefault || clusterScoped.Annotations["k"] != "v" {
			t.Errorf("event %+v", clusterScoped)
		}
		if patch := string(client.Actions()[2].(clienttesting.PatchAction).GetPatch()); !strings.Contains(patch, `"count":2`) {
			t.Errorf("repeat: %s", patch)
		}
	})
}

func TestEventPipelineSendsTheRestAtTheEnd(t *testing.T) {
	client := fake.NewClientset()
	pipeline := NewEventPipeline(t.Context(), client, "c")
	pipeline.RunAround(t.Context(), func(ctx context.Context) {
		for i := range 5 {
			pipeline.Recorder().Eventf(eventObject(), v1.EventTypeNormal, fmt.Sprintf("R%d", i), "m")
		}
	})
	if got := len(client.Actions()); got != 5 {
		t.Errorf("%d of 5 events were sent", got)
	}
	pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "Late", "m")
	if got := len(pipeline.queue); got != 0 {
		t.Errorf("%d events wait for nobody", got)
	}
}

func TestEventPipelineRetries(t *testing.T) {
	expired := apierrors.NewForbidden(v1.Resource("events"), "e", errors.New("no"))
	tests := []struct {
		name      string
		err       error
		failures  int32
		wantTries int32
	}{
		{"refused: dropped at once", expired, 1, 1},
		{"no answer: tried again", errors.New("connection reset"), 3, 4},
		{"too many requests: tried again", apierrors.NewTooManyRequests("slow down", 1), 1, 2},
		{"never an answer: dropped in the end", errors.New("connection reset"), 1000, eventTries},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				var tries atomic.Int32
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					return tries.Add(1) <= tc.failures, nil, tc.err
				})
				pipeline := NewEventPipeline(t.Context(), client, "c")
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); pipeline.Run(ctx) }()
				pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "R", "m")
				time.Sleep(eventTries * eventRetryDelay) // of the bubble's clock
				synctest.Wait()
				stop()
				<-done
				if got := tries.Load(); got != tc.wantTries {
					t.Errorf("%d tries, want %d", got, tc.wantTries)
				}
			})
		})
	}
}

func TestEventPipelineStopsWhileItWaitsToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection reset")
		})
		pipeline := NewEventPipeline(t.Context(), client, "c")
		start := time.Now()
		pipeline.RunAround(t.Context(), func(context.Context) {
			pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "R", "m")
			synctest.Wait()
		})
		if took := time.Since(start); took > eventDrainTimeout {
			t.Errorf("it took %v to stop", took)
		}
	})
}

func TestEventPipelineMakesAnExpiredEventAnew(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("patch", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(v1.Resource("events"), "e")
	})
	pipeline := NewEventPipeline(t.Context(), client, "c")
	pipeline.RunAround(t.Context(), func(context.Context) {
		for range 2 {
			pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "R", "m")
		}
	})
	if got := verbs(client); got != "create patch create" {
		t.Errorf("requests %q", got)
	}
}

func TestEventPipelineNeverBlocks(t *testing.T) {
	pipeline := NewEventPipeline(t.Context(), fake.NewClientset(), "c")
	for range eventQueueLength + 10 {
		pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "R", "m")
	}
	if got := len(pipeline.queue); got != eventQueueLength {
		t.Errorf("%d wait", got)
	}
}

// slowAPI answers every request after a second, unless its context ends before.
type slowAPI struct{ answered atomic.Int32 }

func (s *slowAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Second):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	s.answered.Add(1)
	return &http.Response{
		StatusCode: http.StatusCreated,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"ns"}}`)),
	}, nil
}

func TestEventPipelineFinishesTheEventUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowAPI{}
		client, err := clientset.NewForConfig(&rest.Config{Host: "http://api.test", Transport: api, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		pipeline := NewEventPipeline(t.Context(), client, "replicaset-controller")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pipeline.Run(ctx) }()
		pipeline.Recorder().Event(eventObject(), v1.EventTypeNormal, "SuccessfulCreate", "Created pod: a")
		synctest.Wait()
		ended := time.Now()
		stop()
		<-done
		if got := api.answered.Load(); got != 1 {
			t.Errorf("%d events were sent, want the one under way", got)
		}
		if took := time.Since(ended); took > eventDrainTimeout {
			t.Errorf("Run returned %s after the end, want within %s", took, eventDrainTimeout)
		}
	})
}
