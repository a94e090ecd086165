// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"runtime"
	"testing"

	"k8s.io/utils/clock"
)

// A map keeps the room of what was in it.
func TestLanesGiveTheRoomOfTheFirstListBack(t *testing.T) {
	const keys = 200_000
	l := newLanes[int](clock.RealClock{})
	l.markInitial(-1)
	before := liveHeap()
	for i := range keys {
		l.Push(i)
	}
	full := liveHeap()
	for range keys {
		l.Pop()
	}
	if l.Len() != 0 {
		t.Fatalf("%d keys are left", l.Len())
	}
	if after := liveHeap(); after-before > (full-before)/20 {
		t.Errorf("%d bytes stay of the %d that %d keys took", after-before, full-before, keys)
	}
	l.Push(-1)
	if _, initial, _ := l.depth(); initial != 1 {
		t.Error("a mark got lost with the room")
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
