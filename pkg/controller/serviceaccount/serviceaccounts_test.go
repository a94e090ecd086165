// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func namespaceIn(phase v1.NamespacePhase) *v1.Namespace {
	return &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", ResourceVersion: "1"},
		Status:     v1.NamespaceStatus{Phase: phase},
	}
}

func account(name string) *v1.ServiceAccount {
	return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}
}

// runAccounts runs a ServiceAccountsController for "default" and "managed" in a synctest bubble.
// When it has come to rest, its start is forgotten, step is called, and after another rest the
// writes since are returned.
func runAccounts(t *testing.T, step func(*testing.T, *fake.Clientset), prepare func(*fake.Clientset), objects ...runtime.Object) (start, after []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		if prepare != nil {
			prepare(client)
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		options := DefaultServiceAccountsControllerOptions()
		options.ServiceAccounts = append(options.ServiceAccounts, v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "managed"}})
		c, err := NewServiceAccountsController(klog.Background(), factory.Core().V1().ServiceAccounts(), factory.Core().V1().Namespaces(), client, options)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Workers()) != 1 {
			t.Errorf("%d workers, want 1", len(c.Workers()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx, 1)
		}()
		settle()
		start = writes(client.Actions())
		if step != nil {
			client.ClearActions()
			step(t, client)
			settle()
			after = writes(client.Actions())
		}
		cancel()
		<-done
		factory.Shutdown()
	})
	return start, after
}

// settle lets a bubble come to rest. Waiting for caches polls, so some time must pass.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// writes are the actions that are not an informer's, as "verb resource[/subresource] name".
func writes(actions []core.Action) []string {
	var texts []string
	for _, a := range actions {
		name := ""
		switch a := a.(type) {
		case core.CreateAction: // an UpdateAction too
			name = a.GetObject().(metav1.Object).GetName()
		case core.GetAction: // a DeleteAction too
			name = a.GetName()
		default:
			continue
		}
		texts = append(texts, fmt.Sprintf("%s %s %s", a.GetVerb(), a.GetResource().Resource, name))
	}
	slices.Sort(texts)
	return texts
}

// tracked calls change on the fake's storage: unlike the client's, such a change is no action.
func tracked(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addNamespace(ns *v1.Namespace) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) { tracked(t, client.Tracker().Add(ns)) }
}

func updateNamespace(ns *v1.Namespace) func(*testing.T, *fake.Clientset) {
	ns.ResourceVersion = "2"
	return func(t *testing.T, client *fake.Clientset) {
		tracked(t, client.Tracker().Update(v1.SchemeGroupVersion.WithResource("namespaces"), ns, ""))
	}
}

func deleteAccount(name string) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) {
		tracked(t, client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("serviceaccounts"), "ns", name))
	}
}

func TestServiceAccountCreation(t *testing.T) {
	active, dying := namespaceIn(v1.NamespaceActive), namespaceIn(v1.NamespaceTerminating)
	both := []string{"create serviceaccounts default", "create serviceaccounts managed"}
	onlyManaged := both[1:]
	onlyDefault := both[:1]
	tests := map[string]struct {
		objects []runtime.Object
		step    func(*testing.T, *fake.Clientset)
		want    []string
	}{
		"new active namespace missing serviceaccounts": {
			step: addNamespace(active), want: both,
		},
		"new active namespace missing serviceaccount": {
			objects: []runtime.Object{account("default")},
			step:    addNamespace(active), want: onlyManaged,
		},
		"new active namespace with serviceaccounts": {
			objects: []runtime.Object{account("default"), account("managed")},
			step:    addNamespace(active),
		},
		"new terminating namespace": {
			step: addNamespace(dying),
		},
		"updated active namespace missing serviceaccounts": {
			objects: []runtime.Object{namespaceIn("")},
			step:    updateNamespace(namespaceIn(v1.NamespaceActive)), want: both,
		},
		"updated active namespace missing serviceaccount": {
			objects: []runtime.Object{namespaceIn(""), account("default")},
			step:    updateNamespace(namespaceIn(v1.NamespaceActive)), want: onlyManaged,
		},
		"updated active namespace with serviceaccounts": {
			objects: []runtime.Object{active, account("default"), account("managed")},
			step:    updateNamespace(namespaceIn(v1.NamespaceActive)),
		},
		"updated terminating namespace": {
			objects: []runtime.Object{dying},
			step:    updateNamespace(namespaceIn(v1.NamespaceTerminating)),
		},
		"deleted serviceaccount without namespace": {
			objects: []runtime.Object{account("default")},
			step:    deleteAccount("default"),
		},
		"deleted serviceaccount with active namespace": {
			objects: []runtime.Object{active, account("default"), account("managed")},
			step:    deleteAccount("default"), want: onlyDefault,
		},
		"deleted serviceaccount with terminating namespace": {
			objects: []runtime.Object{dying, account("default"), account("managed")},
			step:    deleteAccount("default"),
		},
		"deleted unmanaged serviceaccount with active namespace": {
			objects: []runtime.Object{active, account("default"), account("managed"), account("mine")},
			step:    deleteAccount("mine"),
		},
		"deleted unmanaged serviceaccount with terminating namespace": {
			objects: []runtime.Object{dying, account("mine")},
			step:    deleteAccount("mine"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start, got := runAccounts(t, tc.step, nil, tc.objects...)
			if len(start) != 0 {
				t.Errorf("writes before the step: %v", start)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExistingNamespacesGetServiceAccounts(t *testing.T) {
	start, _ := runAccounts(t, nil, nil, namespaceIn(v1.NamespaceActive))
	want := []string{"create serviceaccounts default", "create serviceaccounts managed"}
	if diff := cmp.Diff(want, start); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// refuse makes creations of the named service account fail so often.
func refuse(name string, times int, err error) func(*fake.Clientset) {
	return func(client *fake.Clientset) {
		client.PrependReactor("create", "serviceaccounts", func(a core.Action) (bool, runtime.Object, error) {
			if a.(core.CreateAction).GetObject().(metav1.Object).GetName() != name || times == 0 {
				return false, nil, nil
			}
			times--
			return true, nil, err
		})
	}
}

func TestRefusedCreations(t *testing.T) {
	resource := v1.Resource("serviceaccounts")
	terminating := apierrors.NewForbidden(resource, "default", errors.New("namespace is terminating"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceTerminatingCause})
	tests := map[string]struct {
		err  error
		want int // attempts at "default" within the hour
	}{
		"somebody else was first":  {apierrors.NewAlreadyExists(resource, "default"), 1},
		"namespace is terminating": {terminating, 1},
		"other failures":           {apierrors.NewForbidden(resource, "default", errors.New("quota")), 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := runAccounts(t, func(t *testing.T, client *fake.Clientset) {
				tracked(t, client.Tracker().Add(namespaceIn(v1.NamespaceActive)))
				time.Sleep(time.Hour)
			}, refuse("default", 3, tc.err))
			attempts, others := 0, 0
			for _, w := range got {
				if w == "create serviceaccounts default" {
					attempts++
				} else {
					others++
				}
			}
			if attempts != tc.want || others != 1 {
				t.Errorf("writes %v, want %d attempts at default and 1 at managed", got, tc.want)
			}
		})
	}
}

func TestDefaultOptions(t *testing.T) {
	o := DefaultServiceAccountsControllerOptions()
	if len(o.ServiceAccounts) != 1 || o.ServiceAccounts[0].Name != "default" {
		t.Errorf("service accounts %v, want one, default", o.ServiceAccounts)
	}
}
