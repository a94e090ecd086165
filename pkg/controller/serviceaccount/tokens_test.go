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

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

var rootCA = []byte("ROOT CA")

type fakeGenerator struct{ err error }

func (g fakeGenerator) GenerateToken(_ context.Context, claims *jwt.Claims, _ interface{}) (string, error) {
	return "token of " + claims.Subject, g.err
}

const generated = "token of system:serviceaccount:ns:builder"

// builder is a service account with references to secrets.
func builder(references ...string) *v1.ServiceAccount {
	sa := account("builder")
	sa.UID = "12345"
	for _, name := range references {
		sa.Secrets = append(sa.Secrets, v1.ObjectReference{Name: name})
	}
	return sa
}

// tokenSecret is a complete token secret of the builder, but for the data that without names.
func tokenSecret(without ...string) *v1.Secret {
	s := &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "token-secret", UID: "23456", ResourceVersion: "1",
			Annotations: map[string]string{v1.ServiceAccountNameKey: "builder", v1.ServiceAccountUIDKey: "12345"},
		},
		Type: v1.SecretTypeServiceAccountToken,
		Data: map[string][]byte{"token": []byte("ABC"), "ca.crt": rootCA, "namespace": []byte("ns")},
	}
	for _, key := range without {
		delete(s.Data, key)
	}
	return s
}

func with(s *v1.Secret, change func(*v1.Secret)) *v1.Secret {
	change(s)
	return s
}

func opaqueSecret() *v1.Secret {
	return &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "34567", ResourceVersion: "1"},
		Type:       v1.SecretTypeOpaque,
	}
}

// tokensRun is a TokensController in a synctest bubble.
type tokensRun struct {
	objects []runtime.Object
	prepare func(*fake.Clientset)
	options TokensControllerOptions
	step    func(*testing.T, *fake.Clientset)
}

// run returns the requests after step, and the secret as it is then, nil when it is gone.
func (r tokensRun) run(t *testing.T) (requests []string, secret *v1.Secret) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(r.objects...)
		if r.prepare != nil {
			r.prepare(client)
		}
		factory := informers.NewSharedInformerFactory(client, 12*time.Hour)
		options := r.options
		if options.TokenGenerator == nil {
			options.TokenGenerator = fakeGenerator{}
		}
		if options.RootCA == nil {
			options.RootCA = rootCA
		}
		c, err := NewTokensController(klog.Background(), factory.Core().V1().ServiceAccounts(), factory.Core().V1().Secrets(), client, options)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Workers()) != 2 {
			t.Errorf("%d workers, want 2", len(c.Workers()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx, 1)
		}()
		settle()
		if r.step != nil {
			if before := writes(client.Actions()); len(before) != 0 {
				t.Errorf("requests before the step: %v", before)
			}
			client.ClearActions()
			r.step(t, client)
			settle()
		}
		requests = writes(client.Actions())
		obj, err := client.Tracker().Get(secretsGVR, "ns", "token-secret")
		if err == nil {
			secret = obj.(*v1.Secret)
		}
		cancel()
		<-done
		factory.Shutdown()
	})
	return requests, secret
}

var (
	secretsGVR  = v1.SchemeGroupVersion.WithResource("secrets")
	accountsGVR = v1.SchemeGroupVersion.WithResource("serviceaccounts")
)

func add(obj runtime.Object) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) { tracked(t, client.Tracker().Add(obj)) }
}

// change updates an object that exists: only its resourceVersion is raised on top of obj.
func change(obj runtime.Object) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) {
		obj := obj.DeepCopyObject()
		obj.(metav1.Object).SetResourceVersion("2")
		gvr := secretsGVR
		if _, ok := obj.(*v1.ServiceAccount); ok {
			gvr = accountsGVR
		}
		tracked(t, client.Tracker().Update(gvr, obj, "ns"))
	}
}

func remove(obj runtime.Object) func(*testing.T, *fake.Clientset) {
	return func(t *testing.T, client *fake.Clientset) {
		gvr := secretsGVR
		if _, ok := obj.(*v1.ServiceAccount); ok {
			gvr = accountsGVR
		}
		tracked(t, client.Tracker().Delete(gvr, "ns", obj.(metav1.Object).GetName()))
	}
}

