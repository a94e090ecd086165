// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sync"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unsettled holds the DaemonSets with requests of which nobody knows whether they were carried out.
// The zero value is ready; its methods may be called concurrently.
type unsettled struct {
	// mu guards the following field.
	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID
}

func (u *unsettled) add(name types.NamespacedName, uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.uids == nil {
		u.uids = map[types.NamespacedName]types.UID{}
	}
	u.uids[name] = uid
}

func (u *unsettled) has(name types.NamespacedName, uid types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.uids[name]
	return ok && known == uid
}

func (u *unsettled) remove(name types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.uids, name)
}

// predicates keeps the predicate of each DaemonSet, so that a node's event parses no affinity. The zero
// value is ready; its methods may be called concurrently.
type predicates struct {
	// mu guards the following field.
	mu    sync.Mutex
	known map[types.UID]knownPredicate
}

type knownPredicate struct {
	generation int64 // of the DaemonSet that it was made of
	*predicate
}

func (p *predicates) of(ds *apps.DaemonSet, comparisons bool) *predicate {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.known[ds.UID]
	if !ok || known.generation != ds.Generation {
		known = knownPredicate{ds.Generation, newPredicate(ds, comparisons)}
		if p.known == nil {
			p.known = map[types.UID]knownPredicate{}
		}
		p.known[ds.UID] = known
	}
	return known.predicate
}

func (p *predicates) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, uid)
}
