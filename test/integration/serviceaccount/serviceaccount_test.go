// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package serviceaccount runs the serviceaccount and serviceaccount-token controllers against a real
// API server.
package serviceaccount

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/pkg/controller/serviceaccount"
	tokens "github.com/kcm-dev/kcm/pkg/serviceaccount"
	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

const timeout = 20 * time.Second

func TestMain(m *testing.M) { framework.Main(m) }

func startAccounts(t *testing.T, env *framework.Env) {
	t.Helper()
	c := env.Controllers(t, framework.ControllersOptions{})
	controller, err := serviceaccount.NewServiceAccountsController(klog.Background(), c.Informers.Core().V1().ServiceAccounts(),
		c.Informers.Core().V1().Namespaces(), c.Client("service-account-controller"), serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		t.Fatal(err)
	}
	c.Run("serviceaccount-controller", func(ctx context.Context) { controller.Run(ctx, 1) })
}

// startTokens runs the token controller as the manager does: as system:kube-controller-manager, with
// the private key whose public half the API server trusts.
func startTokens(t *testing.T, env *framework.Env) *framework.Controllers {
	t.Helper()
	keyFile := ""
	for _, arg := range env.ControlPlane.ManagerArgs() {
		if value, ok := strings.CutPrefix(arg, "--service-account-private-key-file="); ok {
			keyFile = value
		}
	}
	key, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	generator, err := tokens.JWTTokenGenerator(tokens.LegacyIssuer, key)
	if err != nil {
		t.Fatal(err)
	}
	c := env.Controllers(t, framework.ControllersOptions{})
	cfg := env.ConfigFor(controlplane.ManagerUser)
	cfg.UserAgent = "tokens-controller"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	controller, err := serviceaccount.NewTokensController(klog.Background(), c.Informers.Core().V1().ServiceAccounts(), c.Informers.Core().V1().Secrets(),
		client, serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: cfg.CAData})
	if err != nil {
		t.Fatal(err)
	}
	c.Run("serviceaccount-token-controller", func(ctx context.Context) { controller.Run(ctx, 5) })
	return c
}

func createAccount(t *testing.T, env *framework.Env, ns, name string) *corev1.ServiceAccount {
	t.Helper()
	sa, err := env.Client.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sa
}

