// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

// pair is the one updated and the one old Pod of a node; either may be missing.
type pair struct{ updated, old *daemonPod }

// pairOf returns the Pods of a node that are not going. Two of the same age are no pair: managing has
// to come first.
func pairOf(node *nodeState) (pair, bool) {
	var p pair
	for _, pod := range node.pods {
		if pod.going {
			continue
		}
		place := &p.old
		if pod.updated {
			place = &p.updated
		}
		if *place != nil {
			return pair{}, false
		}
		*place = pod
	}
	return p, true
}

// rollOut plans the next step towards the current template.
func (p *plan) rollOut(s *state, limits limits) {
	if limits.surge > 0 {
		p.rollOutBySurge(s, limits.surge)
		return
	}
	p.rollOutByDeletion(s, limits.unavailable)
}

// rollOutByDeletion takes old Pods down, so that managing creates updated ones. Those that are not
// available go whatever the limit: nothing is lost by them.
func (p *plan) rollOutByDeletion(s *state, maxUnavailable int) {
	unavailable := 0
	var candidates []*daemonPod
	for _, node := range s.nodes {
		if !node.exists {
			continue
		}
		pods, ok := pairOf(node)
		switch {
		case !ok, (pods.updated == nil) == (pods.old == nil):
			if node.wants {
				unavailable++
			}
		case pods.updated != nil:
			if !pods.updated.available {
				unavailable++
			}
		case !pods.old.available:
			unavailable++
			p.drop(pods.old)
		default:
			candidates = append(candidates, pods.old)
		}
	}
	for _, pod := range candidates[:min(len(candidates), max(maxUnavailable-unavailable, 0))] {
		p.drop(pod)
	}
}

// rollOutBySurge creates updated Pods beside old ones that are available, on as many nodes as the limit
// allows, and at once where the old one is not. Managing takes the old one down when it can be spared.
func (p *plan) rollOutBySurge(s *state, maxSurge int) {
	surge, available := 0, 0
	var candidates []string
	var unwanted []*daemonPod
	for _, node := range s.nodes {
		if !node.exists {
			continue
		}
		pods, ok := pairOf(node)
		if !ok {
			surge++
			continue
		}
		if (pods.updated != nil && pods.updated.available) || (pods.old != nil && pods.old.available) {
			available++
		}
		switch {
		case pods.old == nil:
		case pods.updated != nil:
			if pods.updated.available {
				p.drop(pods.old)
			} else {
				surge++
			}
		case !pods.old.available && !node.wants:
			p.drop(pods.old)
		case !pods.old.available:
			p.create = append(p.create, node.name)
		case !node.wants:
			unwanted = append(unwanted, pods.old)
		default:
			candidates = append(candidates, node.name)
		}
	}
	p.create = append(p.create, candidates[:min(len(candidates), max(maxSurge-surge, 0))]...)
	for _, pod := range unwanted[:min(len(unwanted), max(available-s.desired(), 0))] {
		p.drop(pod)
	}
}
