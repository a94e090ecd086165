// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/pkg/controller"
)

var parentKind = apps.SchemeGroupVersion.WithKind("StatefulSet")

func podTemplate(image string) *v1.PodTemplateSpec {
	return &v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}},
	}
}

func set(name string, uid types.UID) *apps.StatefulSet {
	return &apps.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

// revision returns a revision as the API server would hold it.
func revision(t *testing.T, parent *apps.StatefulSet, image string, number int64) *apps.ControllerRevision {
	t.Helper()
	patch, err := TemplatePatch(podTemplate(image))
	if err != nil {
		t.Fatal(err)
	}
	made := NewControllerRevision(parent, parentKind, map[string]string{"app": "web"}, runtime.RawExtension{Raw: patch}, number, new(int32(0)))
	made.UID = types.UID("uid-of-" + made.Name)
	return made
}

func orphaned(revision *apps.ControllerRevision) *apps.ControllerRevision {
	revision = revision.DeepCopy()
	revision.OwnerReferences = nil
	return revision
}

func names(revisions []*apps.ControllerRevision) []string {
	var names []string
	for _, revision := range revisions {
		names = append(names, revision.Name)
	}
	slices.Sort(names)
	return names
}

// newHistory returns a history over a fake API server and a cache that both hold the revisions.
func newHistory(t testing.TB, revisions ...*apps.ControllerRevision) (Interface, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Apps().V1().ControllerRevisions()
	if err := controller.AddControllerRevisionControllerIndexer(informer.Informer()); err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		if err := client.Tracker().Add(revision); err != nil {
			t.Fatal(err)
		}
		if err := informer.Informer().GetIndexer().Add(revision); err != nil {
			t.Fatal(err)
		}
	}
	return NewHistory(client, informer.Informer().GetIndexer()), client
}

func writes(client *fake.Clientset) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func TestListControllerRevisions(t *testing.T) {
	mine, other := set("a", "1"), set("b", "2")
	sameName := set("a", "3") // a predecessor of the same name
	own1, own2 := revision(t, mine, "i:1", 1), revision(t, mine, "i:2", 2)
	others, stale := revision(t, other, "i:1", 1), revision(t, sameName, "i:9", 1)
	orphan := orphaned(revision(t, mine, "i:3", 3))
	elsewhere := orphaned(revision(t, mine, "i:4", 3))
	elsewhere.Namespace = "elsewhere"
	daemon := revision(t, mine, "i:5", 1)
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	app := labels.SelectorFromSet(labels.Set{"app": "web"})
	for _, test := range []struct {
		name     string
		selector labels.Selector
		held     []*apps.ControllerRevision
		want     []*apps.ControllerRevision
	}{
		{"selects none", labels.SelectorFromSet(labels.Set{"app": "db"}), []*apps.ControllerRevision{own1, own2, orphan}, nil},
		{"selects all", app, []*apps.ControllerRevision{own1, own2}, []*apps.ControllerRevision{own1, own2}},
		{"not another object's", app, []*apps.ControllerRevision{own1, others, stale, daemon}, []*apps.ControllerRevision{own1}},
		{"selects orphans", app, []*apps.ControllerRevision{own1, orphan, elsewhere}, []*apps.ControllerRevision{own1, orphan}},
	} {
		h, client := newHistory(t, test.held...)
		got, err := h.ListControllerRevisions(mine, parentKind, test.selector)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if !slices.Equal(names(got), names(test.want)) {
			t.Errorf("%s: listed %v, want %v", test.name, names(got), names(test.want))
		}
		if len(client.Actions()) != 0 {
			t.Errorf("%s: asked the API server: %v", test.name, client.Actions())
		}
	}
}

func TestListWithoutIndexFails(t *testing.T) {
	h := NewHistory(fake.NewClientset(), cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))
	if _, err := h.ListControllerRevisions(set("a", "1"), parentKind, labels.Everything()); err == nil {
		t.Error("no error")
	}
}

