// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"fmt"
	"math"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// podLabelIndex is the name of the index of Pods by each of their label pairs.
const podLabelIndex = "podLabels"

// crowded is how many more Pods than when a pair was chosen may carry it before the choice is made
// anew.
const crowded = 16

// Pods finds the Pods that a Service selects. Its methods may be called concurrently.
type Pods struct {
	indexer cache.Indexer

	// mu guards the following field.
	mu     sync.Mutex
	chosen map[cache.ObjectName]choice // of the Services whose selectors have several pairs
}

// choice is the pair of a selector under which a Service's Pods are looked up.
type choice struct {
	selector labelSet
	pair     string
	size     int // how many Pods carried the pair when it was chosen
}

// NewPods returns a Pods over the informer's cache, to which it adds an index unless it is there.
func NewPods(informer cache.SharedIndexInformer) (*Pods, error) {
	indexer := informer.GetIndexer()
	if _, exists := indexer.GetIndexers()[podLabelIndex]; !exists {
		if err := informer.AddIndexers(cache.Indexers{podLabelIndex: indexLabels}); err != nil {
			return nil, fmt.Errorf("indexing pods by their labels: %w", err)
		}
	}
	return &Pods{indexer: indexer, chosen: map[cache.ObjectName]choice{}}, nil
}

func indexLabels(obj any) ([]string, error) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return nil, nil
	}
	keys := make([]string, 0, len(pod.Labels))
	for key, value := range pod.Labels {
		keys = append(keys, pod.Namespace+"/"+key+"="+value)
	}
	return keys, nil
}

// Selected returns the Pods that the Service selects, from the cache: they are read-only. The order
// is arbitrary.
func (p *Pods) Selected(service *v1.Service) ([]*v1.Pod, error) {
	if service.Spec.Selector == nil {
		return nil, nil
	}
	if len(service.Spec.Selector) == 0 {
		objs, err := p.under(cache.NamespaceIndex, service.Namespace)
		if err != nil {
			return nil, err
		}
		return matching(objs, nil)
	}
	objs, err := p.candidates(cache.MetaObjectToName(service), newLabelSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	return matching(objs, service.Spec.Selector)
}

// candidates returns the Pods in the owner's namespace that carry one of the pairs.
func (p *Pods) candidates(owner cache.ObjectName, pairs labelSet) ([]any, error) {
	last, ok := p.remembered(owner, pairs)
	if !ok {
		var err error
		if last, err = p.choose(owner, pairs); err != nil {
			return nil, err
		}
	}
	objs, err := p.under(podLabelIndex, owner.Namespace+"/"+last.pair)
	if len(objs) > 2*last.size+crowded {
		p.Forget(owner)
	}
	return objs, err
}

// Forget drops what is remembered of a Service that is gone.
func (p *Pods) Forget(service cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.chosen, service)
}

func (p *Pods) remembered(service cache.ObjectName, selector labelSet) (choice, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.chosen[service]
	return last, ok && last.selector == selector
}

// choose returns the pair of the selector that the fewest Pods carry. Since that costs a look at
// all pairs, the choice is remembered until twice as many Pods carry the pair.
func (p *Pods) choose(service cache.ObjectName, selector labelSet) (choice, error) {
	pairs := selector.pairs()
	if len(pairs) == 1 {
		return choice{selector: selector, pair: pairs[0], size: math.MaxInt32}, nil
	}
	best := choice{selector: selector, size: math.MaxInt}
	for _, pair := range pairs {
		carriers, err := p.indexer.IndexKeys(podLabelIndex, service.Namespace+"/"+pair)
		if err != nil {
			return choice{}, fmt.Errorf("looking up pods in index %s: %w", podLabelIndex, err)
		}
		if len(carriers) < best.size {
			best.pair, best.size = pair, len(carriers)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chosen[service] = best
	return best, nil
}

func (p *Pods) under(index, key string) ([]any, error) {
	objs, err := p.indexer.ByIndex(index, key)
	if err != nil {
		return nil, fmt.Errorf("looking up pods in index %s: %w", index, err)
	}
	return objs, nil
}

// matching returns those of the Pods that carry all labels of the selector.
func matching(objs []any, selector map[string]string) ([]*v1.Pod, error) {
	pods := make([]*v1.Pod, 0, len(objs))
	for _, obj := range objs {
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return nil, fmt.Errorf("unexpected object type %T in pod indexer", obj)
		}
		if carries(pod, selector) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func carries(pod *v1.Pod, selector map[string]string) bool {
	for key, want := range selector {
		if got, ok := pod.Labels[key]; !ok || got != want {
			return false
		}
	}
	return true
}
