// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
)

const (
	// settleDelay is how long a request of unknown outcome may still be on its way in the
	// API server, after which a live list tells what became of it.
	settleDelay = time.Second
	// terminatingMemory is how long a Job is not asked to create Pods again after its
	// namespace refused one for being in deletion, which is a state without return.
	terminatingMemory = 5 * time.Minute
)

// memory is what the controller must remember of Jobs between two syncs and cannot read
// from a cache.
type memory struct {
	// mu guards the following fields.
	mu   sync.Mutex
	jobs map[types.NamespacedName]*jobMemory
}

// jobMemory is the memory of one Job. Only the Job's own sync uses it, and the worker runs
// one sync per Job at a time.
type jobMemory struct {
	uid types.UID
	// backoff is the record as of the last sync; nil before the first one.
	backoff *backoffRecord
	// current: the cache of Jobs has shown the Job as the manager before this one has left it.
	current bool
	// trusted: the cache of Pods has seen all that was written before. From then on the guard
	// sees to that.
	trusted bool
	// doubtUntil is the version that the cache of Pods has to reach to be trusted; when empty,
	// that of the barrier.
	doubtUntil string
	// unsettled is when a request last ended without telling what became of it.
	unsettled time.Time
	// namespaceTerminating is when the namespace refused a Pod for being in deletion.
	namespaceTerminating time.Time
}

func newMemory() *memory { return &memory{jobs: map[types.NamespacedName]*jobMemory{}} }

// of returns the memory of the Job. That of another UID under its name is thrown away.
func (m *memory) of(name types.NamespacedName, uid types.UID) *jobMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[name]
	if !ok || j.uid != uid {
		j = &jobMemory{uid: uid}
		m.jobs[name] = j
	}
	return j
}

// forget drops what is remembered of the Job if it has this UID, or any when uid is empty.
func (m *memory) forget(name types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j, ok := m.jobs[name]; ok && (uid == "" || j.uid == uid) {
		delete(m.jobs, name)
	}
}

// barrier is the version of the API server's data when this controller began: nothing that
// another manager has written is newer. It is asked for once.
type barrier struct {
	// mu guards the following field.
	mu    sync.Mutex
	known string
}

func (b *barrier) version(ctx context.Context, client clientset.Interface) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known != "" {
		return b.known, nil
	}
	// The version of a list is that of the data, whatever is in the list.
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("asking for the version of the pods: %w", err)
	}
	b.known = list.ResourceVersion
	return b.known, nil
}
