// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ref(apiVersion, kind, name string, uid types.UID, controller ...bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
	if len(controller) > 0 {
		r.Controller = &controller[0]
	}
	return r
}

// short writes owner references as "Kind/name/uid", with a star where it is the controller.
func short(refs []metav1.OwnerReference) string {
	var all []string
	for _, r := range refs {
		text := strings.Join([]string{r.Kind, r.Name, string(r.UID)}, "/")
		if isController(r) {
			text += "*"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestClaimOwners(t *testing.T) {
	const (
		setRef  = "StatefulSet/web/set-uid*"
		podRef  = "Pod/web-0/uid-of-web-0*"
		another = "ConfigMap/x/x*"
	)
	set := func(uid types.UID, controller ...bool) metav1.OwnerReference {
		return ref("apps/v1", "StatefulSet", "web", uid, controller...)
	}
	pod := func(uid types.UID, controller ...bool) metav1.OwnerReference {
		return ref("v1", "Pod", "web-0", uid, controller...)
	}
	other := ref("v1", "ConfigMap", "x", "x", true)
	bystander := ref("v1", "ConfigMap", "y", "y")
	for _, test := range []struct {
		name                    string
		whenDeleted, whenScaled apps.PersistentVolumeClaimRetentionPolicyType
		condemned               bool
		has                     []metav1.OwnerReference
		want                    string
		found                   verdict
	}{
		{"retain", keep, keep, false, nil, "", upToDate},
		{"retain, condemned", keep, keep, true, nil, "", upToDate},
		{"retain takes ours away", keep, keep, false, []metav1.OwnerReference{set("set-uid", true)}, "", outdated},
		{"retain keeps others'", keep, keep, false, []metav1.OwnerReference{bystander, set("set-uid", true)}, "ConfigMap/y/y", outdated},
		{"delete with the set", drop, keep, false, nil, setRef, outdated},
		{"delete with the set, done", drop, keep, false, []metav1.OwnerReference{set("set-uid", true)}, setRef, upToDate},
		{"delete with the set, condemned", drop, keep, true, []metav1.OwnerReference{set("set-uid", true)}, setRef, upToDate},
		{"delete on scale-down, remains", keep, drop, false, nil, "", upToDate},
		{"delete on scale-down, remains again", keep, drop, false, []metav1.OwnerReference{pod("uid-of-web-0", true)}, "", outdated},
		{"delete on scale-down, condemned", keep, drop, true, nil, podRef, outdated},
		{"delete on scale-down, condemned, done", keep, drop, true, []metav1.OwnerReference{pod("uid-of-web-0", true)}, podRef, upToDate},
		{"both, remains", drop, drop, false, nil, setRef, outdated},
		{"both, condemned", drop, drop, true, []metav1.OwnerReference{set("set-uid", true)}, podRef, outdated},
		{"both, condemned, done", drop, drop, true, []metav1.OwnerReference{pod("uid-of-web-0", true)}, podRef, upToDate},
		{"both, remains after all", drop, drop, false, []metav1.OwnerReference{pod("uid-of-web-0", true)}, setRef, outdated},

		{"no controller becomes one, set", drop, keep, false, []metav1.OwnerReference{set("set-uid")}, setRef, outdated},
		{"no controller becomes one, set, said so", drop, keep, false, []metav1.OwnerReference{set("set-uid", false)}, setRef, outdated},
		{"no controller becomes one, pod", keep, drop, true, []metav1.OwnerReference{pod("uid-of-web-0")}, podRef, outdated},
		{"stale set is left to the garbage collector", drop, keep, false, []metav1.OwnerReference{set("older", true)}, "StatefulSet/web/older*", upToDate},
		{"stale pod is left to the garbage collector", keep, drop, true, []metav1.OwnerReference{pod("older", true)}, "Pod/web-0/older*", upToDate},
		{"stale set, kept by the policy of today", keep, keep, false, []metav1.OwnerReference{set("older", true)}, "StatefulSet/web/older*", upToDate},
		{"stale pod, remains", keep, drop, false, []metav1.OwnerReference{pod("older", true)}, "Pod/web-0/older*", upToDate},
		{"another pod's", keep, drop, true, []metav1.OwnerReference{ref("v1", "Pod", "web-1", "u", true)}, "Pod/web-1/u*", conflicting},
		{"another set's", drop, keep, false, []metav1.OwnerReference{ref("apps/v1", "StatefulSet", "db", "u", true)}, "StatefulSet/db/u*", conflicting},
		{"another version of the set", drop, keep, false, []metav1.OwnerReference{ref("apps/v2", "StatefulSet", "web", "set-uid", true)}, "StatefulSet/web/set-uid*", conflicting},
		{"another controller", drop, drop, false, []metav1.OwnerReference{other}, another, conflicting},
		{"another controller, condemned", drop, drop, true, []metav1.OwnerReference{other}, another, conflicting},
		{"another controller and ours", drop, drop, false, []metav1.OwnerReference{other, set("set-uid", true)}, another, outdated},
		{"another controller and ours, condemned", drop, drop, true, []metav1.OwnerReference{pod("uid-of-web-0"), other}, another, outdated},
		{"another owner, no controller", drop, keep, false, []metav1.OwnerReference{bystander}, "ConfigMap/y/y " + setRef, outdated},
	} {
		s := newSet(1, retaining(test.whenDeleted, test.whenScaled))
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.has}}
		rule := retention{set: s, pod: podIn(t, s, 0, "R"), condemned: test.condemned}
		got, found := rule.refs(claim)
		if short(got) != test.want || found != test.found {
			t.Errorf("%s: %q, verdict %d; want %q, %d", test.name, short(got), found, test.want, test.found)
		}
		// What has been put right stays so.
		claim.OwnerReferences = got
		if again, found := rule.refs(claim); found == outdated || short(again) != short(got) {
			t.Errorf("%s, again: %q, verdict %d", test.name, short(again), found)
		}
		for _, r := range got {
			if isController(r) && (r.UID == "set-uid" || r.UID == "uid-of-web-0") && test.found == outdated && (r.BlockOwnerDeletion == nil || !*r.BlockOwnerDeletion) {
				t.Errorf("%s: does not block the owner's deletion", test.name)
			}
		}
	}
}

func TestRetentionPolicy(t *testing.T) {
	if a, b := retentionPolicy(newSet(1)); a || b {
		t.Error("no policy deletes")
	}
	if a, b := retentionPolicy(newSet(1, retaining("", ""))); a || b {
		t.Error("an empty policy deletes")
	}
	if a, b := retentionPolicy(newSet(1, retaining(drop, keep))); !a || b {
		t.Error("whenDeleted")
	}
	if a, b := retentionPolicy(newSet(1, retaining(keep, drop))); a || !b {
		t.Error("whenScaled")
	}
}

func TestIsDoomed(t *testing.T) {
	held := func(refs ...metav1.OwnerReference) claim {
		return claim{held: &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: refs}}}
	}
	gone := ref("v1", "Pod", "web-0", "gone", true)
	for _, test := range []struct {
		name       string
		whenScaled apps.PersistentVolumeClaimRetentionPolicyType
		claims     []claim
		want       bool
	}{
		{"no claims", drop, nil, false},
		{"missing", drop, []claim{{}, {}}, false},
		{"there", drop, []claim{held(), held()}, false},
		{"one of a pod that is gone", drop, []claim{held(), held(gone)}, true},
		{"one of a pod that is gone, others missing", drop, []claim{{}, held(gone)}, true},
		{"without UID", drop, []claim{held(ref("v1", "Pod", "web-0", ""))}, true},
		{"another pod's", drop, []claim{held(ref("v1", "Pod", "web-1", "gone", true))}, false},
		{"the set's", drop, []claim{held(ref("apps/v1", "StatefulSet", "web", "set-uid", true))}, false},
		{"claims are kept", keep, []claim{held(gone)}, false},
	} {
		if got := isDoomed(newSet(1, retaining(keep, test.whenScaled)), "web-0", test.claims); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestNewClaim(t *testing.T) {
	set := newSet(2, withClaim, retaining(drop, keep))
	set.Spec.VolumeClaimTemplates[0].Annotations = map[string]string{"a": "b"}
	before := maps.Clone(set.Spec.VolumeClaimTemplates[0].Labels)
	claims := claimsOf(set, 1, noClaims)
	got := newClaim(set, claims[0])
	if got.Name != "data-web-1" || got.Namespace != "ns" || got.Annotations["a"] != "b" || short(got.OwnerReferences) != "StatefulSet/web/set-uid*" {
		t.Errorf("claim %+v", got)
	}
	if want := map[string]string{"tier": "disk", "app": "web"}; !maps.Equal(got.Labels, want) {
		t.Errorf("labels %v", got.Labels)
	}
	got.Labels["x"], got.Annotations["x"] = "y", "y"
	if template := set.Spec.VolumeClaimTemplates[0]; !maps.Equal(template.Labels, before) || len(template.Annotations) != 1 {
		t.Error("the template's maps are shared")
	}
	set.Spec.VolumeClaimTemplates[0].Labels = nil
	if got := newClaim(set, claims[0]); got.Labels["app"] != "web" {
		t.Errorf("labels of a template without any: %v", got.Labels)
	}
	if got := claimsOf(newSet(1), 0, noClaims); len(got) != 0 {
		t.Errorf("claims of a set without templates: %v", got)
	}
}

func TestParentAndOrdinal(t *testing.T) {
	for name, want := range map[string]struct {
		parent  string
		ordinal int
	}{
		"web-0": {"web", 0}, "web-12": {"web", 12}, "a-1-2": {"a-1", 2}, "web": {"", -1}, "web-": {"", -1}, "web-x": {"", -1}, "web0": {"", -1},
		"web-1x": {"", -1}, "-3": {"", 3}, "7": {"", -1}, "": {"", -1}, "web-99999999999": {"web", -1}, "web-2147483647": {"web", 2147483647},
	} {
		if parent, ordinal := parentAndOrdinal(name); parent != want.parent || ordinal != want.ordinal {
			t.Errorf("%q: %q, %d", name, parent, ordinal)
		}
	}
	set := newSet(1)
	for name, want := range map[string]bool{"web-0": true, "web-99": true, "web2-0": false, "web-a-0": false, "web": false} {
		if got := isMemberOf(set, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}); got != want {
			t.Errorf("member %s: %v", name, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	set := newSet(1)
	pod := podIn(t, set, 3, "R")
	if !identityMatches(pod, 3) || identityMatches(pod, 4) {
		t.Error("a new pod's identity")
	}
	for _, label := range []string{apps.StatefulSetPodNameLabel, apps.PodIndexLabel} {
		changed := pod.DeepCopy()
		delete(changed.Labels, label)
		if identityMatches(changed, 3) {
			t.Errorf("matches without %s", label)
		}
		shared := changed.Labels
		setIdentity(changed, 3)
		if !identityMatches(changed, 3) || len(shared) == len(changed.Labels) {
			t.Errorf("%s is not mended, or in a map that is shared", label)
		}
	}
	bare := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}
	if setIdentity(bare, 0); !identityMatches(bare, 0) {
		t.Error("a pod without labels")
	}
	if owner := metav1.GetControllerOf(pod); owner.Kind != "StatefulSet" || owner.APIVersion != "apps/v1" || owner.Name != "web" || owner.UID != "set-uid" || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	if pod.GenerateName != "web-" || pod.Labels["app"] != "web" || revisionOf(pod) != "update" {
		t.Errorf("pod %+v", pod.ObjectMeta)
	}
}

func TestStorage(t *testing.T) {
	set := newSet(1, withClaim)
	set.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "data"}, {Name: "scratch"}}
	pod := podIn(t, set, 0, "R")
	var names []string
	for _, volume := range pod.Spec.Volumes {
		names = append(names, volume.Name)
	}
	if !slices.Equal(names, []string{"data", "scratch"}) || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-web-0" {
		t.Errorf("volumes %+v", pod.Spec.Volumes)
	}
	if !storageMatches(set, pod, 0) || storageMatches(set, pod, 1) || !storageMatches(newSet(1), pod, 0) {
		t.Error("a new pod's storage")
	}
	pod.Spec.Volumes[0].PersistentVolumeClaim = nil
	if storageMatches(set, pod, 0) {
		t.Error("matches without the claim")
	}
	if setStorage(set, pod, 0); !storageMatches(set, pod, 0) || len(pod.Spec.Volumes) != 2 {
		t.Error("not mended")
	}
}

func TestIsRunningAndReady(t *testing.T) {
	set := newSet(1)
	for letter, want := range map[string]bool{"R": true, "M": true, "U": false, "P": false, "F": false, "G": true} {
		if got := isRunningAndReady(podIn(t, set, 0, letter)); got != want {
			t.Errorf("%s: %v", letter, got)
		}
	}
	for letter, want := range map[string]bool{"R": true, "M": false, "U": false} {
		if got := isAvailable(podIn(t, set, 0, letter), 10, metav1.NewTime(testNow)); got != want {
			t.Errorf("available %s: %v", letter, got)
		}
	}
}
