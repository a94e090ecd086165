// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The simulation runs the decisions of plan.go for several candidates against a model of the API server, in virtual
// time and without goroutines. Requests and answers take their time, get lost, and arrive twice; candidates' clocks
// start anywhere and run at different speeds, whose ratio stays below LeaseDuration/RenewDeadline; candidates are cut
// off for a while, lose their memory (restart under a new name), and give up the lease.

// world is the true state of things.
type world struct {
	now     time.Duration
	events  queue
	seq     int
	rng     *rand.Rand
	faults  faults
	clients []*candidate

	// The one Lease; an empty uid means that there is none. Versions go on when it is made anew.
	uid     types.UID
	version int
	objects int
	record  resourcelock.LeaderElectionRecord
	watches []*candidate

	madeAt   time.Duration // when the lock was
	creating int           // requests to create the lock that have not reached the server
	tampered int
	trouble  string
}

type faults struct {
	// lose, duplicate and delay are probabilities per message; slow is how much longer a delayed one takes.
	lose, duplicate, delay float64
	slow                   time.Duration
	// cut and restart are mean times between them, per candidate; zero for never.
	cut, restart, release time.Duration
	// tamper is the mean time between two deletions of the lock, or blankings of its holder, by hand; zero for never.
	tamper time.Duration
	// until is when faults stop.
	until time.Duration
}

type candidate struct {
	w     *world
	view  view
	rate  float64
	shift time.Duration
	life  int
	name  string
	// wakes counts the wake-ups that were asked for: only the last counts.
	wakes int
	busy  bool
	cut   time.Duration
}

// local is the candidate's clock.
func (c *candidate) local() time.Time {
	return epoch.Add(c.shift + time.Duration(float64(c.w.now)*c.rate))
}

func (c *candidate) acting() bool { return c.view.leading && c.local().Before(c.view.deadline) }

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + max(d, 0), w.seq, do})
}

func (w *world) chance(p float64) bool { return w.now < w.faults.until && w.rng.Float64() < p }

// message delivers do after the network's time, or never, or twice: as often as it returns.
func (w *world) message(c *candidate, do func()) (delivered int) {
	times := 1
	if w.chance(w.faults.duplicate) {
		times = 2
	}
	for range times {
		if w.chance(w.faults.lose) || w.now < c.cut {
			continue
		}
		d := time.Duration(1+w.rng.IntN(20)) * time.Millisecond
		if w.chance(w.faults.delay) {
			d += time.Duration(w.rng.Float64() * float64(w.faults.slow))
		}
		w.after(d, do)
		delivered++
	}
	return delivered
}

// start begins a life of a candidate.
func (c *candidate) start() {
	c.life++
	c.name = fmt.Sprintf("%p/%d", c, c.life)
	c.view = view{identity: c.name, timing: core, lock: c.remembered()}
	c.view.gone, c.view.since = c.view.lock != nil, c.local()
	c.busy = false
	c.wake(0)
}

// remembered is what a candidate knows when it begins. It takes a deleted lock for one that never was; that hole is
// known (doc.go), so here one that begins while the lock is gone remembers that there was one.
func (c *candidate) remembered() *resourcelock.Observation {
	if c.w.uid == "" && c.w.objects > 0 {
		return c.w.observation()
	}
	return nil
}

// wake lets the candidate decide after d of its own clock.
func (c *candidate) wake(d time.Duration) {
	c.wakes++
	wakes := c.wakes
	c.w.after(time.Duration(float64(d)/c.rate)+1, func() {
		if wakes == c.wakes && !c.busy {
			c.decide()
		}
	})
}

func (c *candidate) jitter() time.Duration {
	return time.Duration(float64(core.retry) * (1 + JitterFactor*c.w.rng.Float64()))
}

func (c *candidate) decide() {
	now := c.local()
	next := c.view.next(now)
	switch next.verb {
	case wait:
		c.watch()
		c.wake(next.until.Sub(now))
	case stop:
		c.start() // as a process does that exits when it has lost the lease
	default:
		c.request(next, now)
	}
}

func (c *candidate) watch() {
	for _, other := range c.w.watches {
		if other == c {
			return
		}
	}
	c.w.watches = append(c.w.watches, c)
}

// reply is what the server answers: the version and record after the request, or that it conflicted or found nothing.
type reply struct {
	conflict, missing bool
	lock              *resourcelock.Observation
}

// request sends a step to the server and takes in the first answer, or that there was none in five seconds.
func (c *candidate) request(next step, start time.Time) {
	c.busy = true
	life, answered := c.life, false
	base := 0
	if next.verb == update {
		base, _ = strconv.Atoi(c.view.lock.ResourceVersion)
	}
	done := func(r *reply) {
		if answered || life != c.life {
			return
		}
		answered, c.busy = true, false
		c.take(next, r, start)
		c.wake(0)
	}
	sent := c.w.message(c, func() {
		if next.verb == create {
			c.w.creating--
		}
		r := c.w.serve(next, base)
		c.w.message(c, func() { done(r) })
	})
	if next.verb == create {
		c.w.creating += sent
	}
	limit := 5 * time.Second
	if c.view.leading {
		limit = min(limit, c.view.deadline.Sub(start))
	}
	c.w.after(time.Duration(float64(limit)/c.rate), func() { done(nil) })
}

func (c *candidate) take(next step, r *reply, start time.Time) {
	now := c.local()
	switch {
	case r == nil:
		c.view.failed(start, now, c.jitter())
	case r.conflict:
		c.view.conflicted(now, c.jitter())
	case r.missing:
		c.view.found(nil, now, c.jitter())
	case next.verb == read:
		c.view.found(r.lock, now, c.jitter())
	default:
		c.view.wrote(r.lock, start, now)
	}
}