func TestCreateControllerRevision(t *testing.T) {
	mine := set("a", "1")
	t.Run("no collision count", func(t *testing.T) {
		h, _ := newHistory(t)
		if _, err := h.CreateControllerRevision(t.Context(), mine, revision(t, mine, "i:1", 1), nil); err == nil || err.Error() != "collisionCount should not be nil" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("new", func(t *testing.T) {
		h, client := newHistory(t)
		wanted, count := revision(t, mine, "i:1", 1), int32(0)
		before := wanted.DeepCopy()
		got, err := h.CreateControllerRevision(t.Context(), mine, wanted, &count)
		if err != nil || got.Name != wanted.Name || count != 0 {
			t.Errorf("created %v, collisions %d: %v", got, count, err)
		}
		if !slices.Equal(wanted.Data.Raw, before.Data.Raw) || wanted.Name != before.Name || len(client.Actions()) != 1 {
			t.Errorf("argument changed, or more than one request: %v", client.Actions())
		}
	})
	t.Run("the same under other parents", func(t *testing.T) {
		h, _ := newHistory(t, revision(t, set("b", "2"), "i:1", 1))
		count := int32(0)
		if got, err := h.CreateControllerRevision(t.Context(), mine, revision(t, mine, "i:1", 1), &count); err != nil || count != 0 || !strings.HasPrefix(got.Name, "a-") {
			t.Errorf("created %v, collisions %d: %v", got, count, err)
		}
	})
	t.Run("there already", func(t *testing.T) {
		existing := revision(t, mine, "i:1", 7)
		h, client := newHistory(t, existing)
		count := int32(0)
		got, err := h.CreateControllerRevision(t.Context(), mine, revision(t, mine, "i:1", 8), &count)
		if err != nil || count != 0 || got.Revision != 7 || writes(client) != 1 {
			t.Errorf("got %v, collisions %d: %v", got, count, err)
		}
	})
	t.Run("name taken by other data", func(t *testing.T) {
		wanted := revision(t, mine, "i:1", 1)
		taken := revision(t, mine, "i:2", 1)
		taken.Name = wanted.Name
		h, _ := newHistory(t, taken)
		count := int32(0)
		got, err := h.CreateControllerRevision(t.Context(), mine, wanted, &count)
		if err != nil {
			t.Fatal(err)
		}
		if count != 1 || got.Name != "a-"+HashControllerRevision(wanted, new(int32(1))) {
			t.Errorf("created %s, collisions %d", got.Name, count)
		}
		if got.Labels[ControllerRevisionHashLabel] != wanted.Labels[ControllerRevisionHashLabel] {
			t.Errorf("hash label %v", got.Labels)
		}
	})
	t.Run("failure", func(t *testing.T) {
		h, client := newHistory(t)
		client.PrependReactor("create", "controllerrevisions", func(core.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("boom")
		})
		if _, err := h.CreateControllerRevision(t.Context(), mine, revision(t, mine, "i:1", 1), new(int32(0))); err == nil {
			t.Error("no error")
		}
	})
}

func TestUpdateControllerRevision(t *testing.T) {
	mine := set("a", "1")
	conflicts := func(n int) core.ReactionFunc {
		return func(core.Action) (bool, runtime.Object, error) {
			if n == 0 {
				return false, nil, nil
			}
			n--
			return true, nil, apierrors.NewConflict(apps.Resource("controllerrevisions"), "x", errors.New("boom"))
		}
	}
	for _, test := range []struct {
		name   string
		to     int64
		react  core.ReactionFunc
		writes int
		fails  bool
	}{
		{name: "succeeds", to: 3, writes: 1},
		{name: "nothing to do", to: 1},
		{name: "fails", to: 3, writes: 1, fails: true, react: func(core.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("boom"))
		}},
		{name: "conflict", to: 3, writes: 2, react: conflicts(1)},
		{name: "conflicts for ever", to: 3, writes: 4, fails: true, react: conflicts(100)},
	} {
		held := revision(t, mine, "i:1", 1)
		h, client := newHistory(t, held)
		if test.react != nil {
			client.PrependReactor("update", "controllerrevisions", test.react)
		}
		got, err := h.UpdateControllerRevision(t.Context(), held, test.to)
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil && got.Revision != test.to {
			t.Errorf("%s: number %d", test.name, got.Revision)
		}
		if n := writes(client); n != test.writes {
			t.Errorf("%s: %d writes, want %d", test.name, n, test.writes)
		}
		if held.Revision != 1 {
			t.Errorf("%s: the cached object was changed", test.name)
		}
	}
}

func TestDeleteControllerRevision(t *testing.T) {
	mine := set("a", "1")
	held, absent := revision(t, mine, "i:1", 1), revision(t, mine, "i:2", 1)
	h, client := newHistory(t, held)
	if err := h.DeleteControllerRevision(t.Context(), &apps.ControllerRevision{}); err == nil {
		t.Error("deleting an empty one: no error")
	}
	if err := h.DeleteControllerRevision(t.Context(), absent); !apierrors.IsNotFound(err) {
		t.Errorf("deleting one that is not there: %v", err)
	}
	if err := h.DeleteControllerRevision(t.Context(), held); err != nil {
		t.Error(err)
	}
	actions := client.Actions()
	deletion := actions[len(actions)-1].(core.DeleteAction).GetDeleteOptions()
	if deletion.Preconditions == nil || *deletion.Preconditions.UID != held.UID {
		t.Errorf("deleted without its UID: %v", deletion)
	}
	client.PrependReactor("delete", "controllerrevisions", func(core.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(apps.Resource("controllerrevisions"), held.Name, errors.New("another UID"))
	})
	if err := h.DeleteControllerRevision(t.Context(), held); !apierrors.IsConflict(err) {
		t.Errorf("deleting one that another may have replaced: %v", err)
	}
}

func TestAdoptControllerRevision(t *testing.T) {
	mine := set("a", "1")
	orphan := orphaned(revision(t, mine, "i:1", 1))
	owned := revision(t, set("b", "2"), "i:1", 1)
	absent := orphaned(revision(t, mine, "i:2", 1))
	h, client := newHistory(t, orphan, owned)
	got, err := h.AdoptControllerRevision(t.Context(), mine, parentKind, orphan)
	if err != nil || !metav1.IsControlledBy(got, mine) {
		t.Errorf("adopted %v: %v", got, err)
	}
	patch := string(client.Actions()[0].(core.PatchAction).GetPatch())
	if !strings.Contains(patch, `"uid":"`+string(orphan.UID)+`"`) {
		t.Errorf("patch without the revision's UID: %s", patch)
	}
	if _, err := h.AdoptControllerRevision(t.Context(), mine, parentKind, owned); err == nil || !strings.HasPrefix(err.Error(), "attempt to adopt revision owned by") {
		t.Errorf("adopting an owned one: %v", err)
	}
	if _, err := h.AdoptControllerRevision(t.Context(), mine, parentKind, absent); !apierrors.IsNotFound(err) {
		t.Errorf("adopting one that is not there: %v", err)
	}
}

func TestReleaseControllerRevision(t *testing.T) {
	mine, other := set("a", "1"), set("b", "2")
	owned, others := revision(t, mine, "i:1", 1), revision(t, other, "i:1", 1)
	orphan := orphaned(revision(t, mine, "i:2", 1))
	absent := revision(t, mine, "i:3", 1)
	h, client := newHistory(t, owned, others, orphan)
	for _, test := range []struct {
		name     string
		revision *apps.ControllerRevision
		ownedBy  types.UID
		none     bool
	}{
		{name: "owned", revision: owned},
		{name: "orphan", revision: orphan},
		{name: "another's", revision: others, ownedBy: "2"},
		{name: "not there", revision: absent, none: true},
	} {
		got, err := h.ReleaseControllerRevision(t.Context(), mine, test.revision)
		if err != nil || (got == nil) != test.none {
			t.Errorf("%s: %v: %v", test.name, got, err)
			continue
		}
		if got == nil {
			continue
		}
		var uid types.UID
		if owner := metav1.GetControllerOf(got); owner != nil {
			uid = owner.UID
		}
		if uid != test.ownedBy {
			t.Errorf("%s: owned by %q", test.name, uid)
		}
	}
	client.PrependReactor("patch", "controllerrevisions", func(core.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(parentKind.GroupKind(), "x", nil)
	})
	if got, err := h.ReleaseControllerRevision(t.Context(), mine, owned); got != nil || err != nil {
		t.Errorf("invalid: %v: %v", got, err)
	}
	client.PrependReactor("patch", "controllerrevisions", func(core.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("boom")
	})
	if _, err := h.ReleaseControllerRevision(t.Context(), mine, owned); err == nil {
		t.Error("no error")
	}
}

// What listing costs depends on what the parent has, not on what the namespace has.
func BenchmarkListControllerRevisions(b *testing.B) {
	mine, other := set("a", "1"), set("b", "2")
	for _, owned := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("%d_of_10000", owned), func(b *testing.B) {
			revisions := make([]*apps.ControllerRevision, 0, 10000)
			for i := range cap(revisions) {
				parent := other
				if i < owned {
					parent = mine
				}
				revision := NewControllerRevision(parent, parentKind, nil, runtime.RawExtension{Raw: []byte(fmt.Sprint(i))}, int64(i), nil)
				revision.Name = fmt.Sprint(i)
				revisions = append(revisions, revision)
			}
			h, _ := newHistory(b, revisions...)
			for b.Loop() {
				if got, err := h.ListControllerRevisions(mine, parentKind, labels.Everything()); err != nil || len(got) != owned {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
