// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package namespace

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// TestNamespaces runs one controller for tests that do not disturb each other: most of their time is
// the five seconds of grace.
func TestNamespaces(t *testing.T) {
	start(t, framework.New(t), framework.ControllersOptions{})
	for name, test := range map[string]func(*testing.T, *framework.Env){
		"conditions":             testNamespaceConditions,
		"requests while blocked": testRequestsOfABlockedNamespace,
		"empty":                  testEmptyNamespaceGoesAtOnce,
		"ordered deletion":       testOrderedDeletion,
		"pod with finalizer":     testPodWithFinalizer,
		"custom resources":       testCustomResources,
		"foreign finalizer":      testForeignFinalizerOnTheNamespace,
		"created anew":           testNamespaceIsCreatedAnew,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, framework.New(t))
		})
	}
}

func testNamespaceConditions(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "blocked")
	createConfigMap(t, env, ns, "held", finalizer)
	createConfigMap(t, env, ns, "also-held", finalizer, "example.com/other")
	createConfigMap(t, env, ns, "free")
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining:    "Some resources are remaining: configmaps. has 2 resource instances",
		corev1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances, example.com/other in 1 resource instances",
	})
	releaseConfigMap(t, env, ns, "held")
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining:    "configmaps. has 1 resource instances",
		corev1.NamespaceFinalizersRemaining: "example.com/hold in 1 resource instances, example.com/other in 1 resource instances",
	})
	releaseConfigMap(t, env, ns, "also-held")
	waitGone(t, env, ns)
}

// While content is blocked, a round costs fewer requests than upstream's (golden/api-calls.tsv: one
// look at the namespace, two discovery requests, and two requests for each kind, three for pods).
func testRequestsOfABlockedNamespace(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "blocked")
	createConfigMap(t, env, ns, "held", finalizer)
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining: "configmaps.", corev1.NamespaceFinalizersRemaining: finalizer,
	})
	mark := env.AuditMark(t)
	rounds := func() int {
		return len(env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns), audit.Verb("get"), audit.Resource("namespaces")))
	}
	env.WaitFor(t, "more rounds", timeout, func(context.Context) (bool, error) { return rounds() >= 4, nil })

	events := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns))
	if got := events.Where(audit.Verb("update", "patch", "delete", "deletecollection")); len(got) != 0 {
		t.Errorf("writes although nothing changed:\n%v", got)
	}
	n := rounds()
	counts := events.Count(func(e audit.Event) string { return e.Verb + " " + e.Resource() })
	for what, count := range counts {
		if count > n {
			t.Errorf("%d requests %q in %d rounds, want at most one each", count, what, n)
		}
	}
	if counts["list pods"] < n-1 || counts["list configmaps"] < n-1 {
		t.Errorf("requests %v in %d rounds, want a look at each kind in each", counts, n)
	}
	releaseConfigMap(t, env, ns, "held")
	waitGone(t, env, ns)
}

func testEmptyNamespaceGoesAtOnce(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "empty")
	mark := env.AuditMark(t)
	began := time.Now()
	deleteNamespace(t, env, ns)
	waitGone(t, env, ns)
	if took := time.Since(began); took < 5*time.Second || took > 9*time.Second {
		t.Errorf("took %s, want 5 s of grace and little more", took)
	}
	events := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns))
	// Only what is there is deleted: the default service account. No status is written.
	if got := events.Where(audit.Verb("deletecollection")).Count(audit.Event.Resource); len(got) > 1 {
		t.Errorf("collections deleted: %v", got)
	}
	if got := events.Where(audit.Verb("update")).Count(audit.Event.Resource); len(got) != 1 || got["namespaces/finalize"] != 1 {
		t.Errorf("updates %v, want one of namespaces/finalize", got)
	}
}