func (w *world) observation() *resourcelock.Observation {
	return &resourcelock.Observation{Record: w.record, UID: w.uid, ResourceVersion: strconv.Itoa(w.version)}
}

// serve is the API server.
func (w *world) serve(s step, base int) *reply {
	switch {
	case s.verb == read && w.uid == "":
		return &reply{missing: true}
	case s.verb == read:
		return &reply{lock: w.observation()}
	case s.verb == create && w.uid != "", s.verb == update && (w.uid == "" || w.version != base):
		return &reply{conflict: true}
	}
	if w.uid == "" {
		w.objects++
		w.uid, w.madeAt = types.UID(strconv.Itoa(w.objects)), w.now
	}
	w.version++
	w.record = s.record
	seen := w.observation()
	w.tell(seen)
	return &reply{lock: seen}
}

// tell sends a state of the lock to who watches it.
func (w *world) tell(seen *resourcelock.Observation) {
	for _, c := range w.watches {
		life := c.life
		w.message(c, func() {
			if life == c.life && !c.busy && !c.view.leading {
				c.view.found(seen, c.local(), core.retry+c.jitter())
				c.wake(0)
			}
		})
	}
}

// tamper does by hand what no candidate does: it deletes the lock or blanks out its holder. A candidate that has never
// seen the lock takes a deleted one for one that never was, so all must have; and one that does not look between two
// deletions takes them for one, so a lock stays long enough for a look. A create that was under way would put its old record in the
// place of what was deleted, so there is none.
func (w *world) tamper() {
	if w.uid == "" || w.now < w.madeAt+20*time.Second || w.creating > 0 || slices.ContainsFunc(w.clients, func(c *candidate) bool { return c.view.lock == nil }) {
		return
	}
	w.tampered++
	w.version++
	if w.rng.IntN(2) == 0 {
		w.record.HolderIdentity = ""
		w.tell(w.observation())
		return
	}
	w.uid, w.record = "", resourcelock.LeaderElectionRecord{}
	w.tell(nil)
}

// disturb does something again and again, as long as there are faults.
func (w *world) disturb(mean time.Duration, do func()) {
	if mean == 0 {
		return
	}
	w.after(time.Duration(w.rng.ExpFloat64()*float64(mean)), func() {
		if w.now < w.faults.until {
			do()
			w.disturb(mean, do)
		}
	})
}

// check is what must always be true.
func (w *world) check() {
	acting := ""
	for _, c := range w.clients {
		if !c.acting() {
			continue
		}
		if acting != "" {
			w.trouble = fmt.Sprintf("at %v both %s and %s act as leader", w.now, acting, c.name)
		}
		acting = c.name
	}
}

func newWorld(seed uint64, candidates int, f faults) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), faults: f}
	w.disturb(f.tamper, w.tamper)
	for range candidates {
		c := &candidate{w: w, rate: 0.85 + 0.35*w.rng.Float64(), shift: time.Duration(w.rng.Int64N(int64(100 * time.Hour)))}
		w.clients = append(w.clients, c)
		w.after(time.Duration(w.rng.Int64N(int64(5*time.Second))), c.start)
		w.disturb(f.cut, func() { c.cut = min(f.until, w.now+time.Duration(w.rng.ExpFloat64()*float64(8*time.Second))) })
		w.disturb(f.restart, c.start)
		w.disturb(f.release, func() {
			if c.acting() && !c.busy {
				released := step{verb: update, record: c.view.release(c.local())}
				base, _ := strconv.Atoi(c.view.lock.ResourceVersion)
				c.start()
				w.message(c, func() { w.serve(released, base) })
			}
		})
	}
	return w
}

func (w *world) run(until time.Duration) {
	for w.trouble == "" && len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		w.check()
	}
	w.now = until
}

// TestNeverTwoLeaders is the property that all of this is for; the other is that there is a leader again soon after
// the faults stop.
func TestNeverTwoLeaders(t *testing.T) {
	terms, tampered := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		probability := rapid.SampledFrom([]float64{0, 0.02, 0.1, 0.3})
		mean := rapid.SampledFrom([]time.Duration{0, 20 * time.Second, 100 * time.Second})
		f := faults{
			lose: probability.Draw(t, "lose"), duplicate: probability.Draw(t, "duplicate"), delay: probability.Draw(t, "delay"),
			slow: time.Duration(rapid.IntRange(0, 40).Draw(t, "slow")) * time.Second,
			cut:  mean.Draw(t, "cut"), restart: mean.Draw(t, "restart"), release: mean.Draw(t, "release"), tamper: mean.Draw(t, "tamper"),
			until: 5 * time.Minute,
		}
		w := newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 5).Draw(t, "candidates"), f)
		w.run(w.faults.until)
		// A request of the last, slow kind may still change the lease, and the lease of who is gone has to expire on
		// the slowest clock.
		w.run(w.faults.until + w.faults.slow + 45*time.Second)
		if w.trouble != "" {
			t.Fatal(w.trouble)
		}
		acting := 0
		for _, c := range w.clients {
			if c.acting() {
				acting++
			}
		}
		if acting != 1 {
			t.Fatalf("%d leaders some time after the faults, want 1; record: %+v", acting, w.record)
		}
		terms += w.record.LeaderTransitions
		tampered += w.tampered
	})
	if tampered == 0 {
		t.Error("nobody ever tampered with the lock: that part of the simulation proves nothing")
	}
	if terms == 0 {
		t.Error("no candidate ever took over from another: the simulation proves nothing")
	}
}
