// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
)

// verb is what is to be done with a replica.
type verb int

const (
	// create the Pod, its missing claims first.
	create verb = iota
	// provide the claims that a waiting Pod misses.
	provide
	// mend what the Pod and its claims must have and do not.
	mend
	// retire: give the claims of a condemned Pod the owner that the policy wants.
	retire
	// remove the Pod.
	remove
)

func (v verb) String() string {
	return [...]string{"create", "provide", "mend", "retire", "remove"}[v]
}

type action struct {
	verb    verb
	replica *replica
}

// step is a list of actions. Where together is set they may be carried out at the same
// time, few at first; otherwise one after the other.
type step struct {
	actions  []action
	together bool
}

// plan is what a sync is to do.
type plan struct {
	steps []step
	// condition, when not nil, is to be in the status.
	condition *apps.StatefulSetCondition
	// blocked, when not nil, is why the roll-out does not go on.
	blocked *blockage
	// conflicts names the claims whose owners are another controller's matter.
	conflicts []string
	// lookAgain, when not zero, is when time alone will have changed the plan.
	lookAgain time.Duration
}

// planner makes the plan. Each of its parts adds steps, and says whether the next part
// may follow: an ordered set does one thing at a time.
type planner struct {
	*state
	plan
	ordered bool
}

// makePlan decides what to do about the state.
func makePlan(s *state) plan {
	p := &planner{state: s, ordered: isOrdered(s.set)}
	if s.set.DeletionTimestamp != nil {
		return p.plan // the garbage collector sees to the Pods
	}
	p.findConflicts()
	if s.set.Spec.UpdateStrategy.Type == apps.RecreateStatefulSetStrategyType && !p.recreate() {
		return p.plan
	}
	if p.tendReplicas() && p.tendCondemned() {
		p.roll()
	}
	return p.plan
}

func (p *planner) add(together bool, actions ...action) {
	if len(actions) > 0 {
		p.steps = append(p.steps, step{actions: actions, together: together})
	}
}

// tendReplicas creates what is missing, and mends what is there.
func (p *planner) tendReplicas() bool {
	var actions []action
	for _, r := range p.replicas {
		do, waits := p.tend(r)
		actions = append(actions, do...)
		if waits && p.ordered {
			p.add(false, actions...)
			return false
		}
	}
	p.add(!p.ordered, actions...)
	return true
}

// tend decides about one replica; waits says that those after it have to wait for it.
func (p *planner) tend(r *replica) (do []action, waits bool) {
	if r.pod == nil {
		if isDoomed(p.set, podName(p.set, r.ordinal), r.claims) {
			return nil, true // the claim's deletion enqueues the set
		}
		return []action{{create, r}}, true
	}
	if podutil.IsPodTerminal(r.pod) {
		// A finished Pod never comes back; its successor is created when it is gone.
		if r.going {
			return nil, true
		}
		return []action{{remove, r}}, true
	}
	if r.going {
		return nil, true
	}
	if r.pod.Status.Phase == v1.PodPending && lacksClaim(r) {
		do = append(do, action{provide, r})
	}
	if p.ordered && !p.isAvailable(r) {
		return append(do, p.wait(r)...), true
	}
	if p.needsMending(r) {
		do = append(do, action{mend, r})
	}
	return do, false
}

func lacksClaim(r *replica) bool {
	for _, c := range r.claims {
		if c.held == nil {
			return true
		}
	}
	return false
}

func (p *planner) needsMending(r *replica) bool {
	return !identityMatches(r.pod, r.ordinal) || !storageMatches(p.set, r.pod, r.ordinal) || p.ownersOutdated(r)
}

func (p *planner) ownersOutdated(r *replica) bool {
	for _, c := range r.claims {
		if c.held == nil {
			continue
		}
		if _, found := (retention{set: p.set, pod: r.pod, condemned: r.condemned}).refs(c.held); found == outdated {
			return true
		}
	}
	return false
}

// findConflicts looks for claims that the retention policy cannot be followed for.
func (p *planner) findConflicts() {
	if deleteWithSet, deleteOnScaleDown := retentionPolicy(p.set); !deleteWithSet && !deleteOnScaleDown {
		return
	}
	for r := range p.all() {
		for _, c := range r.claims {
			if c.held != nil && (retention{set: p.set, pod: r.pod}).hasOtherController(c.held) && r.pod != nil {
				p.conflicts = append(p.conflicts, c.name)
			}
		}
	}
}

// tendCondemned takes the Pods outside the range away, the highest first.
func (p *planner) tendCondemned() bool {
	var owners, removals []action
	for _, r := range p.condemned {
		if p.ownersOutdated(r) {
			owners = append(owners, action{retire, r})
		}
	}
	p.add(!p.ordered, owners...)
	first := p.firstUnhealthy()
	for _, r := range p.condemned {
		if p.ordered && (r.going || !p.isAvailable(r) && r != first && !podutil.IsPodTerminal(r.pod)) {
			return false // it has to be gone, or healthy, before the next may go
		}
		if r.going {
			continue
		}
		removals = append(removals, action{remove, r})
		if p.ordered {
			p.add(false, removals...)
			return false
		}
	}
	p.add(true, removals...)
	return true
}
