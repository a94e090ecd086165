// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcacertpublisher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fakeRootCA = "fake-root-ca-data"

func space(phase v1.NamespacePhase) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", ResourceVersion: "1"}, Status: v1.NamespaceStatus{Phase: phase}}
}

// published is the ConfigMap as it should be, changed.
func published(changes ...func(*v1.ConfigMap)) *v1.ConfigMap {
	cm := newConfigMap("ns", []byte(fakeRootCA))
	cm.ResourceVersion = "1"
	for _, change := range changes {
		change(cm)
	}
	return cm
}

// run runs a publisher in a synctest bubble, does step when it has come to rest, and returns the
// writes since. A step of nil returns the writes from the start.
func run(t *testing.T, prepare func(*fake.Clientset), step func(*testing.T, *fake.Clientset), objects ...runtime.Object) []core.Action {
	t.Helper()
	var writes []core.Action
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		if prepare != nil {
			prepare(client)
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		p, err := NewPublisher(factory.Core().V1().ConfigMaps(), factory.Core().V1().Namespaces(), client, []byte(fakeRootCA))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Workers()) != 1 {
			t.Errorf("%d workers, want 1", len(p.Workers()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx, 1)
		}()
		settle()
		if step != nil {
			client.ClearActions()
			step(t, client)
			settle()
		}
		for _, a := range client.Actions() {
			if verb := a.GetVerb(); verb != "list" && verb != "watch" {
				writes = append(writes, a)
			}
		}
		cancel()
		<-done
		factory.Shutdown()
	})
	return writes
}

// settle lets a bubble come to rest. Waiting for caches polls, so some time must pass.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func update(t *testing.T, client *fake.Clientset, obj runtime.Object) {
	t.Helper()
	obj = obj.DeepCopyObject()
	obj.(metav1.Object).SetResourceVersion("2")
	gvr, namespace := v1.SchemeGroupVersion.WithResource("configmaps"), "ns"
	if _, ok := obj.(*v1.Namespace); ok {
		gvr, namespace = v1.SchemeGroupVersion.WithResource("namespaces"), ""
	}
	if err := client.Tracker().Update(gvr, obj, namespace); err != nil {
		t.Fatal(err)
	}
}

func updated(obj runtime.Object) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) { update(t, client, obj) }
}

func created(obj runtime.Object) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) {
		if err := client.Tracker().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
}

func deleted(name string) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) {
		if err := client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("configmaps"), "ns", name); err != nil {
			t.Fatal(err)
		}
	}
}

func described(text string) func(*v1.ConfigMap) {
	return func(cm *v1.ConfigMap) {
		if text == "" {
			cm.Annotations = nil
			return
		}
		cm.Annotations[DescriptionAnnotation] = text
	}
}

func data(key, value string) func(*v1.ConfigMap) {
	return func(cm *v1.ConfigMap) { cm.Data[key] = value }
}

