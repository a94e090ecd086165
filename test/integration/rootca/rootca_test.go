// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package rootca runs the root-ca-certificate-publisher-controller against a real API server.
package rootca

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/certificates/rootcacertpublisher"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

const (
	name           = rootcacertpublisher.RootCACertConfigMapName
	serviceAccount = "root-ca-cert-publisher"
	timeout        = 20 * time.Second
)

func TestMain(m *testing.M) { framework.Main(m) }

// start runs the publisher and returns the bundle that it publishes.
func start(t *testing.T, env *framework.Env) string {
	t.Helper()
	ca := env.Config().CAData
	c := env.Controllers(t, framework.ControllersOptions{})
	publisher, err := rootcacertpublisher.NewPublisher(c.Informers.Core().V1().ConfigMaps(), c.Informers.Core().V1().Namespaces(), c.Client(serviceAccount), ca)
	if err != nil {
		t.Fatal(err)
	}
	c.Run("root-ca-certificate-publisher-controller", func(ctx context.Context) { publisher.Run(ctx, 1) })
	return string(ca)
}

// waitPublished waits until the namespace has the ConfigMap as it should be, and returns it.
func waitPublished(t *testing.T, env *framework.Env, ns, ca string) *corev1.ConfigMap {
	t.Helper()
	var got *corev1.ConfigMap
	env.WaitFor(t, "the root CA in namespace "+ns, timeout, func(ctx context.Context) (bool, error) {
		cm, err := env.Client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = cm
		return maps.Equal(cm.Data, map[string]string{"ca.crt": ca}) && cm.Annotations["kubernetes.io/description"] != "", nil
	})
	return got
}

func TestRootCAIsPublishedAndRestored(t *testing.T) {
	env := framework.New(t)
	before := env.BareNamespace(t, "before")
	ca := start(t, env)
	waitPublished(t, env, before, ca)
	ns := env.BareNamespace(t, "after")
	first := waitPublished(t, env, ns, ca)
	mark := env.AuditMark(t)

	if err := env.Client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := waitPublished(t, env, ns, ca); again.UID == first.UID {
		t.Error("the ConfigMap was not created anew")
	}
	for what, patch := range map[string]string{
		"another bundle":   `{"data":{"ca.crt":"forged"}}`,
		"another key":      `{"data":{"extra":"x"}}`,
		"no data":          `{"data":null}`,
		"no description":   `{"metadata":{"annotations":null}}`,
		"a user's label":   `{"metadata":{"labels":{"team":"a"}},"data":{"ca.crt":"forged"}}`,
		"another describe": `{"metadata":{"annotations":{"kubernetes.io/description":"mine"}},"data":null}`,
	} {
		if _, err := env.Client.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		waitPublished(t, env, ns, ca)
	}
	cm := waitPublished(t, env, ns, ca)
	if cm.Labels["team"] != "a" || cm.Annotations["kubernetes.io/description"] == "" {
		t.Errorf("a repair took away what a user added: %v", cm.ObjectMeta)
	}

	// One creation, and one update for each change that was not right: no request for nothing.
	writes := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns))
	counts := writes.Count(func(e audit.Event) string { return e.Verb })
	if counts["create"] != 1 || counts["update"] != 6 || len(counts) != 2 {
		t.Errorf("requests %v, want 1 create and 6 updates:\n%v", counts, writes)
	}
}

func TestTerminatingNamespacesAreLeftAlone(t *testing.T) {
	env := framework.New(t)
	ca := start(t, env)
	ns := env.BareNamespace(t, "dying")
	waitPublished(t, env, ns, ca)
	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mark := env.AuditMark(t)
	// The API server may hand the two watches their events in any order; the namespace first here.
	other := env.BareNamespace(t, "later")
	waitPublished(t, env, other, ca)
	if err := env.Client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Never(t, "the ConfigMap of a terminating namespace came back", time.Second, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
		return !apierrors.IsNotFound(err), err
	})
	if refused := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns)); len(refused) != 0 {
		t.Errorf("requests in a terminating namespace:\n%v", refused)
	}
}
