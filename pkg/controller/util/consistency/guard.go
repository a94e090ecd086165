// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consistency lets a controller read its own writes.
//
// A controller decides from caches that trail the API server. If it decides again before a cache
// shows what it has just written, it writes twice: a second pod, a second deletion. The Guard
// remembers per owner the newest resource version that was written of each resource, and holds the
// owner's next sync back until the cache has seen it. Deletions, which give no version back, are
// remembered by UID and taken off what the cache still shows.
//
// It stands in place of upstream's hand-kept expectations, and cannot be stuck as those could: it
// compares with what the cache says of itself, not with events that must all arrive and be counted.
// A cache whose version goes backwards (etcd was restored from a backup) resets the Guard, and no
// record outlives MaxAge.
package consistency

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// MaxAge is how long a record can hold a sync back. A watch that is that far behind is reported by
// the informer's own health; upstream's expectations expire after the same time.
const MaxAge = 5 * time.Minute

// Reader is a cache that knows the newest resource version it has seen; an informer's store is one.
type Reader interface {
	LastStoreSyncResourceVersion() string
}

// barrier is a Reader that says itself whether it has seen a version, and notices each time that the
// server's history is replaced by an older one, also between two looks at it. The stores of this
// project's informers are.
type barrier interface {
	HasReached(version string) bool
	Epoch() uint64
}

// StaleError says that a cache has not seen the owner's last write yet. It is no failure: the event
// of that very write brings the owner's key back, so the sync only asks to be called again shortly
// in case it does not (worker.RequeueAfter).
type StaleError struct {
	ReadRV        string
	WroteRV       string
	GroupResource schema.GroupResource
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("read version: %s is not as new as written version: %s for group resource %s", e.ReadRV, e.WroteRV, e.GroupResource)
}

// Guard holds back syncs whose caches are too old. Its methods may be called concurrently.
type Guard struct {
	clock   clock.PassiveClock
	readers map[schema.GroupResource]Reader

	// mu guards the following fields.
	mu     sync.Mutex
	newest map[schema.GroupResource]string // the newest version that each cache has shown
	epochs map[schema.GroupResource]uint64 // of the caches that are barriers
	owners map[types.NamespacedName]*record
}

// record is what one owner has written and a cache may not show yet.
type record struct {
	uid      types.UID
	wrote    map[schema.GroupResource]write
	deleting map[types.UID]time.Time
}

type write struct {
	version string
	at      time.Time
}

// Option configures a Guard.
type Option func(*Guard)

// WithClock sets the time source. Default: the real clock.
func WithClock(c clock.PassiveClock) Option { return func(g *Guard) { g.clock = c } }

// NewGuard returns a Guard over the caches from which a controller decides. Writes to a resource
// that has no reader hold nothing back.
func NewGuard(readers map[schema.GroupResource]Reader, opts ...Option) *Guard {
	g := &Guard{
		clock:   clock.RealClock{},
		readers: readers,
		newest:  map[schema.GroupResource]string{},
		epochs:  map[schema.GroupResource]uint64{},
		owners:  map[types.NamespacedName]*record{},
	}
	for gr, reader := range readers {
		if b, ok := reader.(barrier); ok {
			g.epochs[gr] = b.Epoch()
		}
	}
	for _, opt := range opts {
		opt(g)
	}
	return g
}

// WroteAt remembers that the owner's controller has written an object of the resource at this
// version. Older versions than the remembered one, and unparsable ones, change nothing. Another
// UID under the owner's name forgets what was remembered of its predecessor.
func (g *Guard) WroteAt(owner types.NamespacedName, ownerUID types.UID, gr schema.GroupResource, resourceVersion string) {
	if resourceVersion == "" || g.readers[gr] == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(owner, ownerUID)
	if old, ok := r.wrote[gr]; ok && !Newer(resourceVersion, old.version) {
		return
	}
	if r.wrote == nil {
		r.wrote = map[schema.GroupResource]write{}
	}
	r.wrote[gr] = write{version: resourceVersion, at: g.clock.Now()}
}

