// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// minBackoffWait is how long at least to wait for the end of a back-off.
const minBackoffWait = time.Second

// manage brings the number of Pods to what the spec asks for. One sync deletes or creates,
// never both.
func (p *plan) manage(s *state, c *census) {
	p.release = true
	if isSuspended(s.job) {
		p.remove = c.active
		return
	}
	want := wantedActive(s, c)
	active := len(c.active)
	if p.remove = surplus(s, c, max(active-want, 0)); len(p.remove) > 0 {
		return
	}
	missing := want - active
	if replacesOnlyFailed(s.job) {
		missing -= len(c.terminating)
	}
	if missing <= 0 {
		return
	}
	perIndex := isIndexed(s.job) && s.job.Spec.BackoffLimitPerIndex != nil
	if wait := c.backoff.remaining(s.settings, s.now); wait > 0 && !perIndex {
		p.waitFor(max(wait, minBackoffWait))
		return
	}
	missing = min(missing, s.maxCreateDelete)
	switch {
	case perIndex:
		p.createOutOfBackoff(s, c, missing)
	case isIndexed(s.job):
		for _, index := range pendingIndexes(s, c, missing) {
			p.create = append(p.create, creation{index: index})
		}
	default:
		for range missing {
			p.create = append(p.create, creation{index: noIndex})
		}
	}
}

// wantedActive is how many Pods should be active.
func wantedActive(s *state, c *census) int {
	parallelism := int(*s.job.Spec.Parallelism)
	if s.job.Spec.Completions == nil {
		// A work queue: once a Pod has succeeded, the others end by themselves and no new
		// ones are started.
		if c.succeeded > 0 {
			return len(c.active)
		}
		return parallelism
	}
	return max(min(parallelism, int(*s.job.Spec.Completions-c.succeeded)), 0)
}

// surplus chooses the Pods to delete: those for which an Indexed Job has no place, however
// many are wanted, and then, up to atLeast, those that have got least far.
func surplus(s *state, c *census, atLeast int) []*v1.Pod {
	rest := c.active
	var remove []*v1.Pod
	if isIndexed(s.job) {
		remove, rest = misplaced(s, c)
	}
	if more := atLeast - len(remove); more > 0 {
		rest = slices.Clone(rest)
		sort.Sort(controller.ActivePods(rest))
		remove = append(remove, rest[:min(more, len(rest))]...)
	}
	if len(remove) > s.maxCreateDelete {
		remove = remove[:s.maxCreateDelete]
	}
	return remove
}

// misplaced splits the active Pods of an Indexed Job: those without a place, or with one
// that another Pod, which has got further, has too; and the others.
func misplaced(s *state, c *census) (remove, rest []*v1.Pod) {
	byIndex := map[int][]*v1.Pod{}
	for _, pod := range c.active {
		if !hasPlace(s.job, pod) {
			remove = append(remove, pod)
			continue
		}
		index := completionIndex(pod)
		byIndex[index] = append(byIndex[index], pod)
	}
	for _, pod := range c.active {
		if !hasPlace(s.job, pod) {
			continue
		}
		same := byIndex[completionIndex(pod)]
		if len(same) == 1 {
			rest = append(rest, pod)
			continue
		}
		if same != nil {
			sort.Sort(controller.ActivePods(same))
			remove = append(remove, same[:len(same)-1]...)
			rest = append(rest, same[len(same)-1])
			byIndex[completionIndex(pod)] = nil
		}
	}
	return remove, rest
}

// pendingIndexes returns the first indexes that no Pod works on and that have not ended.
func pendingIndexes(s *state, c *census, count int) []int {
	active := indexesOf(c.active)
	var terminating indexSet
	if replacesOnlyFailed(s.job) {
		terminating = indexesOf(c.terminating)
	}
	return firstPending(count, completions(s.job), func(index int) bool {
		return active.has(index) || terminating.has(index) || c.succeededIndexes.has(index) || c.failedIndexes.has(index)
	})
}

// createOutOfBackoff creates Pods for the first pending indexes, but for those that have
// failed too short a while ago.
func (p *plan) createOutOfBackoff(s *state, c *census, count int) {
	for _, index := range pendingIndexes(s, c, count) {
		next := creation{index: index}
		if last := c.kept[index]; last != nil {
			if wait := remainingIndexBackoff(last, s.settings, s.now); wait > 0 {
				p.waitFor(max(wait, minBackoffWait))
				continue
			}
			next.failures, next.ignored = indexFailures(last), ignoredIndexFailures(last)
			if matchFailurePolicy(s.job.Spec.PodFailurePolicy, last).counts {
				next.failures++
			} else {
				next.ignored++
			}
		}
		p.create = append(p.create, next)
	}
}
