// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// noIndex stands for a Pod of an Indexed Job that has no index, or one that is none.
const noIndex = -1

// interval is the indexes from first to last, both included.
type interval struct{ first, last int }

// indexes is a set of completion indexes: intervals in order that neither overlap nor touch.
type indexes []interval

// parseIndexes reads what String writes, up to completions: an elastic Job may have been
// made smaller than it was. Intervals that cannot be read are left out.
func parseIndexes(text string, completions int) indexes {
	if text == "" {
		return nil
	}
	var found indexes
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil || last < first {
				continue
			}
		}
		if first >= completions {
			continue
		}
		found = append(found, interval{first, min(last, completions-1)})
	}
	return found.normalized()
}

// normalized sorts the intervals and joins those that overlap or touch.
func (x indexes) normalized() indexes {
	slices.SortFunc(x, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	var joined indexes
	for _, i := range x {
		if n := len(joined); n > 0 && i.first <= joined[n-1].last+1 {
			joined[n-1].last = max(joined[n-1].last, i.last)
			continue
		}
		joined = append(joined, i)
	}
	return joined
}

// with returns the set with more indexes in it; x stays as it is.
func (x indexes) with(more ...int) indexes {
	if len(more) == 0 {
		return x
	}
	all := slices.Clone(x)
	for _, i := range more {
		all = append(all, interval{i, i})
	}
	return all.normalized()
}

func (x indexes) has(index int) bool {
	_, found := slices.BinarySearchFunc(x, index, func(i interval, index int) int {
		switch {
		case i.last < index:
			return -1
		case i.first > index:
			return 1
		}
		return 0
	})
	return found
}

// total is how many indexes are in the set.
func (x indexes) total() int {
	n := 0
	for _, i := range x {
		n += i.last - i.first + 1
	}
	return n
}

// String writes the set as the API does: "1,3-5,7", and two in a row as "1,2".
func (x indexes) String() string {
	var text []byte
	for _, i := range x {
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(i.first), 10)
		switch {
		case i.last == i.first+1:
			text = append(text, ',')
		case i.last > i.first:
			text = append(text, '-')
		default:
			continue
		}
		text = strconv.AppendInt(text, int64(i.last), 10)
	}
	return string(text)
}

// completionIndex reads a Pod's index; noIndex when it has none.
func completionIndex(pod *v1.Pod) int {
	value, ok := pod.Annotations[batch.JobCompletionIndexAnnotation]
	if !ok {
		return noIndex
	}
	index, err := strconv.Atoi(value)
	if err != nil || index < 0 {
		return noIndex
	}
	return index
}

// indexSet is the indexes that some Pods have.
type indexSet map[int]struct{}

func indexesOf(pods []*v1.Pod) indexSet {
	found := make(indexSet, len(pods))
	for _, pod := range pods {
		if index := completionIndex(pod); index != noIndex {
			found[index] = struct{}{}
		}
	}
	return found
}

func (s indexSet) has(index int) bool {
	_, ok := s[index]
	return ok
}

// firstPending returns the first count indexes below completions that taken does not know.
func firstPending(count, completions int, taken func(int) bool) []int {
	var free []int
	for index := 0; index < completions && len(free) < count; index++ {
		if !taken(index) {
			free = append(free, index)
		}
	}
	return free
}

// countAnnotation reads a number of failures off a Pod: 0 when it is not there, and not
// what the controller would have written.
func countAnnotation(pod *v1.Pod, annotation string) int {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// indexFailures is how often the Pod's index had failed before it, as far as that counts.
func indexFailures(pod *v1.Pod) int {
	return countAnnotation(pod, batch.JobIndexFailureCountAnnotation)
}

// ignoredIndexFailures is how often it had failed besides.
func ignoredIndexFailures(pod *v1.Pod) int {
	return countAnnotation(pod, batch.JobIndexIgnoredFailureCountAnnotation)
}