// EnsureReady returns a *StaleError while a cache has not seen the owner's last write to its
// resource, and nil when all have. Writes that are seen are forgotten.
func (g *Guard) EnsureReady(owner types.NamespacedName) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.owners[owner]
	if !ok {
		return nil
	}
	now := g.clock.Now()
	for gr, w := range r.wrote {
		read, reached, wentBack := g.readLocked(gr, w.version)
		if wentBack {
			return nil
		}
		if now.Sub(w.at) < MaxAge && !reached {
			return &StaleError{ReadRV: read, WroteRV: w.version, GroupResource: gr}
		}
		delete(r.wrote, gr)
	}
	g.dropIfEmptyLocked(owner, r)
	return nil
}

// Clear forgets the owner if it has this UID, or whatever its UID is when ownerUID is empty. Call
// it when the owner is gone.
func (g *Guard) Clear(owner types.NamespacedName, ownerUID types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.owners[owner]; ok && (ownerUID == "" || r.uid == ownerUID) {
		delete(g.owners, owner)
	}
}

// Deleting remembers that the object's deletion is about to be requested: until Observe sees the
// cache show it, IsDeleting is true.
func (g *Guard) Deleting(owner types.NamespacedName, ownerUID, objUID types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(owner, ownerUID)
	if r.deleting == nil {
		r.deleting = map[types.UID]time.Time{}
	}
	r.deleting[objUID] = g.clock.Now()
}

// DeleteFailed takes Deleting back: the API server has refused the deletion.
func (g *Guard) DeleteFailed(owner types.NamespacedName, objUID types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.owners[owner]; ok {
		delete(r.deleting, objUID)
		g.dropIfEmptyLocked(owner, r)
	}
}

// IsDeleting says whether the object's deletion was requested and the cache may still show it as
// it was before.
func (g *Guard) IsDeleting(owner types.NamespacedName, objUID types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.owners[owner]
	if !ok {
		return false
	}
	at, ok := r.deleting[objUID]
	return ok && g.clock.Since(at) < MaxAge
}

// Observe forgets the deletions of all objects but those in active, the UIDs of the owner's objects
// that the cache shows without a deletion timestamp.
func (g *Guard) Observe(owner types.NamespacedName, active sets.Set[types.UID]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.owners[owner]
	if !ok {
		return
	}
	now := g.clock.Now()
	for uid, at := range r.deleting {
		if !active.Has(uid) || now.Sub(at) >= MaxAge {
			delete(r.deleting, uid)
		}
	}
	g.dropIfEmptyLocked(owner, r)
}

func (g *Guard) recordLocked(owner types.NamespacedName, uid types.UID) *record {
	r, ok := g.owners[owner]
	if !ok || r.uid != uid {
		r = &record{uid: uid}
		g.owners[owner] = r
	}
	return r
}

func (g *Guard) dropIfEmptyLocked(owner types.NamespacedName, r *record) {
	if len(r.wrote) == 0 && len(r.deleting) == 0 {
		delete(g.owners, owner)
	}
}

// readLocked returns the version that a cache shows, and whether that is as new as the given one. It
// resets the Guard when the cache has gone back: versions written before that may never come again.
func (g *Guard) readLocked(gr schema.GroupResource, version string) (read string, reached, wentBack bool) {
	reader := g.readers[gr]
	if b, ok := reader.(barrier); ok {
		if epoch := b.Epoch(); epoch != g.epochs[gr] {
			g.resetLocked()
			g.epochs[gr] = epoch
			return "", false, true
		}
		reached = b.HasReached(version)
		return reader.LastStoreSyncResourceVersion(), reached, false
	}
	read = reader.LastStoreSyncResourceVersion()
	if Newer(g.newest[gr], read) {
		g.resetLocked()
		g.newest[gr] = read
		return read, false, true
	}
	g.newest[gr] = read
	return read, !Newer(version, read), false
}

func (g *Guard) resetLocked() {
	g.newest = map[schema.GroupResource]string{}
	g.owners = map[types.NamespacedName]*record{}
}

// Newer says whether resource version a is newer than b. What cannot be compared, such as a cache that has
// not seen a version yet, is not.
func Newer(a, b string) bool {
	cmp, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && cmp > 0
}