func TestTokenCreation(t *testing.T) {
	fills := []string{"get secrets token-secret", "update secrets token-secret"}
	deletes := []string{"delete secrets token-secret"}
	filled := func(t *testing.T, s *v1.Secret) {
		want := map[string]string{"token": generated, "ca.crt": string(rootCA), "namespace": "ns"}
		for key, value := range want {
			got := string(s.Data[key])
			if got != value && (key != "token" || got != "ABC") && (key != "namespace" || got != "custom") {
				t.Errorf("data %s is %q, want %q", key, got, value)
			}
		}
		if s.Annotations[v1.ServiceAccountNameKey] != "builder" || s.Annotations[v1.ServiceAccountUIDKey] != "12345" {
			t.Errorf("annotations %v", s.Annotations)
		}
	}
	custom := with(tokenSecret(), func(s *v1.Secret) { s.Data["namespace"] = []byte("custom") })
	wrongCA := with(tokenSecret(), func(s *v1.Secret) { s.Data["ca.crt"] = []byte("another") })
	none := []runtime.Object(nil)

	tests := map[string]struct {
		objects []runtime.Object
		step    func(*testing.T, *fake.Clientset)
		want    []string
		check   func(*testing.T, *v1.Secret)
	}{
		"new serviceaccount with no secrets":        {none, add(builder()), nil, nil},
		"new serviceaccount with missing secrets":   {none, add(builder("missing")), nil, nil},
		"new serviceaccount with non-token secrets": {[]runtime.Object{opaqueSecret()}, add(builder("other")), nil, nil},
		"new serviceaccount with token secrets": {
			// The secret alone would be deleted at once, so the account comes first here.
			[]runtime.Object{builder()}, add(tokenSecret()), nil, filled,
		},
		"updated serviceaccount with no secrets":        {[]runtime.Object{builder()}, change(builder()), nil, nil},
		"updated serviceaccount with missing secrets":   {[]runtime.Object{builder("missing")}, change(builder("missing")), nil, nil},
		"updated serviceaccount with non-token secrets": {[]runtime.Object{builder("other"), opaqueSecret()}, change(builder("other")), nil, nil},
		"updated serviceaccount with token secrets":     {[]runtime.Object{builder("token-secret"), tokenSecret()}, change(builder("token-secret")), nil, filled},

		"deleted serviceaccount with no secrets":        {[]runtime.Object{builder()}, remove(builder()), nil, nil},
		"deleted serviceaccount with missing secrets":   {[]runtime.Object{builder("missing")}, remove(builder()), nil, nil},
		"deleted serviceaccount with non-token secrets": {[]runtime.Object{builder("other"), opaqueSecret()}, remove(builder()), nil, nil},
		"deleted serviceaccount with token secrets":     {[]runtime.Object{builder("token-secret"), tokenSecret()}, remove(builder()), deletes, nil},

		"added secret without serviceaccount": {none, add(tokenSecret()), []string{"delete secrets token-secret", "get serviceaccounts builder"}, nil},
		"added secret with serviceaccount":    {[]runtime.Object{builder()}, add(tokenSecret()), nil, filled},
		"added token secret without token data": {
			[]runtime.Object{builder()}, add(tokenSecret("token")), fills, filled,
		},
		"added token secret without ca data":            {[]runtime.Object{builder()}, add(tokenSecret("ca.crt")), fills, filled},
		"added token secret with mismatched ca data":    {[]runtime.Object{builder()}, add(wrongCA), fills, filled},
		"added token secret without namespace data":     {[]runtime.Object{builder()}, add(tokenSecret("namespace")), fills, filled},
		"added token secret with custom namespace data": {[]runtime.Object{builder()}, add(custom), nil, filled},
		"added token secret without any data, as a user creates it": {
			[]runtime.Object{builder()},
			add(with(tokenSecret(), func(s *v1.Secret) { s.Data = nil; delete(s.Annotations, v1.ServiceAccountUIDKey) })), fills, filled,
		},

		"updated secret without serviceaccount": {
			[]runtime.Object{builder(), tokenSecret()},
			change(with(tokenSecret(), func(s *v1.Secret) { s.Annotations[v1.ServiceAccountNameKey] = "nobody" })),
			[]string{"delete secrets token-secret", "get serviceaccounts nobody"}, nil,
		},
		"updated secret with serviceaccount":              {[]runtime.Object{builder(), tokenSecret()}, change(tokenSecret()), nil, filled},
		"updated token secret without token data":         {[]runtime.Object{builder(), tokenSecret()}, change(tokenSecret("token")), fills, filled},
		"updated token secret without ca data":            {[]runtime.Object{builder(), tokenSecret()}, change(tokenSecret("ca.crt")), fills, filled},
		"updated token secret with mismatched ca data":    {[]runtime.Object{builder(), tokenSecret()}, change(wrongCA), fills, filled},
		"updated token secret without namespace data":     {[]runtime.Object{builder(), tokenSecret()}, change(tokenSecret("namespace")), fills, filled},
		"updated token secret with custom namespace data": {[]runtime.Object{builder(), tokenSecret()}, change(custom), nil, filled},
		"updated secret of another account of that name": {
			[]runtime.Object{builder(), tokenSecret()},
			change(with(tokenSecret(), func(s *v1.Secret) { s.Annotations[v1.ServiceAccountUIDKey] = "old" })),
			[]string{"delete secrets token-secret", "get serviceaccounts builder"}, nil,
		},

		"deleted secret without serviceaccount": {
			[]runtime.Object{builder(), tokenSecret()},
			func(t *testing.T, client *fake.Clientset) {
				remove(builder())(t, client)
				settle() // this deletes the secret, and its deletion is what we look at
				client.ClearActions()
			}, nil, nil,
		},
		"deleted secret with serviceaccount with reference": {
			[]runtime.Object{builder("keep", "token-secret"), tokenSecret()}, remove(tokenSecret()),
			[]string{"get serviceaccounts builder", "update serviceaccounts builder"}, nil,
		},
		"deleted secret with serviceaccount without reference": {
			[]runtime.Object{builder("keep"), tokenSecret()}, remove(tokenSecret()),
			[]string{"get serviceaccounts builder"}, nil,
		},
		"deleted secret of another account of that name": {
			[]runtime.Object{builder("token-secret")},
			func(t *testing.T, client *fake.Clientset) {
				old := with(tokenSecret(), func(s *v1.Secret) { s.Annotations[v1.ServiceAccountUIDKey] = "old" })
				tracked(t, client.Tracker().Add(old))
				settle()
				client.ClearActions()
			}, nil, nil,
		},
		"token secret that names no account": {
			none, add(with(tokenSecret("token"), func(s *v1.Secret) { s.Annotations = nil })), nil, nil,
		},
		"secret of another type": {
			none, add(with(tokenSecret("token"), func(s *v1.Secret) { s.Type = v1.SecretTypeOpaque })), nil, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requests, secret := tokensRun{objects: tc.objects, step: tc.step}.run(t)
			if diff := cmp.Diff(tc.want, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if tc.check != nil {
				tc.check(t, secret)
			}
		})
	}
}