func testOrderedDeletion(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "ordered")
	kubelet := env.Kubelet(t, 1, fakekubelet.Options{Termination: 4 * time.Second})
	_ = kubelet
	for i := range 3 {
		_, err := env.Client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i)},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](30),
				Containers:                    []corev1.Container{{Name: "main", Image: "main:1"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	createConfigMap(t, env, ns, "settings")
	env.WaitFor(t, "the pods to run", timeout, func(ctx context.Context) (bool, error) {
		pods, err := env.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodRunning {
				return false, nil
			}
		}
		return true, nil
	})
	mark := env.AuditMark(t)
	began := time.Now()
	deleteNamespace(t, env, ns)

	// The conditions name the pods while they terminate; all else is untouched.
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining: "Some resources are remaining: pods. has 3 resource instances",
	})
	cm, err := env.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || cm.DeletionTimestamp != nil {
		t.Errorf("the config map is %v (%v), want it untouched while pods are left", cm, err)
	}
	waitGone(t, env, ns)
	// Half of the pods' grace period would be 16 s; they are gone after 5 + 4.
	if took := time.Since(began); took > 14*time.Second {
		t.Errorf("took %s although the pods ended 9 s after the deletion", took)
	}
	lastPod, firstOther := time.Time{}, time.Time{}
	for _, e := range env.AuditSince(t, mark).Where(audit.Namespace(ns)) {
		switch {
		case e.Verb == "delete" && e.Resource() == "pods":
			lastPod = e.Answered()
		case e.Verb == "deletecollection" && e.Resource() != "pods" && firstOther.IsZero():
			firstOther = e.Received()
		}
	}
	if lastPod.IsZero() || firstOther.IsZero() || firstOther.Before(lastPod) {
		t.Errorf("other content was deleted at %v, the last pod went at %v", firstOther, lastPod)
	}
}

// A pod whose finalizer nobody removes holds everything else, and the conditions say which one.
func testPodWithFinalizer(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "heldpod")
	_, err := env.Client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{finalizer}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createConfigMap(t, env, ns, "settings")
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining:    "pods. has 1 resource instances",
		corev1.NamespaceFinalizersRemaining: finalizer + " in 1 resource instances",
	})
	if _, err := env.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("the config map did not wait for the pod: %v", err)
	}
	if _, err := env.Client.CoreV1().Pods(ns).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns)
}

