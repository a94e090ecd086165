// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// selectors holds the selector of each budget, so that none is parsed when a Pod changes. Its
// methods may be called concurrently.
type selectors struct {
	// mu guards the following field and what it holds.
	mu         sync.RWMutex
	namespaces map[string]map[string]labels.Selector // by namespace and name of the budget
}

func newSelectors() *selectors {
	return &selectors{namespaces: map[string]map[string]labels.Selector{}}
}

// set takes in the budget's selector. One that is malformed selects nothing here; the budget's sync
// says so in its status.
func (s *selectors) set(pdb *policy.PodDisruptionBudget) {
	parsed, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil {
		parsed = labels.Nothing()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ns, ok := s.namespaces[pdb.Namespace]
	if !ok {
		ns = map[string]labels.Selector{}
		s.namespaces[pdb.Namespace] = ns
	}
	ns[pdb.Name] = parsed
}

func (s *selectors) delete(pdb *policy.PodDisruptionBudget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ns := s.namespaces[pdb.Namespace]
	delete(ns, pdb.Name)
	if len(ns) == 0 {
		delete(s.namespaces, pdb.Namespace)
	}
}

// matching returns the budgets of the namespace that select a Pod with these labels.
func (s *selectors) matching(namespace string, set labels.Set) []cache.ObjectName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var names []cache.ObjectName
	for name, selector := range s.namespaces[namespace] {
		if selector.Matches(set) {
			names = append(names, cache.ObjectName{Namespace: namespace, Name: name})
		}
	}
	return names
}

// podChange is what an event of a Pod means to budgets. It is what the queue holds, since of a Pod
// that is gone, or has other labels by now, the cache does not tell what it was.
type podChange struct {
	namespace, name string
	// labels are a Pod's, sorted, as labels.Set writes them.
	labels string
	// relabelled says that the Pod may be newly under several budgets.
	relabelled bool
}

// String names the change in logs and on debug pages.
func (c podChange) String() string {
	return fmt.Sprintf("%s/%s with labels %s", c.namespace, c.name, c.labels)
}

func newPodChange(pod *v1.Pod, relabelled bool) podChange {
	return podChange{namespace: pod.Namespace, name: pod.Name, labels: labels.Set(pod.Labels).String(), relabelled: relabelled}
}

// set returns the labels of the change.
func (c podChange) set() labels.Set {
	if c.labels == "" {
		return labels.Set{}
	}
	set, err := labels.ConvertSelectorToLabelsMap(c.labels)
	if err != nil {
		return labels.Set{} // the API server admits no labels that do not parse
	}
	return set
}
