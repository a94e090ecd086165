// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command informerbench measures what holding pods costs: client-go's own informers beside ours, in one run, on one
// real API server. hack/benchmark-informers.sh is how it is run, docs/informers-benchmark.md shows the last run.
//
// The parent starts etcd and kube-apiserver and creates the pods as a controller and a kubelet would: the object by
// server-side apply of one manager, the status by another. Then it runs every variant in turn, each in a process of its
// own (this program again, with -variant), so that none sees another's heap. A child reports three times, as one line
// of JSON each: when its cache has synced, and before and after the updates that the parent makes when it is told so.
//
// CPU time is user and system time of the whole child, garbage collection included. Heap is what is live after two
// collections, less what was live before the informer was started.
package main
