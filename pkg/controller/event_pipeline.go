// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// eventQueueLength is how many events wait to be sent before more are dropped.
	eventQueueLength = 1000
	// eventTries is how often an event that got no answer is sent before it is dropped.
	eventTries = 12
	// eventRetryDelay is the wait between two tries.
	eventRetryDelay = 10 * time.Second
	// eventDrainTimeout is how long events that still wait are sent after the end.
	eventDrainTimeout = 2 * time.Second
)

// EventPipeline takes a controller's events from its recorder to the API server:
// queued without blocking the caller, correlated by client-go's correlator (repeats
// become counts, floods are cut), then created or patched by one goroutine, that of
// Run.
//
// It stands in place of client-go's broadcaster because that one owns goroutines from
// its construction on and ends without sending what it holds. Here nothing runs before
// Run, and Run ends by sending the rest.
type EventPipeline struct {
	client     clientset.Interface
	source     v1.EventSource
	queue      chan *v1.Event
	correlator *record.EventCorrelator
	clock      clock.Clock
	logger     klog.Logger
	closed     atomic.Bool
}

// NewEventPipeline returns a pipeline whose events name component as their source.
func NewEventPipeline(ctx context.Context, client clientset.Interface, component string) *EventPipeline {
	return newEventPipeline(ctx, client, component, clock.RealClock{})
}

func newEventPipeline(ctx context.Context, client clientset.Interface, component string, c clock.Clock) *EventPipeline {
	return &EventPipeline{
		client:     client,
		source:     v1.EventSource{Component: component},
		queue:      make(chan *v1.Event, eventQueueLength),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{Clock: c}),
		clock:      c,
		logger:     klog.FromContext(ctx).WithValues("component", component),
	}
}

// Recorder returns the recorder that feeds the pipeline. It may be used at once, and
// concurrently; events recorded before Run are sent when Run starts, those recorded
// after it has ended are dropped.
func (p *EventPipeline) Recorder() record.EventRecorder {
	return &pipelineRecorder{pipeline: p}
}

// Run sends events until ctx is done, then what still waits, for at most
// two seconds, and returns. The events of a goroutine that outlives ctx may be lost:
// see RunAround.
func (p *EventPipeline) Run(ctx context.Context) {
	defer p.closed.Store(true)
	// The end must not cut off the event that is being sent.
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(eventDrainTimeout, cut) })()
	for {
		select {
		case event := <-p.queue:
			p.send(sending, ctx.Done(), event)
		case <-ctx.Done():
			p.drain(sending, ctx.Done())
			return
		}
	}
}

// RunAround calls run(ctx) with the pipeline running from before its start to after
// its return, so that the last events of a controller that stops are sent too.
func (p *EventPipeline) RunAround(ctx context.Context, run func(context.Context)) {
	pipelineCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(pipelineCtx)
	}()
	defer func() {
		stop()
		<-done
	}()
	run(ctx)
}

// drain sends what still waits until sending is done.
func (p *EventPipeline) drain(sending context.Context, ended <-chan struct{}) {
	for sending.Err() == nil {
		select {
		case event := <-p.queue:
			p.send(sending, ended, event)
		default:
			return
		}
	}
}

// send correlates and writes one event. What the API server refuses is dropped at
// once; what gets no answer is tried again, and once ended is closed a last time.
func (p *EventPipeline) send(ctx context.Context, ended <-chan struct{}, event *v1.Event) {
	result, err := p.correlator.EventCorrelate(event)
	if err != nil {
		p.logger.Error(err, "Could not correlate an event, sending it as it is", "event", klog.KObj(event))
		result = &record.EventCorrelateResult{Event: event}
	}
	if result.Skip {
		return
	}
	tries := eventTries
	for try := 1; ; try++ {
		written, err := p.write(ctx, result)
		if err == nil {
			p.correlator.UpdateState(written)
			return
		}
		if refused(err) {
			p.logRefused(event, err)
			return
		}
		if try >= tries || ctx.Err() != nil {
			p.logger.Error(err, "Dropped an event that could not be sent", "event", klog.KObj(event), "tries", try)
			return
		}
		if !p.wait(ended, eventRetryDelay) {
			tries = try + 1
		}
	}
}

// write patches the event that result repeats, or creates it.
func (p *EventPipeline) write(ctx context.Context, result *record.EventCorrelateResult) (*v1.Event, error) {
	event := result.Event
	events := p.client.CoreV1().Events(event.Namespace)
	if event.Count > 1 && len(result.Patch) > 0 {
		written, err := events.Patch(ctx, event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return written, err
		}
		// Events expire: the one to patch is gone, and is made anew with its count.
	}
	event.ResourceVersion = ""
	return events.Create(ctx, event, metav1.CreateOptions{})
}

// refused says that the API server has answered and that asking again would not help.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err)
}

func (p *EventPipeline) logRefused(event *v1.Event, err error) {
	// Expected where the event's namespace or event itself is on the way out.
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		p.logger.V(5).Info("The API server refused an event", "event", klog.KObj(event), "err", err)
		return
	}
	p.logger.Error(err, "The API server refused an event", "event", klog.KObj(event))
}

// wait returns true after d, and false at once when ended is closed.
func (p *EventPipeline) wait(ended <-chan struct{}, d time.Duration) bool {
	timer := p.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ended:
		return false
	}
}

// pipelineRecorder makes the events. A type of its own keeps the methods of
// record.EventRecorder off the pipeline.
type pipelineRecorder struct {
	pipeline *EventPipeline
}

var _ record.EventRecorder = &pipelineRecorder{}

func (r *pipelineRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.record(object, nil, eventtype, reason, message)
}

func (r *pipelineRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.record(object, nil, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (r *pipelineRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.record(object, annotations, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (r *pipelineRecorder) record(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	p := r.pipeline
	ref, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		p.logger.Error(err, "Could not refer to the object of an event", "type", eventtype, "reason", reason, "message", message)
		return
	}
	p.logger.V(3).Info("Event occurred", "object", klog.KRef(ref.Namespace, ref.Name), "kind", ref.Kind,
		"apiVersion", ref.APIVersion, "type", eventtype, "reason", reason, "message", message)
	if p.closed.Load() {
		return
	}
	select {
	case p.queue <- p.newEvent(ref, annotations, eventtype, reason, message):
	default:
		p.logger.Info("Dropped an event because too many wait to be sent", "reason", reason, "object", klog.KRef(ref.Namespace, ref.Name))
	}
}

func (p *EventPipeline) newEvent(ref *v1.ObjectReference, annotations map[string]string, eventtype, reason, message string) *v1.Event {
	now := metav1.NewTime(p.clock.Now())
	namespace := ref.Namespace
	if namespace == "" {
		// The events of cluster-scoped objects live in the default namespace.
		namespace = metav1.NamespaceDefault
	}
	return &v1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:        util.GenerateEventName(ref.Name, now.UnixNano()),
			Namespace:   namespace,
			Annotations: annotations,
		},
		InvolvedObject:      *ref,
		Reason:              reason,
		Message:             message,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		Type:                eventtype,
		Source:              p.source,
		ReportingController: p.source.Component,
		ReportingInstance:   p.source.Host,
	}
}
