// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a local copy of a resource as the API server has it, finds objects in it by
// index, and tells handlers of each change. Its informers implement client-go's
// cache.SharedIndexInformer, its store cache.Indexer; both can stand wherever client-go's do.
//
//	Source ──▶ reflector ──▶ Store (a new snapshot per batch) ──▶ readers
//	(list, watch)  │
//	               └──▶ backlog of each handler ──▶ handler
//
// One goroutine runs the reflector and one each handler; there is none per object.
//
//   - Source is where objects come from: a client (NewListWatchSource), or something that reads the
//     wire itself.
//   - The reflector lists, in a stream where the server can, else in pages, then watches, and goes on
//     from where it was after each interruption. Whatever the server does, it does not busy-loop.
//   - Store is a persistent map: readers hold a snapshot and never wait; a batch of changes, and all
//     of a list, show at once.
//   - The backlog holds what a handler has not been told yet, coalesced per object. A slow handler
//     costs a record per object that changes, never one per change, and delays nobody.
//
// Promises:
//
//   - What a handler is told of a key is a possible history: Add, then Updates each from what it was
//     told last, then Delete, and perhaps Add again. It ends in the state of the store. A state in
//     between may be left out; a Delete of something the handler was told of may not.
//   - The UID of a key changes only through Delete and Add, also when the watch has missed it. The
//     Delete then brings a cache.DeletedFinalStateUnknown.
//   - The store is changed before handlers are told.
//   - When RunWithContext returns, no goroutine of the informer is left.
//
// Differences from client-go's informers, beside what they cost:
//
//   - After a new list only what has changed is told, not everything.
//   - A handler may be added with any resync period at any time, and is resynced on its own.
//   - A resource version that goes back (etcd was restored from a backup) is noticed, and everything
//     listed anew. It cannot be noticed when the restored server has already passed the version at
//     which the watch goes on; "etcdutl snapshot restore --bump-revision --mark-compacted" is there
//     to rule that out.
//   - The Reflector that watch error handlers are passed can only be asked for its names.
package cache
