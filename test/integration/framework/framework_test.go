// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package framework_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

const timeout = 30 * time.Second

func TestMain(m *testing.M) { framework.Main(m) }

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
			Containers:     []corev1.Container{{Name: "main", Image: "main:1"}},
		},
	}
}

// spoiled takes the failures of a piece of the framework that should fail.
type spoiled struct {
	testing.TB
	cleanups []func()

	mu       sync.Mutex // guards the following field
	messages []string
}

type stopped struct{}

func (s *spoiled) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, fmt.Sprintf(format, args...))
}
func (s *spoiled) Fatalf(format string, args ...any) { s.Errorf(format, args...); panic(stopped{}) }
func (s *spoiled) Cleanup(f func())                  { s.cleanups = append(s.cleanups, f) }
func (s *spoiled) reported() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.messages, "\n")
}

// failuresOf runs f and its cleanups and returns what it reported.
func failuresOf(t *testing.T, f func(t testing.TB)) string {
	s := &spoiled{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (stopped{}) {
				panic(r)
			}
		}()
		f(s)
	}()
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	return s.reported()
}

func TestProxyPassesIdentityOnAndFaultsAreSeen(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "proxy")
	proxy := env.Proxy(t, "tagged")
	mark := env.AuditMark(t)

	cfg := proxy.Config(env.ConfigFor("jane", "system:masters"))
	client := clientFor(t, cfg)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nobody := clientFor(t, proxy.Config(env.ConfigFor("nobody")))
	if _, err := nobody.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights got %v", err)
	}
	anonymous := clientFor(t, proxy.Config(rest.AnonymousClientConfig(env.Config())))
	if _, err := anonymous.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:anonymous") {
		t.Errorf("without credentials: %v", err)
	}
	writes := env.AuditSince(t, mark).Where(audit.Writes(), audit.User("jane"))
	if len(writes) != 1 || writes[0].Code() != 201 || !strings.HasSuffix(writes[0].UserAgent, " via/tagged") {
		t.Errorf("audit log has these writes of jane:\n%s", writes)
	}

	// After a cut the client does not know what the audit log knows.
	proxy.Add(faultproxy.Rule{Drop: faultproxy.DropAfter, Times: 1, Match: faultproxy.Match{Verbs: []string{"create"}, User: "jane", Path: regexp.MustCompile("/configmaps$")}})
	cm.Name = "cut"
	_, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		t.Errorf("a cut request gave %v", err)
	}
	if _, err := env.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "cut", metav1.GetOptions{}); err != nil {
		t.Errorf("DropAfter kept the request from the server: %v", err)
	}
}

func TestProxyWithholdsEventsFromInformers(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "stale")
	proxy := env.Proxy(t, "")
	controllers := env.Controllers(t, framework.ControllersOptions{Via: proxy.Config})
	informer := controllers.Informers.Core().V1().ConfigMaps()
	informer.Informer()
	controllers.StartInformers()
	if !cache.WaitForCacheSync(t.Context().Done(), informer.Informer().HasSynced) {
		t.Fatal("no sync")
	}
	seen := func(name string) bool {
		_, err := informer.Lister().ConfigMaps(ns).Get(name)
		return err == nil
	}
	create := func(name string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := env.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watches := faultproxy.Match{Path: regexp.MustCompile("/configmaps$")}
	rule := proxy.Add(faultproxy.Rule{WithholdEvents: true, Match: watches, Event: func(e faultproxy.WatchEvent) bool { return e.Object.Name == "held" }})
	create("free")
	env.WaitFor(t, "cache to show what is not withheld", timeout, func(context.Context) (bool, error) { return seen("free"), nil })
	create("held")
	if err := rule.WaitEvents(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if seen("held") {
		t.Error("a withheld object is in the cache")
	}
	rule.Remove()
	env.WaitFor(t, "cache to show what was withheld", timeout, func(context.Context) (bool, error) { return seen("held"), nil })

	if n := proxy.CutWatches(watches); n != 1 {
		t.Errorf("cut %d watches, want 1", n)
	}
	create("after")
	env.WaitFor(t, "cache to recover from the cut", timeout, func(context.Context) (bool, error) { return seen("after"), nil })
}

func TestAuditCountsEveryRequest(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "audit")
	counter := env.ClientFor(t, "counter", "system:masters")
	mark := env.AuditMark(t)
	const n = 200
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%d", i/2)}} // every other one conflicts
		_, err := counter.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if _, err := counter.CoreV1().ConfigMaps(ns).Get(t.Context(), cm.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	events := env.AuditSince(t, mark).Where(audit.User("counter"), audit.Namespace(ns), audit.Resource("configmaps"))
	got := events.Count(func(e audit.Event) string { return fmt.Sprintf("%s %d", e.Verb, e.Code()) })
	want := map[string]int{"create 201": n / 2, "create 409": n / 2, "get 200": n}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: counted %d, want %d", k, got[k], v)
		}
	}
	if later := env.AuditSince(t, env.AuditMark(t)).Where(audit.User("counter")); len(later) != 0 {
		t.Errorf("after the last mark there are\n%s", later)
	}
}

