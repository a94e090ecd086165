// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"maps"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestParseIndexes(t *testing.T) {
	for _, tc := range []struct {
		name, text  string
		completions int
		more        []int
		want        string
		total       int
	}{
		{name: "none", completions: 5},
		{name: "one index", completions: 5, more: []int{3}, want: "3", total: 1},
		{name: "two separate", completions: 5, more: []int{1, 3}, want: "1,3", total: 2},
		{name: "two in a row", completions: 9, text: "6,7", want: "6,7", total: 2},
		{name: "three in a row", completions: 9, text: "6,7", more: []int{5}, want: "5-7", total: 3},
		{name: "two intervals", completions: 10, more: []int{0, 1, 2, 5, 6, 7}, want: "0-2,5-7", total: 6},
		{name: "an index and an interval", completions: 10, more: []int{0, 5, 6, 7}, want: "0,5-7", total: 4},
		{name: "interval out of range", completions: 5, text: "0,7-9", want: "0", total: 1},
		{name: "interval partially out of range", completions: 5, text: "0,3-9", want: "0,3,4", total: 3},
		{name: "before and new separate", completions: 10, text: "0,4,5", more: []int{2, 8}, want: "0,2,4,5,8", total: 5},
		{name: "before between new", completions: 10, text: "3", more: []int{2, 4}, want: "2-4", total: 3},
		{name: "new between before", completions: 10, text: "2,4", more: []int{3}, want: "2-4", total: 3},
		{name: "new within before", completions: 10, text: "1-5", more: []int{2}, want: "1-5", total: 5},
		{name: "corrupted interval", completions: 10, text: "0,1-foo,bar,5-3,-1", more: []int{4}, want: "0,4", total: 2},
		{name: "not in order", completions: 10, text: "5,0-2,2", want: "0-2,5", total: 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := parseIndexes(tc.text, tc.completions)
			kept := before.String()
			got := before.with(tc.more...)
			if got.String() != tc.want || got.total() != tc.total {
				t.Errorf("%q with %v = %q, %d in all; want %q, %d", tc.text, tc.more, got, got.total(), tc.want, tc.total)
			}
			if before.String() != kept {
				t.Errorf("the set that was added to has changed from %q to %q", kept, before)
			}
		})
	}
}

func TestIndexesHas(t *testing.T) {
	set := parseIndexes("2-4,8", 20)
	for i, want := range map[int]bool{0: false, 2: true, 3: true, 4: true, 5: false, 8: true, 9: false} {
		if got := set.has(i); got != want {
			t.Errorf("has(%d) = %v", i, got)
		}
	}
	if (indexes{}).has(0) {
		t.Error("the empty set has 0")
	}
}

// TestIndexesProperty: sets behave as sets, and what is written can be read.
func TestIndexesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 40
		draw := func(name string) map[int]bool {
			set := map[int]bool{}
			for _, i := range rapid.SliceOf(rapid.IntRange(0, most-1)).Draw(t, name) {
				set[i] = true
			}
			return set
		}
		a, b := draw("a"), draw("b")
		x := indexes(nil).with(slices.Collect(maps.Keys(a))...)
		y := parseIndexes(x.String(), most)
		if x.String() != y.String() {
			t.Fatalf("%q was read as %q", x, y)
		}
		z := y.with(slices.Collect(maps.Keys(b))...)
		both := 0
		for i := range most {
			if x.has(i) != a[i] || z.has(i) != (a[i] || b[i]) {
				t.Fatalf("index %d: in %q, in %q", i, x, z)
			}
			if a[i] && b[i] {
				both++
			}
		}
		if got := x.overlap(indexes(nil).with(slices.Collect(maps.Keys(b))...)); got != both {
			t.Fatalf("overlap %d, want %d", got, both)
		}
	})
}

