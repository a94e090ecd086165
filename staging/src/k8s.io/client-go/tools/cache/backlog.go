// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "math"

// backlog is what one handler has not been told yet. It holds one record per object, however many
// changes the object has gone through: the handler is taken from what it knows to what is so now.
// Keys are served in the order in which they first changed.
//
// All objects of the store (when the handler is new, or at a resync) are not queued at all: the
// backlog walks over a snapshot in the order of hashes, and steps over keys that have changed since
// the snapshot was taken, for those are told by their records.
//
// It is plain data: no lock, no goroutine.
type backlog struct {
	records map[string]*record
	// order[head:] are the records in their order.
	order []*record
	head  int
	// initial counts the records that belong to the initial list.
	initial int
	walk    walk
}

// record takes the handler, for one key, from what it knows to what is so now. In this order:
//
//	gone  != nil   OnDelete(gone), which ends known
//	next  != nil   OnUpdate(known, next) if known lives on, else OnAdd(next)
//	ended != nil   OnDelete(ended), which ends next
type record struct {
	key               string
	known             any // nil when the handler does not know of an object
	gone, next, ended any
	initial           bool // next is a part of the initial list
}

type walkKind int

const (
	// noWalk: nothing of the snapshot remains to be told.
	noWalk walkKind = iota
	// initialWalk tells each object of the snapshot as added.
	initialWalk
	// resyncWalk tells each object of the snapshot as updated.
	resyncWalk
)

// walk is the way over a snapshot.
type walk struct {
	kind     walkKind
	snapshot *snapshot
	// position is the hash that comes next: all lower ones have been told.
	position uint64
	// changed are the keys ahead that have changed since, which records tell.
	changed map[string]struct{}
}

func (w *walk) ahead(hash uint64) bool { return w.kind != noWalk && hash >= w.position }

// begin starts a walk. An initial walk is the first that the handler is told; a resync that would
// begin during another walk is left out, since that tells everything as well.
func (b *backlog) begin(kind walkKind, snap *snapshot) {
	if b.walk.kind != noWalk || snap.objects.size == 0 {
		return
	}
	b.walk = walk{kind: kind, snapshot: snap, changed: map[string]struct{}{}}
}

// synced says that everything of the initial list has been taken.
func (b *backlog) synced() bool { return b.walk.kind != initialWalk && b.initial == 0 }

// depth is how many objects wait.
func (b *backlog) depth() int {
	n := len(b.order) - b.head
	if b.walk.kind != noWalk {
		// Hashes are spread evenly, so the position says how much of the walk remains.
		remains := 1 - float64(b.walk.position)/math.MaxUint64
		n += int(math.Ceil(remains * float64(b.walk.snapshot.objects.size)))
	}
	return n
}

func (b *backlog) empty() bool { return b.head == len(b.order) && b.walk.kind == noWalk }

// push adds a change.
func (b *backlog) push(c change) {
	known, initial := c.old, false
	if b.walk.ahead(c.hash) {
		_, before := b.walk.changed[c.key]
		b.walk.changed[c.key] = struct{}{}
		if b.walk.kind == initialWalk && !before && c.old != nil {
			// The handler has not been told of the object yet; and need not be, if it is gone.
			if c.new == nil {
				return
			}
			known, initial = nil, true
		}
	}
	r := b.records[c.key]
	if r == nil {
		r = &record{key: c.key, known: known, initial: initial}
		if b.records == nil {
			b.records = map[string]*record{}
		}
		b.records[c.key] = r
		b.order = append(b.order, r)
		if initial {
			b.initial++
		}
	}
	r.merge(c)
}

func (r *record) merge(c change) {
	switch {
	case c.new != nil:
		// An object that has come and gone untold makes room for its successor.
		r.next, r.ended = c.new, nil
	case r.next == nil:
		if r.gone == nil {
			r.gone = c.final
		}
	case r.known != nil && r.gone == nil:
		r.next, r.gone = nil, c.final
	default:
		r.ended = c.final
	}
}

// notification is one call of a handler.
type notification struct {
	kind     notificationKind
	old, obj any
	initial  bool
}

type notificationKind int8

const (
	added notificationKind = iota
	updated
	deleted
)

// take moves about n notifications to the batch: first of records, so that live changes do not wait
// for a walk, then as many of the walk, so that it does not wait for ever either.
func (b *backlog) take(batch []notification, n int) []notification {
	for range n {
		r := b.pop()
		if r == nil {
			break
		}
		batch = r.appendTo(batch)
	}
	return b.step(batch, n)
}

func (b *backlog) pop() *record {
	if b.head == len(b.order) {
		return nil
	}
	r := b.order[b.head]
	b.order[b.head] = nil
	b.head++
	delete(b.records, r.key)
	if r.initial {
		b.initial--
	}
	switch {
	case b.head == len(b.order):
		b.order, b.head = b.order[:0], 0
		if cap(b.order) > keepCapacity { // What a storm has grown is given back.
			b.order, b.records = nil, nil
		}
	case b.head > keepCapacity && b.head > len(b.order)/2:
		b.order = append([]*record(nil), b.order[b.head:]...)
		b.head = 0
	}
	return r
}

const keepCapacity = 1024

func (r *record) appendTo(batch []notification) []notification {
	alive := r.known != nil
	if r.gone != nil {
		batch = append(batch, notification{kind: deleted, obj: r.gone})
		alive = false
	}
	switch {
	case r.next != nil && alive:
		batch = append(batch, notification{kind: updated, old: r.known, obj: r.next})
	case r.next != nil:
		batch = append(batch, notification{kind: added, obj: r.next, initial: r.initial})
	}
	if r.ended != nil {
		batch = append(batch, notification{kind: deleted, obj: r.ended})
	}
	return batch
}

// step goes on with the walk for n objects or a few more: those of one hash go together, since the
// position is between hashes.
func (b *backlog) step(batch []notification, n int) []notification {
	w := &b.walk
	if w.kind == noWalk {
		return batch
	}
	for l := range w.snapshot.objects.from(w.position) {
		if n <= 0 && l.hash > w.position {
			w.position = l.hash
			return batch
		}
		w.position = l.hash
		n--
		if _, told := w.changed[l.key]; told {
			continue
		}
		if _, waits := b.records[l.key]; waits {
			continue // It has changed before a resync began.
		}
		if w.kind == initialWalk {
			batch = append(batch, notification{kind: added, obj: l.value.obj, initial: true})
		} else {
			batch = append(batch, notification{kind: updated, old: l.value.obj, obj: l.value.obj})
		}
	}
	b.walk = walk{}
	return batch
}