func TestControllersActUnderRBAC(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "rbac")
	controllers := env.Controllers(t, framework.ControllersOptions{})
	mark := env.AuditMark(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if _, err := controllers.Client("service-account-controller").CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Errorf("what the role allows: %v", err)
	}
	account.Name = "y"
	if _, err := controllers.Client("deployment-controller").CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what the role does not allow: %v", err)
	}
	writes := env.AuditSince(t, mark).Where(audit.ServiceAccount("service-account-controller"))
	if len(writes) != 1 {
		t.Errorf("audit log shows\n%s", writes)
	}
}

func TestControllersReportLeaks(t *testing.T) {
	env := framework.New(t)
	leak := make(chan struct{})
	messages := failuresOf(t, func(t testing.TB) {
		c := env.Controllers(t, framework.ControllersOptions{})
		c.Run("leaky", func(ctx context.Context) {
			go func() { <-leak }()
			<-ctx.Done()
		})
	})
	close(leak)
	if !strings.Contains(messages, "goroutines of controllers are left") || !strings.Contains(messages, "TestControllersReportLeaks") {
		t.Errorf("a leaked goroutine was reported as %q", messages)
	}
	messages = failuresOf(t, func(t testing.TB) {
		c := env.Controllers(t, framework.ControllersOptions{})
		done := make(chan struct{})
		c.Run("short", func(context.Context) { close(done) })
		<-done
		env.WaitFor(t, "Run to be seen to return", timeout, func(context.Context) (bool, error) {
			return t.(*spoiled).reported() != "", nil
		})
	})
	if !strings.Contains(messages, "controller short returned before it was stopped") {
		t.Errorf("a controller that gave up was reported as %q", messages)
	}
}

func TestWaitForTellsWhatIsThere(t *testing.T) {
	env := framework.New(t)
	ns := env.Namespace(t, "dump")
	if _, err := env.Client.CoreV1().Pods(ns).Create(t.Context(), newPod("witness"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	messages := failuresOf(t, func(t testing.TB) {
		env.WaitFor(t, "the impossible", 200*time.Millisecond, func(context.Context) (bool, error) {
			return false, errors.New("because")
		})
	})
	for _, want := range []string{"the impossible", "not within 200ms", "because", "kind: Pod", "name: witness"} {
		if !strings.Contains(messages, want) {
			t.Errorf("%q is missing from %q", want, messages)
		}
	}
}

func TestNamespacesGoWithTheirContents(t *testing.T) {
	env := framework.New(t)
	var ns string
	if messages := failuresOf(t, func(tb testing.TB) {
		ns = env.Namespace(tb, "purged")
		pod := newPod("stuck")
		pod.Finalizers = []string{"example.com/never"}
		if _, err := env.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}); messages != "" {
		t.Fatal(messages)
	}
	if _, err := env.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace after the test: %v", err)
	}
	pods, err := env.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods after the test, %v", len(pods.Items), err)
	}
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
