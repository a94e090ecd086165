// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kcm-dev/kcm/test/integration/framework/golden"
)

// pollInterval is how often a condition is looked at.
const pollInterval = 50 * time.Millisecond

// maxDump bounds the objects that a failed wait prints in full; of more, one line each.
const maxDump = 25

// WaitFor waits until the condition holds. An error of the condition means not
// yet, and the last one is shown when the time is up: under faults, requests
// fail. Then the test fails with what it waited for and with the objects and
// events of the Env's namespaces.
func (e *Env) WaitFor(t testing.TB, what string, timeout time.Duration, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	began := time.Now()
	err := poll(t.Context(), timeout, condition)
	if err == nil {
		return
	}
	var dump strings.Builder
	e.Dump(&dump)
	t.Fatalf("waited %v for %s: %v\n%s", time.Since(began).Round(time.Millisecond), what, err, dump.String())
}

// Never fails the test when the condition holds at any look within the time.
func (e *Env) Never(t testing.TB, what string, within time.Duration, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	began := time.Now()
	if poll(t.Context(), within, condition) == nil {
		var dump strings.Builder
		e.Dump(&dump)
		t.Fatalf("after %v: %s\n%s", time.Since(began).Round(time.Millisecond), what, dump.String())
	}
}

// poll returns nil when the condition holds, else why it does not.
func poll(ctx context.Context, timeout time.Duration, condition func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %v", timeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		ok, err := condition(ctx)
		if ok && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("%w; last error: %w", context.Cause(ctx), last)
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// Dump writes the objects and events of the Env's namespaces, for people.
func (e *Env) Dump(w io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout) // the test's may be done
	defer cancel()
	for _, ns := range e.ownNamespaces() {
		fmt.Fprintf(w, "--- namespace %s\n", ns)
		objects, err := e.suite.purge.list(ctx, ns)
		if err != nil {
			fmt.Fprintf(w, "(incomplete: %v)\n", err)
		}
		dumpObjects(w, objects)
		events, err := e.Client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			fmt.Fprintf(w, "(no events: %v)\n", err)
			continue
		}
		for _, event := range events.Items {
			fmt.Fprintf(w, "%s %s/%s %s %s ×%d: %s (%s)\n", eventTime(event).Format("15:04:05"), event.InvolvedObject.Kind,
				event.InvolvedObject.Name, event.Type, event.Reason, max(1, event.Count), event.Message, event.Source.Component)
		}
	}
}

func eventTime(event corev1.Event) time.Time {
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}

// dumpObjects writes objects that say something; the ones that every namespace has do not.
func dumpObjects(w io.Writer, objects []unstructured.Unstructured) {
	shown := 0
	for _, obj := range objects {
		switch kind, name := obj.GetKind(), obj.GetName(); {
		case kind == "Event", kind == "ConfigMap" && name == "kube-root-ca.crt", kind == "ServiceAccount" && name == "default":
			continue
		}
		shown++
		if shown > maxDump {
			fmt.Fprintf(w, "%s %s (finalizers %v, deleted %v)\n", obj.GetKind(), obj.GetName(), obj.GetFinalizers(), obj.GetDeletionTimestamp())
			continue
		}
		obj.SetManagedFields(nil)
		fmt.Fprintf(w, "---\n%s", golden.YAML(obj.Object))
	}
}
