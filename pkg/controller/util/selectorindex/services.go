// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Services is an index of Services by their selectors. Its methods may be called concurrently; a
// nil selector selects nothing, an empty one everything in its namespace.
type Services struct {
	// mu guards the following fields and what they hold.
	mu         sync.RWMutex
	namespaces map[string]*namespace
}

// namespace holds the Services of one namespace that select something.
type namespace struct {
	services map[string]*selector            // by name
	byPair   map[string]map[string]*selector // under one pair of each, by name
	all      map[string]*selector            // those that select everything, by name
}

// selector is the selector of one Service.
type selector struct {
	pairs []string // sorted
	under string   // the pair that it is filed under; empty when there is none
}

// NewServices returns an empty index.
func NewServices() *Services { return &Services{namespaces: map[string]*namespace{}} }

// Set takes the selector of a Service in, in place of the one it had.
func (s *Services) Set(service *v1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if service.Spec.Selector == nil {
		s.deleteLocked(service.Namespace, service.Name)
		return
	}
	pairs := pairsOf(service.Spec.Selector)
	if ns, ok := s.namespaces[service.Namespace]; ok {
		if old, ok := ns.services[service.Name]; ok && slices.Equal(old.pairs, pairs) {
			return
		}
	}
	s.deleteLocked(service.Namespace, service.Name)
	ns, ok := s.namespaces[service.Namespace]
	if !ok {
		ns = &namespace{services: map[string]*selector{}, byPair: map[string]map[string]*selector{}, all: map[string]*selector{}}
		s.namespaces[service.Namespace] = ns
	}
	ns.add(service.Name, &selector{pairs: pairs})
}

// Delete takes a Service out.
func (s *Services) Delete(service *v1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteLocked(service.Namespace, service.Name)
}

// Affected returns the Services that the change concerns: all that select the Pod or, where only
// its labels have changed, those that select it no longer or newly. The order is arbitrary.
func (s *Services) Affected(change Change) []cache.ObjectName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ns, ok := s.namespaces[change.Namespace]
	if !ok {
		return nil
	}
	found := ns.selecting(change.labels.pairs())
	if change.oldLabels != "" {
		old := ns.selecting(change.oldLabels.pairs())
		if change.labelsOnly {
			found = difference(found, old)
		} else {
			found = union(found, old)
		}
	}
	names := make([]cache.ObjectName, 0, len(found))
	for name := range found {
		names = append(names, cache.ObjectName{Namespace: change.Namespace, Name: name})
	}
	return names
}

// add files a selector under the pair that has the fewest so far.
func (n *namespace) add(name string, sel *selector) {
	n.services[name] = sel
	if len(sel.pairs) == 0 {
		n.all[name] = sel
		return
	}
	sel.under = slices.MinFunc(sel.pairs, func(a, b string) int { return len(n.byPair[a]) - len(n.byPair[b]) })
	bucket, ok := n.byPair[sel.under]
	if !ok {
		bucket = map[string]*selector{}
		n.byPair[sel.under] = bucket
	}
	bucket[name] = sel
}

func (s *Services) deleteLocked(namespaceName, name string) {
	ns, ok := s.namespaces[namespaceName]
	if !ok {
		return
	}
	sel, ok := ns.services[name]
	if !ok {
		return
	}
	delete(ns.services, name)
	delete(ns.all, name)
	delete(ns.byPair[sel.under], name)
	if len(ns.byPair[sel.under]) == 0 {
		delete(ns.byPair, sel.under)
	}
	if len(ns.services) == 0 {
		delete(s.namespaces, namespaceName)
	}
}

// selecting returns the names of the Services that select what has these pairs.
func (n *namespace) selecting(pairs []string) map[string]struct{} {
	found := map[string]struct{}{}
	for name := range n.all {
		found[name] = struct{}{}
	}
	for _, pair := range pairs {
		for name, sel := range n.byPair[pair] {
			if contains(pairs, sel.pairs) {
				found[name] = struct{}{}
			}
		}
	}
	return found
}

func union(a, b map[string]struct{}) map[string]struct{} {
	for name := range b {
		a[name] = struct{}{}
	}
	return a
}

// difference returns what is in one of a and b alone.
func difference(a, b map[string]struct{}) map[string]struct{} {
	for name := range b {
		if _, both := a[name]; both {
			delete(a, name)
		} else {
			a[name] = struct{}{}
		}
	}
	return a
}