func createTokenSecret(t *testing.T, env *framework.Env, ns, name, account string) {
	t.Helper()
	_, err := env.Client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitFilled waits until a token secret is complete.
func waitFilled(t *testing.T, env *framework.Env, ns, name string) *corev1.Secret {
	t.Helper()
	var filled *corev1.Secret
	env.WaitFor(t, "secret "+name+" to be filled", timeout, func(ctx context.Context) (bool, error) {
		secret, err := env.Client.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		filled = secret
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 && len(secret.Data[corev1.ServiceAccountNamespaceKey]) > 0 &&
			string(secret.Data[corev1.ServiceAccountRootCAKey]) == string(env.Config().CAData), nil
	})
	return filled
}

func waitGone(t *testing.T, env *framework.Env, ns, name string) {
	t.Helper()
	env.WaitFor(t, "secret "+name+" to be deleted", timeout, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// whoAmI asks the API server whose token it is.
func whoAmI(ctx context.Context, env *framework.Env, token string) (*authenticationv1.UserInfo, error) {
	cfg := rest.AnonymousClientConfig(env.Config())
	cfg.BearerToken = token
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &review.Status.UserInfo, nil
}

func TestDefaultServiceAccount(t *testing.T) {
	env := framework.New(t)
	before := env.BareNamespace(t, "before")
	mark := env.AuditMark(t)
	startAccounts(t, env)
	after := env.BareNamespace(t, "after")
	uids := map[string]types.UID{}
	waitDefault := func(ns string) {
		env.WaitFor(t, "the default service account in "+ns, timeout, func(ctx context.Context) (bool, error) {
			sa, err := env.Client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			isNew := uids[ns] != sa.UID
			uids[ns] = sa.UID
			return isNew, nil
		})
	}
	waitDefault(before)
	waitDefault(after)

	createAccount(t, env, after, "mine")
	for _, name := range []string{"mine", "default"} {
		if err := env.Client.CoreV1().ServiceAccounts(after).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitDefault(after)
	if _, err := env.Client.CoreV1().ServiceAccounts(after).Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a user's service account came back: %v", err)
	}

	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), before, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.CoreV1().ServiceAccounts(before).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Never(t, "a terminating namespace got a service account", time.Second, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().ServiceAccounts(before).Get(ctx, "default", metav1.GetOptions{})
		return !apierrors.IsNotFound(err), err
	})

	// As many creations as service accounts were missing.
	requests := env.AuditSince(t, mark).Where(audit.ServiceAccount("service-account-controller"))
	for ns, want := range map[string]int{before: 1, after: 2} {
		if got := requests.Where(audit.Namespace(ns), audit.Code(201)); len(got) != want {
			t.Errorf("%d creations in %s, want %d:\n%v", len(got), ns, want, got)
		}
	}
	if got := requests.Where(audit.Not(audit.Verb("create"))); len(got) != 0 {
		t.Errorf("other requests:\n%v", got)
	}
}

func TestTokenIsAcceptedByTheAPIServer(t *testing.T) {
	env := framework.New(t)
	ns := env.BareNamespace(t, "tokens")
	builder := createAccount(t, env, ns, "builder")
	createTokenSecret(t, env, ns, "before", "builder")
	mark := env.AuditMark(t)
	startTokens(t, env)
	createTokenSecret(t, env, ns, "after", "builder")

	for _, name := range []string{"before", "after"} {
		secret := waitFilled(t, env, ns, name)
		if secret.Annotations[corev1.ServiceAccountUIDKey] != string(builder.UID) || string(secret.Data[corev1.ServiceAccountNamespaceKey]) != ns {
			t.Errorf("secret %s: annotations %v, namespace %q", name, secret.Annotations, secret.Data[corev1.ServiceAccountNamespaceKey])
		}
		user, err := whoAmI(t.Context(), env, string(secret.Data[corev1.ServiceAccountTokenKey]))
		if err != nil {
			t.Fatalf("the token in secret %s is refused: %v", name, err)
		}
		if want := "system:serviceaccount:" + ns + ":builder"; user.Username != want || user.UID != string(builder.UID) {
			t.Errorf("the token is that of %s (%s), want %s (%s)", user.Username, user.UID, want, builder.UID)
		}
	}

	// A look at the live secret and an update for each: the update's own event needs no request.
	requests := env.AuditSince(t, mark).Where(audit.Agent("^tokens-controller"))
	if counts := requests.Count(func(e audit.Event) string { return e.Verb }); counts["get"] != 2 || counts["update"] != 2 || len(counts) != 2 {
		t.Errorf("requests %v, want 2 gets and 2 updates:\n%v", counts, requests)
	}
}

func TestTokenDataIsRestored(t *testing.T) {
	env := framework.New(t)
	ns := env.BareNamespace(t, "tokens")
	createAccount(t, env, ns, "builder")
	startTokens(t, env)
	createTokenSecret(t, env, ns, "token", "builder")
	waitFilled(t, env, ns, "token")
	for what, patch := range map[string]string{
		"forged CA":    `{"data":{"ca.crt":"Zm9yZ2Vk"}}`,
		"no namespace": `{"data":{"namespace":null}}`,
		"no token":     `{"data":{"token":null}}`,
		"no data":      `{"data":null}`,
	} {
		if _, err := env.Client.CoreV1().Secrets(ns).Patch(t.Context(), "token", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		secret := waitFilled(t, env, ns, "token")
		env.WaitFor(t, "the token to be accepted after "+what, timeout, func(ctx context.Context) (bool, error) {
			_, err := whoAmI(ctx, env, string(secret.Data[corev1.ServiceAccountTokenKey]))
			return err == nil, err
		})
	}
}

func TestTokensGoWithTheirServiceAccount(t *testing.T) {
	env := framework.New(t)
	ns := env.BareNamespace(t, "tokens")
	createAccount(t, env, ns, "builder")
	createAccount(t, env, ns, "other")
	c := startTokens(t, env)
	createTokenSecret(t, env, ns, "token", "builder")
	createTokenSecret(t, env, ns, "others", "other")
	token := waitFilled(t, env, ns, "token")
	waitFilled(t, env, ns, "others")

	if err := env.Client.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "builder", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns, "token")
	env.WaitFor(t, "the token to be refused", timeout, func(ctx context.Context) (bool, error) {
		_, err := whoAmI(ctx, env, string(token.Data[corev1.ServiceAccountTokenKey]))
		return apierrors.IsUnauthorized(err), nil
	})
	waitFilled(t, env, ns, "others")

	// A secret for an account that never was.
	createTokenSecret(t, env, ns, "stray", "nobody")
	waitGone(t, env, ns, "stray")

	// An account that was deleted and created anew while no manager ran.
	c.Stop()
	if err := env.Client.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createAccount(t, env, ns, "other")
	startTokens(t, env)
	waitGone(t, env, ns, "others")
}

func TestDeletedSecretIsTakenOutOfTheList(t *testing.T) {
	env := framework.New(t)
	ns := env.BareNamespace(t, "tokens")
	sa := createAccount(t, env, ns, "builder")
	startTokens(t, env)
	createTokenSecret(t, env, ns, "token", "builder")
	waitFilled(t, env, ns, "token")
	sa.Secrets = []corev1.ObjectReference{{Name: "keep"}, {Name: "token"}}
	if _, err := env.Client.CoreV1().ServiceAccounts(ns).Update(t.Context(), sa, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.CoreV1().Secrets(ns).Delete(t.Context(), "token", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitFor(t, "the reference to go", timeout, func(ctx context.Context) (bool, error) {
		sa, err := env.Client.CoreV1().ServiceAccounts(ns).Get(ctx, "builder", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return len(sa.Secrets) == 1 && sa.Secrets[0].Name == "keep", nil
	})
}
