// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package selectorindex

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/cache"
)

// Matching returns the Pods of the owner's namespace that a selector with expressions selects, from
// the cache: they are read-only. They are looked up under one of the pairs that the selector demands;
// only one that demands none, such as "not this", is compared with all Pods of the namespace.
func (p *Pods) Matching(owner cache.ObjectName, selector labels.Selector) ([]*v1.Pod, error) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, nil
	}
	var objs []any
	var err error
	if demanded := demandedPairs(requirements); demanded != "" {
		objs, err = p.candidates(owner, demanded)
	} else {
		objs, err = p.under(cache.NamespaceIndex, owner.Namespace)
	}
	if err != nil {
		return nil, err
	}
	pods := make([]*v1.Pod, 0, len(objs))
	for _, obj := range objs {
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return nil, fmt.Errorf("unexpected object type %T in pod indexer", obj)
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// demandedPairs returns the pairs that every Pod of a selector carries; empty when there are none.
func demandedPairs(requirements labels.Requirements) labelSet {
	var pairs []string
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.Values().UnsortedList(); len(values) == 1 {
				pairs = append(pairs, r.Key()+"="+values[0])
			}
		}
	}
	slices.Sort(pairs)
	return labelSet(strings.Join(slices.Compact(pairs), ","))
}