func TestWithoutRootCATheCADataIsLeftAlone(t *testing.T) {
	requests, _ := tokensRun{
		objects: []runtime.Object{builder()}, step: add(tokenSecret("ca.crt")),
		options: TokensControllerOptions{RootCA: []byte{}},
	}.run(t)
	if len(requests) != 0 {
		t.Errorf("requests %v", requests)
	}
}

func TestSecretsThatExistAtStart(t *testing.T) {
	requests, secret := tokensRun{objects: []runtime.Object{builder(), tokenSecret("token")}}.run(t)
	if diff := cmp.Diff([]string{"get secrets token-secret", "update secrets token-secret"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := string(secret.Data["token"]); got != generated {
		t.Errorf("token %q", got)
	}
	requests, secret = tokensRun{objects: []runtime.Object{tokenSecret()}}.run(t)
	if secret != nil {
		t.Errorf("a token of an account that was deleted while no manager ran is left; requests %v", requests)
	}
}

func TestReferenceRemovalKeepsTheOthers(t *testing.T) {
	synctestSecrets := []string{"a", "token-secret", "b"}
	var got []v1.ObjectReference
	tokensRun{
		objects: []runtime.Object{builder(synctestSecrets...), tokenSecret()},
		step: func(t *testing.T, client *fake.Clientset) {
			remove(tokenSecret())(t, client)
			settle()
			obj, err := client.Tracker().Get(accountsGVR, "ns", "builder")
			tracked(t, err)
			got = obj.(*v1.ServiceAccount).Secrets
		},
	}.run(t)
	if diff := cmp.Diff([]v1.ObjectReference{{Name: "a"}, {Name: "b"}}, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestReferenceToANewSecretOfTheSameNameStays(t *testing.T) {
	requests, _ := tokensRun{
		objects: []runtime.Object{builder("token-secret"), tokenSecret()},
		// A watch that was interrupted shows the deletion and the creation as one update.
		step: change(with(tokenSecret(), func(s *v1.Secret) { s.UID = "new" })),
	}.run(t)
	if len(requests) != 0 {
		t.Errorf("requests %v", requests)
	}
}

// A secret's key is about that secret: one that was created in its place, for another account, must
// not get the first one's token.
func TestSecretThatWasReplacedByAnotherAccounts(t *testing.T) {
	other := account("other")
	other.UID = "67890"
	requests, secret := tokensRun{
		objects: []runtime.Object{builder(), other, tokenSecret()},
		step: change(with(tokenSecret("token"), func(s *v1.Secret) {
			s.UID = "new"
			s.Annotations = map[string]string{v1.ServiceAccountNameKey: "other"}
		})),
	}.run(t)
	if diff := cmp.Diff([]string{"get secrets token-secret", "update secrets token-secret"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := string(secret.Data["token"]); got != "token of system:serviceaccount:ns:other" {
		t.Errorf("token %q", got)
	}
	if got := secret.Annotations[v1.ServiceAccountUIDKey]; got != "67890" {
		t.Errorf("annotated with UID %q", got)
	}
}

func TestReferenceRemovalIsRepeatedOnConflict(t *testing.T) {
	conflicts := 2
	requests, _ := tokensRun{
		objects: []runtime.Object{builder("token-secret"), tokenSecret()},
		prepare: func(client *fake.Clientset) {
			client.PrependReactor("update", "serviceaccounts", func(core.Action) (bool, runtime.Object, error) {
				conflicts--
				return conflicts >= 0, nil, apierrors.NewConflict(v1.Resource("serviceaccounts"), "builder", errors.New("changed"))
			})
		},
		step: func(t *testing.T, client *fake.Clientset) {
			remove(tokenSecret())(t, client)
			time.Sleep(time.Minute)
		},
	}.run(t)
	want := slices.Concat(slices.Repeat([]string{"get serviceaccounts builder"}, 3), slices.Repeat([]string{"update serviceaccounts builder"}, 3))
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestMissedDeletionOfAServiceAccount(t *testing.T) {
	again := builder()
	again.UID = "another"
	requests, secret := tokensRun{objects: []runtime.Object{builder(), tokenSecret()}, step: change(again)}.run(t)
	if diff := cmp.Diff([]string{"delete secrets token-secret"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if secret != nil {
		t.Error("a token of the old account is left")
	}
}

func TestStaleSecretIsNotWritten(t *testing.T) {
	requests, _ := tokensRun{
		objects: []runtime.Object{builder()},
		prepare: func(client *fake.Clientset) {
			client.PrependReactor("get", "secrets", func(core.Action) (bool, runtime.Object, error) {
				return true, with(tokenSecret(), func(s *v1.Secret) { s.ResourceVersion = "99" }), nil
			})
		},
		step: add(tokenSecret("token")),
	}.run(t)
	if diff := cmp.Diff([]string{"get secrets token-secret"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestSecretIsSeenBeforeItsServiceAccount(t *testing.T) {
	requests, secret := tokensRun{
		prepare: func(client *fake.Clientset) {
			client.PrependReactor("get", "serviceaccounts", func(core.Action) (bool, runtime.Object, error) { return true, builder(), nil })
		},
		step: add(tokenSecret("token")),
	}.run(t)
	// The account never reaches the cache here, so the update's own event looks it up once more.
	want := []string{"get secrets token-secret", "get serviceaccounts builder", "get serviceaccounts builder", "update secrets token-secret"}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if secret == nil || string(secret.Data["token"]) != generated {
		t.Errorf("secret %v", secret)
	}
}

func TestDeletesCarryTheUID(t *testing.T) {
	for name, step := range map[string]func(*testing.T, *fake.Clientset){
		"account deleted":        remove(builder()),
		"secret without account": change(with(tokenSecret(), func(s *v1.Secret) { s.Annotations[v1.ServiceAccountNameKey] = "nobody" })),
	} {
		t.Run(name, func(t *testing.T) {
			var uid *types.UID
			tokensRun{
				objects: []runtime.Object{builder(), tokenSecret()},
				prepare: func(client *fake.Clientset) {
					client.PrependReactor("delete", "secrets", func(a core.Action) (bool, runtime.Object, error) {
						uid = a.(core.DeleteActionImpl).DeleteOptions.Preconditions.UID
						return false, nil, nil
					})
				},
				step: step,
			}.run(t)
			if uid == nil || *uid != "23456" {
				t.Errorf("precondition %v, want the secret's UID", uid)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	conflict := apierrors.NewConflict(v1.Resource("secrets"), "token-secret", boom)
	notFound := apierrors.NewNotFound(v1.Resource("secrets"), "token-secret")
	complete, empty := []runtime.Object{builder(), tokenSecret()}, []runtime.Object{builder()}
	tests := map[string]struct {
		objects        []runtime.Object
		verb, resource string
		err            error
		options        TokensControllerOptions
		step           func(*testing.T, *fake.Clientset)
		attempts       int
	}{
		"delete fails: ten retries":             {complete, "delete", "secrets", boom, TokensControllerOptions{}, remove(builder()), 11},
		"delete fails: retries as configured":   {complete, "delete", "secrets", boom, TokensControllerOptions{MaxRetries: 3}, remove(builder()), 4},
		"secret was deleted already":            {complete, "delete", "secrets", notFound, TokensControllerOptions{}, remove(builder()), 1},
		"secret was replaced":                   {complete, "delete", "secrets", conflict, TokensControllerOptions{}, remove(builder()), 1},
		"live look-up of the secret fails":      {empty, "get", "secrets", boom, TokensControllerOptions{}, add(tokenSecret("token")), 11},
		"secret is gone at the look-up":         {empty, "get", "secrets", notFound, TokensControllerOptions{}, add(tokenSecret("token")), 1},
		"live look-up of the account fails":     {nil, "get", "serviceaccounts", boom, TokensControllerOptions{}, add(tokenSecret("token")), 11},
		"update fails":                          {empty, "update", "secrets", boom, TokensControllerOptions{}, add(tokenSecret("token")), 11},
		"update meets a conflict":               {empty, "update", "secrets", conflict, TokensControllerOptions{}, add(tokenSecret("token")), 1},
		"secret is gone at the update":          {empty, "update", "secrets", notFound, TokensControllerOptions{}, add(tokenSecret("token")), 1},
		"no token can be made":                  {empty, "get", "secrets", nil, TokensControllerOptions{TokenGenerator: fakeGenerator{boom}}, add(tokenSecret("token")), 11},
		"reference cannot be removed":           {complete, "get", "serviceaccounts", boom, TokensControllerOptions{}, remove(tokenSecret()), 11},
		"account is gone as the reference goes": {complete, "get", "serviceaccounts", notFound, TokensControllerOptions{}, remove(tokenSecret()), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			tokensRun{
				objects: tc.objects, options: tc.options,
				prepare: func(client *fake.Clientset) {
					client.PrependReactor(tc.verb, tc.resource, func(core.Action) (bool, runtime.Object, error) {
						attempts++
						return tc.err != nil, nil, tc.err
					})
				},
				step: func(t *testing.T, client *fake.Clientset) {
					tc.step(t, client)
					time.Sleep(time.Hour)
				},
			}.run(t)
			if attempts != tc.attempts {
				t.Errorf("%d attempts, want %d", attempts, tc.attempts)
			}
		})
	}
}

// What a watch missed arrives as a tombstone, with the last known state or, in principle, none.
func TestTombstones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		c, err := NewTokensController(klog.Background(), factory.Core().V1().ServiceAccounts(), factory.Core().V1().Secrets(), client, TokensControllerOptions{TokenGenerator: fakeGenerator{}})
		if err != nil {
			t.Fatal(err)
		}
		c.accountHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/builder", Obj: builder()})
		c.accountHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/builder"})
		c.secretHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/token-secret", Obj: tokenSecret()})
		if accounts, secrets := c.deletedAccounts.Len(), c.tokenSecrets.Len(); accounts != 1 || secrets != 1 {
			t.Errorf("%d accounts and %d secrets enqueued, want 1 and 1", accounts, secrets)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.Run(ctx, 1)
	})
}

func TestResyncLooksAtSecretsAgain(t *testing.T) {
	gets := 0
	tokensRun{
		objects: []runtime.Object{builder()},
		options: TokensControllerOptions{SecretResync: time.Hour, MaxRetries: 1},
		prepare: func(client *fake.Clientset) {
			client.PrependReactor("get", "secrets", func(core.Action) (bool, runtime.Object, error) {
				gets++
				return gets <= 2, nil, fmt.Errorf("down")
			})
		},
		step: func(t *testing.T, client *fake.Clientset) {
			add(tokenSecret("token"))(t, client)
			time.Sleep(90 * time.Minute)
		},
	}.run(t)
	if gets < 3 {
		t.Errorf("%d looks at the secret, want one after the retries were used up", gets)
	}
}
