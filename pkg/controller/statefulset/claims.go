// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var podKind = v1.SchemeGroupVersion.WithKind("Pod")

// claim is one claim that a Pod of the set is to have.
type claim struct {
	name     string
	template *v1.PersistentVolumeClaim
	// held is the claim in the cache; nil when it is not there.
	held *v1.PersistentVolumeClaim
}

// claimsOf returns the claims of an ordinal, in the order of their templates.
func claimsOf(set *apps.StatefulSet, ordinal int, get func(name string) *v1.PersistentVolumeClaim) []claim {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	claims := make([]claim, 0, len(set.Spec.VolumeClaimTemplates))
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		name := claimName(set, template, ordinal)
		claims = append(claims, claim{name: name, template: template, held: get(name)})
	}
	return claims
}

// newClaim returns the claim to be created for a Pod within the range. Its maps are its
// own: a template's belong to the cache.
func newClaim(set *apps.StatefulSet, c claim) *v1.PersistentVolumeClaim {
	made := c.template.DeepCopy()
	made.Name = c.name
	made.Namespace = set.Namespace
	made.Status = v1.PersistentVolumeClaimStatus{}
	if made.Labels == nil {
		made.Labels = map[string]string{}
	}
	if set.Spec.Selector != nil {
		maps.Copy(made.Labels, set.Spec.Selector.MatchLabels)
	}
	made.OwnerReferences, _ = retention{set: set}.refs(made)
	return made
}

// retentionPolicy says whether claims go with the set, and with their Pod on a
// scale-down. What is not said is to be kept.
func retentionPolicy(set *apps.StatefulSet) (deleteWithSet, deleteOnScaleDown bool) {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false, false
	}
	return policy.WhenDeleted == apps.DeletePersistentVolumeClaimRetentionPolicyType,
		policy.WhenScaled == apps.DeletePersistentVolumeClaimRetentionPolicyType
}

// retention decides who owns the claims of one Pod: what owns them takes them along
// when it is deleted.
type retention struct {
	set *apps.StatefulSet
	// pod is nil while it is to be created.
	pod *v1.Pod
	// condemned says that the Pod is outside the set's range.
	condemned bool
}

// verdict is what retention finds a claim to be.
type verdict int

const (
	upToDate verdict = iota
	outdated
	// conflicting: something else is the claim's controller; it decides then, and ours
	// are no owners. An outdated claim may be conflicting too: refs tells.
	conflicting
)

// refs returns the owners that the claim is to have, and whether it has them.
func (r retention) refs(held *v1.PersistentVolumeClaim) ([]metav1.OwnerReference, verdict) {
	deleteWithSet, deleteOnScaleDown := retentionPolicy(r.set)
	wantPod := deleteOnScaleDown && r.condemned && r.pod != nil
	wantSet := deleteWithSet && !wantPod
	found := upToDate
	if r.hasOtherController(held) {
		found = conflicting
		wantPod, wantSet = false, false
	} else if r.hasStaleRef(held) {
		// The owner is gone, and the garbage collector is about to delete the claim.
		return held.OwnerReferences, upToDate
	}
	var refs []metav1.OwnerReference
	var hasSet, hasPod, other bool
	for _, ref := range held.OwnerReferences {
		switch {
		case r.isSet(ref):
			hasSet, other = true, other || !isController(ref)
		case r.isPod(ref):
			hasPod, other = true, other || !isController(ref)
		default:
			refs = append(refs, ref)
		}
	}
	if hasSet == wantSet && hasPod == wantPod && !other {
		return held.OwnerReferences, found
	}
	if wantSet {
		refs = append(refs, *metav1.NewControllerRef(r.set, controllerKind))
	}
	if wantPod {
		refs = append(refs, *metav1.NewControllerRef(r.pod, podKind))
	}
	return refs, outdated
}

// isSet says whether a reference names the set, with whatever UID.
func (r retention) isSet(ref metav1.OwnerReference) bool {
	return ref.APIVersion == controllerKind.GroupVersion().String() && ref.Kind == controllerKind.Kind && ref.Name == r.set.Name
}

// isPod says the same of the Pod.
func (r retention) isPod(ref metav1.OwnerReference) bool {
	return r.pod != nil && ref.APIVersion == "v1" && ref.Kind == podKind.Kind && ref.Name == r.pod.Name
}

func (r retention) hasOtherController(held *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(held.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return isController(ref) && !r.isSet(ref) && !r.isPod(ref)
	})
}

func (r retention) hasStaleRef(held *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(held.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return r.isSet(ref) && ref.UID != r.set.UID || r.isPod(ref) && ref.UID != r.pod.UID
	})
}

func isController(ref metav1.OwnerReference) bool {
	return ref.Controller != nil && *ref.Controller
}

// isDoomed says whether a claim belongs to a Pod of this name that is gone: it will be
// deleted, and a Pod that is created now would lose it under its feet.
func isDoomed(set *apps.StatefulSet, podName string, claims []claim) bool {
	if _, deleteOnScaleDown := retentionPolicy(set); !deleteOnScaleDown {
		return false
	}
	return slices.ContainsFunc(claims, func(c claim) bool {
		return c.held != nil && slices.ContainsFunc(c.held.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.APIVersion == "v1" && ref.Kind == podKind.Kind && ref.Name == podName
		})
	})
}