func TestIndexFailureAnnotation(t *testing.T) {
	for value, want := range map[string]int{"": 0, "3": 3, "2147483647": 2147483647, "2147483648": 0, "-1": 0, "abc": 0} {
		if got := indexFailures(newPod("p", v1.PodFailed, annotation(batch.JobIndexFailureCountAnnotation, value))); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
	if got := indexFailures(newPod("p", v1.PodFailed)); got != 0 {
		t.Errorf("without annotation: %d", got)
	}
}

func TestPodNamePrefix(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, tc := range []struct {
		name  string
		index int
		want  string
	}{
		{"work", noIndex, ""},
		{"work", 3, "work-3-"},
		{long, 3, long[:55] + "-3-"},
		{long[:57], 1234, long[:52] + "-1234-"},
		{long[:55], 3, long[:55] + "-3-"},
	} {
		job := newJob(1, 1, func(job *batch.Job) { job.Name = tc.name })
		if got := podNamePrefix(job, creation{index: tc.index}); got != tc.want || len(got) > maxNamePrefix {
			t.Errorf("%s, %d: %q, want %q", tc.name, tc.index, got, tc.want)
		}
	}
}

func TestIsIndexFailed(t *testing.T) {
	for _, tc := range []struct {
		name string
		job  *batch.Job
		pod  *v1.Pod
		want bool
	}{
		{"limit 0", newJob(2, 2, indexed, perIndex(0)), newPod("p", v1.PodFailed, index(0), indexFailure(0)), true},
		{"limit 1, first failure", newJob(2, 2, indexed, perIndex(1)), newPod("p", v1.PodFailed, index(0), indexFailure(0)), false},
		{"limit 1, second failure", newJob(2, 2, indexed, perIndex(1)), newPod("p", v1.PodFailed, index(0), indexFailure(1)), true},
		{"still running", newJob(2, 2, indexed, perIndex(0)), newPod("p", v1.PodRunning, index(0), indexFailure(1)), false},
		{"FailIndex", newJob(2, 2, indexed, perIndex(1), failurePolicy(onExit(batch.PodFailurePolicyActionFailIndex, 3))), newPod("p", v1.PodFailed, index(0), exited(3, 0)), true},
		{"ignored", newJob(2, 2, indexed, perIndex(0), failurePolicy(onExit(batch.PodFailurePolicyActionIgnore, 3))), newPod("p", v1.PodFailed, index(0), exited(3, 0)), false},
	} {
		if got := isIndexFailed(tc.job, tc.pod); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func censusOf(job *batch.Job, pods ...*v1.Pod) (*state, *census) {
	s := &state{settings: testSettings(), job: job, pods: pods, leaving: noneLeaving, now: testNow}
	return s, takeCensus(s)
}

func TestFailedIndexes(t *testing.T) {
	before := func(text string) func(*batch.Job) {
		return status(func(s *batch.JobStatus) { s.FailedIndexes = &text })
	}
	failed := func(name string, i int, changes ...func(*v1.Pod)) *v1.Pod {
		return newPod(name, v1.PodFailed, append(changes, index(i), indexFailure(1))...)
	}
	for _, tc := range []struct {
		name string
		job  *batch.Job
		pods []*v1.Pod
		want string
	}{
		{"one new", newJob(2, 5, indexed, perIndex(1)), []*v1.Pod{failed("a", 1)}, "1"},
		{"without finalizer", newJob(2, 5, indexed, perIndex(1)), []*v1.Pod{failed("a", 1, untracked), failed("b", 2)}, "2"},
		{"outside completions", newJob(2, 5, indexed, perIndex(1)), []*v1.Pod{failed("a", 5), failed("b", 1)}, "1"},
		{"more than before", newJob(2, 6, indexed, perIndex(1), before("1")), []*v1.Pod{failed("a", 2), failed("b", 4)}, "1,2,4"},
		{"empty before", newJob(2, 5, indexed, perIndex(1), before("")), []*v1.Pod{failed("a", 2)}, "2"},
		{"before outside completions", newJob(2, 5, indexed, perIndex(1), before("1,7-9")), []*v1.Pod{failed("a", 2)}, "1,2"},
	} {
		if _, c := censusOf(tc.job, tc.pods...); c.failedIndexes.String() != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, c.failedIndexes, tc.want)
		}
	}
}

func TestKeptPods(t *testing.T) {
	job := func(changes ...func(*batch.Job)) *batch.Job {
		return newJob(3, 3, append(changes, indexed, perIndex(2))...)
	}
	failed := func(name string, i, failures int, changes ...func(*v1.Pod)) *v1.Pod {
		return newPod(name, v1.PodFailed, append(changes, index(i), indexFailure(failures))...)
	}
	for _, tc := range []struct {
		name string
		job  *batch.Job
		pods []*v1.Pod
		want map[int]string
	}{
		{"of indexes that have not failed", job(), []*v1.Pod{failed("a", 0, 0), failed("b", 1, 2)}, map[int]string{0: "a"}},
		{"without finalizer", job(), []*v1.Pod{failed("a", 0, 0, untracked)}, map[int]string{}},
		{"outside completions", job(), []*v1.Pod{failed("a", 3, 0)}, map[int]string{}},
		{"replaced by an active one", job(), []*v1.Pod{failed("a", 0, 0), newPod("b", v1.PodRunning, index(0), indexFailure(1))}, map[int]string{}},
		{"index succeeded", job(status(func(s *batch.JobStatus) { s.CompletedIndexes = "0" })), []*v1.Pod{failed("a", 0, 0)}, map[int]string{}},
		{"the one with most failures", job(), []*v1.Pod{failed("a", 0, 1), failed("b", 0, 0)}, map[int]string{0: "a"}},
		{"the later one", job(), []*v1.Pod{failed("a", 0, 1, exited(1, 5)), failed("b", 0, 1, exited(1, 1))}, map[int]string{0: "b"}},
	} {
		_, c := censusOf(tc.job, tc.pods...)
		got := map[int]string{}
		for i, pod := range c.kept {
			got[i] = pod.Name
		}
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	// A namespace in deletion takes no replacement: nothing waits for one.
	s := &state{settings: testSettings(), job: job(), pods: []*v1.Pod{failed("a", 0, 0)}, leaving: noneLeaving, now: testNow, noReplacements: true}
	if c := takeCensus(s); len(c.kept) != 0 {
		t.Errorf("kept %v for a replacement that never comes", c.kept)
	}
}