func TestConfigMapCreation(t *testing.T) {
	active, dying := space(v1.NamespaceActive), space(v1.NamespaceTerminating)
	other := published(func(cm *v1.ConfigMap) { cm.Name = "other" })
	create, repairs, nothing := []string{"create"}, []string{"update"}, []string(nil)
	tests := map[string]struct {
		objects []runtime.Object
		step    func(*testing.T, *fake.Clientset)
		want    []string
	}{
		"create new namespace":                       {nil, created(active), create},
		"create new namespace, phase not set yet":    {nil, created(space("")), create},
		"delete other configmap":                     {[]runtime.Object{active, published(), other}, deleted("other"), nothing},
		"delete ca configmap":                        {[]runtime.Object{active, published()}, deleted(RootCACertConfigMapName), create},
		"delete ca configmap, terminating namespace": {[]runtime.Object{dying, published()}, deleted(RootCACertConfigMapName), nothing},
		"update ca configmap with adding field":      {[]runtime.Object{active, published()}, updated(published(data("foo", "bar"))), repairs},
		"update ca configmap with modifying field":   {[]runtime.Object{active, published()}, updated(published(data("ca.crt", "forged"))), repairs},
		"update ca configmap with removing field":    {[]runtime.Object{active, published()}, updated(published(func(cm *v1.ConfigMap) { cm.Data = nil })), repairs},
		"update with other configmap":                {[]runtime.Object{active, published(), other}, updated(published(func(cm *v1.ConfigMap) { cm.Name = "other"; cm.Data = nil })), nothing},
		"update namespace with terminating state":    {nil, func(t *testing.T, c *fake.Clientset) { created(dying)(t, c); settle(); updated(dying)(t, c) }, nothing},
		"update active namespace that has none": {
			// As after an upgrade from a manager without this controller, before the first event.
			[]runtime.Object{dying}, updated(active), create,
		},

		"update-configmap-annotation":                             {[]runtime.Object{active, published()}, updated(published(described(""))), repairs},
		"no-update-configmap-if-annotation-present-and-equal":     {[]runtime.Object{active, published()}, updated(published()), nothing},
		"no-update-configmap-if-annotation-present-and-different": {[]runtime.Object{active, published()}, updated(published(described("mine"))), nothing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			writes := run(t, nil, tc.step, tc.objects...)
			var verbs []string
			for _, a := range writes {
				verbs = append(verbs, a.GetVerb())
				got := a.(core.CreateAction).GetObject().(*v1.ConfigMap)
				got.ResourceVersion, got.ManagedFields = "1", nil // the fake's
				if diff := cmp.Diff(published(), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", a.GetVerb(), diff)
				}
			}
			if diff := cmp.Diff(tc.want, verbs); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExistingNamespacesArePublishedTo(t *testing.T) {
	if writes := run(t, nil, nil, space(v1.NamespaceActive)); len(writes) != 1 || writes[0].GetVerb() != "create" {
		t.Errorf("writes %v, want one creation", writes)
	}
}

func TestRepairKeepsWhatUsersAdded(t *testing.T) {
	current := published(data("ca.crt", "forged"), described("mine"), func(cm *v1.ConfigMap) {
		cm.Labels = map[string]string{"team": "a"}
		cm.Annotations["note"] = "mine"
	})
	before := current.DeepCopy()
	got := repair(current, []byte(fakeRootCA))
	if got.Labels["team"] != "a" || got.Annotations[DescriptionAnnotation] != "mine" || got.Annotations["note"] != "mine" || got.ResourceVersion != current.ResourceVersion {
		t.Errorf("repaired %v", got)
	}
	if diff := cmp.Diff(before, current); diff != "" {
		t.Errorf("the cached object was changed (-before +after):\n%s", diff)
	}
}

func TestOnlyItsOwnConfigMapIsEnqueued(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	p, err := NewPublisher(factory.Core().V1().ConfigMaps(), factory.Core().V1().Namespaces(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := published(func(cm *v1.ConfigMap) { cm.Name = "other" })
	p.configMapHandler().OnUpdate(other, other)
	p.configMapHandler().OnDelete(other)
	p.namespaceHandler().OnUpdate(space(v1.NamespaceActive), space(v1.NamespaceTerminating))
	if n := p.worker.Len(); n != 0 {
		t.Errorf("%d keys enqueued for a foreign ConfigMap and a terminating namespace", n)
	}
	p.configMapHandler().OnDelete(cache.DeletedFinalStateUnknown{Obj: published()})
	if n := p.worker.Len(); n != 1 {
		t.Errorf("%d keys enqueued for its own ConfigMap, want 1", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Run(ctx, 1)
}

func TestRefusals(t *testing.T) {
	resource := v1.Resource("configmaps")
	terminating := apierrors.NewForbidden(resource, RootCACertConfigMapName, errors.New("namespace is terminating"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceTerminatingCause})
	other := published(data("ca.crt", "forged"))
	tests := map[string]struct {
		verb    string
		err     error
		objects []runtime.Object
		want    int // attempts until the third would be let through
	}{
		"namespace is gone":        {"create", apierrors.NewNotFound(v1.Resource("namespaces"), "ns"), nil, 1},
		"namespace is terminating": {"create", terminating, nil, 1},
		"creation fails":           {"create", errors.New("down"), nil, 3},
		"update fails":             {"update", errors.New("down"), []runtime.Object{other}, 3},
		"update meets a conflict":  {"update", apierrors.NewConflict(resource, "x", errors.New("changed")), []runtime.Object{other}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			run(t, func(client *fake.Clientset) {
				client.PrependReactor(tc.verb, "configmaps", func(core.Action) (bool, runtime.Object, error) {
					attempts++
					return attempts < 3, nil, tc.err
				})
			}, func(*testing.T, *fake.Clientset) { time.Sleep(time.Hour) }, append(tc.objects, space(v1.NamespaceActive))...)
			if attempts != tc.want {
				t.Errorf("%d attempts, want %d", attempts, tc.want)
			}
		})
	}
}
