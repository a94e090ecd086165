// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// refState is what an owner reference amounts to.
type refState uint8

const (
	// refUnknown: nobody knows yet whether the owner exists.
	refUnknown refState = iota
	// refInvalid: the owner cannot exist where it would have to. Such a dependent is left alone.
	refInvalid
	// refDangling: the owner is gone.
	refDangling
	// refWaiting: the owner is being deleted and waits for its dependents.
	refWaiting
	// refSolid: the owner is there.
	refSolid
)

// refFact is an owner reference and what it amounts to.
type refFact struct {
	ref     *metav1.OwnerReference
	kind    *kind
	version string
	state   refState
}

// itemFacts are what is known of an object when it is decided about.
type itemFacts struct {
	deleting   bool
	finalizers []string
	refs       []refFact
	// hasDependents: somebody refers to it. blocked: with blockOwnerDeletion. cycle: an owner of it
	// is being deleted in the foreground, and so is a dependent of it.
	hasDependents, blocked, cycle bool
}

// itemPlan is what to do with an object. The zero value is: nothing, until something changes.
type itemPlan struct {
	// finish: remove the finalizer foregroundDeletion.
	finish bool
	// drop lists the references to take away. Nothing else is done then.
	drop []*metav1.OwnerReference
	// unblock: first make the object's references non-blocking.
	unblock bool
	// delete: with this policy. Empty: do not delete.
	delete metav1.DeletionPropagation
}

// writes tells whether a request follows from the plan.
func (p itemPlan) writes() bool { return p.finish || len(p.drop) > 0 || p.delete != "" }

// planItem decides about an observed object.
//
// The rules: an object goes when it has owners and all of them are gone, or being deleted in the
// foreground; while one owner is solid, only the references to the others go. Nothing is decided
// while one owner is unknown.
func planItem(f itemFacts) itemPlan {
	if f.deleting {
		return itemPlan{finish: hasFinalizer(f.finalizers, metav1.FinalizerDeleteDependents) && !f.blocked}
	}
	var solid, waiting bool
	var rest []*metav1.OwnerReference
	for _, r := range f.refs {
		switch r.state {
		case refUnknown, refInvalid:
			return itemPlan{}
		case refSolid:
			solid = true
			continue
		case refWaiting:
			waiting = true
		case refDangling:
		}
		rest = append(rest, r.ref)
	}
	switch {
	case len(f.refs) == 0:
		return itemPlan{}
	case solid:
		return itemPlan{drop: rest}
	case waiting && f.hasDependents:
		// Its dependents go before it, as its owner asked; in a cycle nobody could be the first.
		return itemPlan{unblock: f.cycle, delete: metav1.DeletePropagationForeground}
	}
	return itemPlan{delete: policyOf(f.finalizers)}
}

// policyOf returns the policy that an object's finalizers ask for.
func policyOf(finalizers []string) metav1.DeletionPropagation {
	switch {
	case hasFinalizer(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case hasFinalizer(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func hasFinalizer(finalizers []string, name string) bool {
	for _, f := range finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// withoutRefs returns the references that stay when drop goes, and whether a patch that deletes
// by UID would take the wrong ones: one that stays and one that goes may have the same UID.
func withoutRefs(refs []metav1.OwnerReference, drop []*metav1.OwnerReference) (rest []metav1.OwnerReference, ambiguous bool) {
	uids := map[types.UID]bool{}
	for _, d := range drop {
		uids[d.UID] = true
	}
	for i := range refs {
		gone := false
		for _, d := range drop {
			gone = gone || sameRef(d, &refs[i])
		}
		if gone {
			continue
		}
		rest = append(rest, refs[i])
		ambiguous = ambiguous || uids[refs[i].UID]
	}
	return rest, ambiguous
}

func sameRef(a, b *metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}