func testCustomResources(t *testing.T, env *framework.Env) {
	first := env.Namespace(t, "before")
	deleteNamespace(t, env, first)
	waitGone(t, env, first) // the controller has a discovery without widgets now

	ns := env.Namespace(t, "custom")
	client := createWidgetKind(t, env)
	for i := range 3 {
		if _, err := client.Namespace(ns).Create(t.Context(), newWidget(fmt.Sprint("w", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Namespace(ns).Create(t.Context(), newWidget("held", finalizer), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining:    "widgets.kcm.example.com has 1 resource instances",
		corev1.NamespaceFinalizersRemaining: finalizer,
	})
	if _, err := client.Namespace(ns).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns)

	// The kind goes while a namespace with its objects does.
	ns = env.Namespace(t, "custom")
	if _, err := client.Namespace(ns).Create(t.Context(), newWidget("w"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, env, ns)
	if err := dynamicClient(t, env).Resource(customResources).Delete(t.Context(), "widgets.kcm.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns)
}

// An aggregated API that is down: its group is named in a condition, all other content is deleted,
// and the namespace goes soon after the API is back or unregistered.
func TestBrokenAggregatedAPI(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	createObject(t, env, apiServices, `{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": {"name": "v1.broken.example.com"},
		"spec": {"group": "broken.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
			"insecureSkipTLSVerify": true, "service": {"namespace": "nowhere", "name": "nothing"}}}`)
	env.WaitFor(t, "discovery to fail", timeout, func(context.Context) (bool, error) {
		_, err := env.Client.Discovery().ServerPreferredNamespacedResources()
		return err != nil, nil
	})
	ns := env.Namespace(t, "broken")
	createConfigMap(t, env, ns, "settings")
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, map[corev1.NamespaceConditionType]string{
		corev1.NamespaceDeletionDiscoveryFailure: "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: broken.example.com/v1",
	})
	env.WaitFor(t, "the config map to go", timeout, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().ConfigMaps(ns).Get(ctx, "settings", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err := dynamicClient(t, env).Resource(apiServices).Delete(t.Context(), "v1.broken.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns)
}

// The API server answers nothing at first: the controller waits, and says so, instead of ending.
func TestDiscoveryThatFailsAtStart(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	fault := proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Path: regexp.MustCompile(`^/apis?$`)}, Status: 503})
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	ns := env.Namespace(t, "early")
	createConfigMap(t, env, ns, "settings")
	deleteNamespace(t, env, ns)
	env.WaitFor(t, "the condition", timeout, func(ctx context.Context) (bool, error) {
		live, err := env.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range live.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionDiscoveryFailure && c.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, fmt.Errorf("conditions: %s", describe(live))
	})
	fault.Remove()
	waitGone(t, env, ns)
}

func testForeignFinalizerOnTheNamespace(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "foreign")
	if _, err := env.Client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+finalizer+`"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, env, ns)
	waitConditions(t, env, ns, nil)
	env.WaitFor(t, "our finalizer to go", timeout, func(ctx context.Context) (bool, error) {
		live, err := env.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return err == nil && len(live.Spec.Finalizers) == 0 && len(live.Finalizers) == 1, err
	})
	// Content cannot come any more, so nothing asks for it again.
	mark := env.AuditMark(t)
	if _, err := env.Client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Never(t, "an empty namespace was emptied again", 7*time.Second, func(context.Context) (bool, error) {
		return len(env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(ns), audit.Verb("list"))) > 0, nil
	})
	if _, err := env.Client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitGone(t, env, ns)
}

// A namespace that was let go and comes back at once: what is in the new one stays.
func testNamespaceIsCreatedAnew(t *testing.T, env *framework.Env) {
	ns := env.Namespace(t, "phoenix")
	createConfigMap(t, env, ns, "old")
	deleteNamespace(t, env, ns)
	env.WaitFor(t, "the namespace to be created anew", timeout, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		return err == nil, err
	})
	createConfigMap(t, env, ns, "new")
	env.Never(t, "the new namespace lost its content", 7*time.Second, func(ctx context.Context) (bool, error) {
		_, err := env.Client.CoreV1().ConfigMaps(ns).Get(ctx, "new", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}

// Many namespaces at once, with requests that fail now and then: all go, and discovery is shared.
func TestManyNamespacesUnderFaults(t *testing.T) {
	env := framework.New(t)
	proxy := env.Proxy(t, "")
	for i, rule := range []faultproxy.Rule{
		{Match: faultproxy.Match{Verbs: []string{"deletecollection"}}, Drop: faultproxy.DropAfter, Times: 5},
		{Match: faultproxy.Match{Verbs: []string{"list"}, Path: regexp.MustCompile("/namespaces/.*/secrets$")}, Status: 500, Times: 4},
		{Match: faultproxy.Match{Verbs: []string{"update"}, Path: regexp.MustCompile("/finalize$")}, Drop: faultproxy.DropAfter, Times: 3},
		{Match: faultproxy.Match{Verbs: []string{"update"}, Path: regexp.MustCompile("/finalize$")}, Status: 500, Times: 6},
	} {
		rule.Match.UserAgent = regexp.MustCompile("^" + serviceAccount)
		if active := proxy.Add(rule); active == nil {
			t.Fatalf("rule %d was refused", i)
		}
	}
	start(t, env, framework.ControllersOptions{Via: proxy.Config})
	var all []string
	for range 12 {
		ns := env.Namespace(t, "many")
		all = append(all, ns)
		for i := range 5 {
			createConfigMap(t, env, ns, fmt.Sprint("cm", i))
			if _, err := env.Client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i)}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	mark := env.AuditMark(t)
	for _, ns := range all {
		deleteNamespace(t, env, ns)
	}
	for _, ns := range all {
		waitGone(t, env, ns)
	}
	discoveries := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), func(e audit.Event) bool { return e.RequestURI == "/apis" || strings.HasPrefix(e.RequestURI, "/apis?") })
	if len(discoveries) > 40 {
		t.Errorf("%d discoveries for 12 namespaces", len(discoveries))
	}
}
