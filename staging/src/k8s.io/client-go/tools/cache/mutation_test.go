// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestMutationDetector(t *testing.T) {
	t.Setenv(mutationDetectorVariable, "false")
	if newMutationDetector("pods") != nil {
		t.Error("it is on although it was not asked for")
	}
	t.Setenv(mutationDetectorVariable, "true")
	var failures []string
	live(t, func(s *fakeServer, i *Informer) {
		i.mutations.fail = func(message string) { failures = append(failures, message) }
		s.write("a")
	}, func(t *testing.T, s *fakeServer, i *Informer, _ *recorder) {
		s.write("b")
		time.Sleep(3 * mutationWindow)
		synctest.Wait()
		if len(failures) != 0 {
			t.Errorf("failures %q, but nothing has changed", failures)
		}
		if n := len(i.mutations.young) + len(i.mutations.old); n != 0 {
			t.Errorf("%d objects are still looked at", n)
		}
		s.write("c")
		synctest.Wait()
		obj, _, _ := i.GetStore().GetByKey("ns1/c")
		time.Sleep(mutationWindow)
		i.mutations.mu.Lock() // Not while it checks.
		obj.(*corev1.Pod).Labels = map[string]string{"changed": "yes"}
		i.mutations.mu.Unlock()
		time.Sleep(2 * mutationCheckPeriod)
		synctest.Wait()
		if len(failures) == 0 || !strings.Contains(failures[0], "*v1.Pod") || !strings.Contains(failures[0], "changed") {
			t.Errorf("failures %q, want one that shows the change", failures)
		}
	})
}

// What was changed between the last check and the end is found at the end.
func TestMutationAtTheEnd(t *testing.T) {
	t.Setenv(mutationDetectorVariable, "1")
	var failures []string
	live(t, func(s *fakeServer, i *Informer) {
		i.mutations.fail = func(message string) { failures = append(failures, message) }
		s.write("a")
	}, func(_ *testing.T, _ *fakeServer, i *Informer, _ *recorder) {
		i.mutations.mu.Lock() // Not while it checks.
		defer i.mutations.mu.Unlock()
		i.GetStore().List()[0].(*corev1.Pod).Name = "changed"
	})
	if len(failures) != 1 {
		t.Errorf("failures %q", failures)
	}
}

// The detector ends the process.
func TestMutationPanics(t *testing.T) {
	t.Setenv(mutationDetectorVariable, "true")
	d := newMutationDetector("pods")
	pod := newPod("x", "a", "1")
	d.add(pod)
	d.check()
	pod.Name = "b"
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "cache of pods") {
			t.Errorf("panic %v", p)
		}
	}()
	d.check()
}
