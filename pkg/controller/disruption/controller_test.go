// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	podutil "github.com/kcm-dev/kcm/pkg/api/v1/pod"
	"github.com/kcm-dev/kcm/pkg/controller/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a controller over a fake API server, in a synctest bubble.
type fixture struct {
	t        *testing.T
	client   *fake.Clientset
	versions *testutil.Versions
}

// run starts a controller over objects and calls check, in a bubble of which the time begins at now.
func run(t *testing.T, check func(*fixture), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		f := &fixture{t: t, client: fake.NewClientset(objects...)}
		f.versions = testutil.CountVersions(f.client, 100)
		factory := informers.NewSharedInformerFactory(f.client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		dc := NewDisruptionControllerInternal(ctx, factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets(),
			factory.Core().V1().ReplicationControllers(), factory.Apps().V1().ReplicaSets(), factory.Apps().V1().Deployments(),
			factory.Apps().V1().StatefulSets(), f.client, apimeta.NewDefaultRESTMapper(nil), &scalefake.FakeScaleClient{}, f.client.Discovery(),
			clock.RealClock{}, stalePodDisruptionTimeout)
		if got := len(dc.Workers()); got != 4 {
			t.Errorf("%d workers", got)
		}
		factory.StartWithContext(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { dc.Run(ctx, 2) })
		f.settle()
		check(f)
		cancel()
		wg.Wait()
		factory.Shutdown()
	})
}

// settle lets the controller work off what it knows.
func (f *fixture) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (f *fixture) pdb() *policy.PodDisruptionBudget {
	f.t.Helper()
	pdb, err := f.client.PolicyV1().PodDisruptionBudgets("default").Get(f.t.Context(), "budget", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return pdb
}

// wrote returns how many status updates were sent.
func (f *fixture) wrote() int {
	n := 0
	for _, action := range f.client.Actions() {
		if action.Matches("update", "poddisruptionbudgets") && action.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

// events returns the reasons and messages of the events on an object of that kind.
func (f *fixture) events(kind string) []string {
	f.t.Helper()
	list, err := f.client.CoreV1().Events("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind {
			found = append(found, e.Type+" "+e.Reason+" "+e.Message)
		}
		if e.Source.Component != "controllermanager" {
			f.t.Errorf("event of component %q", e.Source.Component)
		}
	}
	return found
}

func (f *fixture) expectEvent(kind, text string) {
	f.t.Helper()
	if got := f.events(kind); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, text) }) {
		f.t.Errorf("events %q, want one with %q", got, text)
	}
}

func (f *fixture) updatePod(pod *v1.Pod) {
	f.t.Helper()
	pod.ResourceVersion = f.versions.Next()
	if err := f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), pod, "default"); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

func TestBudgetFollowsItsPods(t *testing.T) {
	rs := &apps.ReplicaSet{ObjectMeta: meta("rs", "2", nil), Spec: apps.ReplicaSetSpec{Replicas: new(int32(2))}}
	ofRS := ownedBy(ref("apps/v1", "ReplicaSet", "rs", "2"))
	a, b := newPod("a", ofRS), newPod("b", ofRS)
	run(t, func(f *fixture) {
		if s := f.pdb().Status; s.DisruptionsAllowed != 1 || s.ExpectedPods != 2 || s.CurrentHealthy != 2 {
			t.Errorf("status %+v", s)
		}
		if n := f.wrote(); n != 1 {
			t.Errorf("%d status updates, want 1", n)
		}
		unready(b)
		f.updatePod(b.DeepCopy())
		if s := f.pdb().Status; s.DisruptionsAllowed != 0 || s.CurrentHealthy != 1 {
			t.Errorf("with an unready pod: %+v", s)
		}
		before := f.wrote()
		b.Annotations = map[string]string{"note": "nothing that counts"}
		f.updatePod(b.DeepCopy())
		if f.wrote() != before {
			t.Error("a status without change was written")
		}
		// The pod leaves the budget: what it selected before counts, too.
		b.Labels = map[string]string{"app": "other"}
		f.updatePod(b.DeepCopy())
		b.Labels = map[string]string{"app": "web"}
		b.Status.Conditions[0].Status = v1.ConditionTrue
		f.updatePod(b.DeepCopy())
		if s := f.pdb().Status; s.DisruptionsAllowed != 1 {
			t.Errorf("after the pod is back: %+v", s)
		}
		if err := f.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", "a"); err != nil {
			t.Fatal(err)
		}
		f.settle()
		if s := f.pdb().Status; s.CurrentHealthy != 1 || s.DisruptionsAllowed != 0 {
			t.Errorf("after a deletion: %+v", s)
		}
		if got := f.events("PodDisruptionBudget"); len(got) != 0 {
			t.Errorf("events %q", got)
		}
	}, rs, a.DeepCopy(), b.DeepCopy(), newPDB(maxUnavailable("1")))
}

// A pod that is being deleted counts no more from then on, however long its end takes.
func TestPodThatGoesCountsNoMore(t *testing.T) {
	a := newPod("a")
	run(t, func(f *fixture) {
		a.DeletionTimestamp = new(metav1.Now())
		f.updatePod(a.DeepCopy())
		if s := f.pdb().Status; s.CurrentHealthy != 1 || s.DisruptionsAllowed != 0 {
			t.Errorf("status %+v", s)
		}
	}, a.DeepCopy(), newPod("b"), newPDB(minAvailable("1")))
}

// A condition that comes with an update is taken back like one that was there from the start.
func TestDisruptionTargetThatComesLater(t *testing.T) {
	run(t, func(f *fixture) {
		time.Sleep(time.Minute)
		f.updatePod(newPod("a", disruptionTarget(v1.ConditionTrue, "PreemptionByScheduler", -time.Minute)))
		time.Sleep(stalePodDisruptionTimeout)
		f.settle()
		pod, err := f.client.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, c := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget); c == nil || c.Status != v1.ConditionFalse {
			t.Errorf("condition %+v", c)
		}
	}, newPod("a"))
}

func TestRelabelledPodCountsForItsFormerBudget(t *testing.T) {
	a := newPod("a")
	run(t, func(f *fixture) {
		if got := f.pdb().Status.CurrentHealthy; got != 1 {
			t.Fatalf("%d healthy", got)
		}
		a.Labels = map[string]string{"app": "other"}
		f.updatePod(a.DeepCopy())
		if got := f.pdb().Status.CurrentHealthy; got != 0 {
			t.Errorf("%d healthy after the pod has left", got)
		}
	}, a.DeepCopy(), newPDB(minAvailable("1")))
}

func TestSelectors(t *testing.T) {
	other := newPod("other")
	other.Labels = map[string]string{"app": "db"}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     int32
	}{
		"none selects nothing":        {nil, 0},
		"an empty one selects all":    {&metav1.LabelSelector{}, 3},
		"labels":                      {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, 2},
		"an expression":               {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}}}, 1},
		"a set of one":                {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db"}}}}, 1},
		"labels that no pod has both": {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "x"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pdb := newPDB(minAvailable("1"))
			pdb.Spec.Selector = tc.selector
			run(t, func(f *fixture) {
				if got := f.pdb().Status.ExpectedPods; got != tc.want {
					t.Errorf("%d pods, want %d", got, tc.want)
				}
				if tc.want == 0 {
					f.expectEvent("PodDisruptionBudget", "Normal NoPods No matching pods found")
				}
			}, pdb, newPod("a"), newPod("b"), other)
		})
	}
}

func TestMalformedSelectorAllowsNothing(t *testing.T) {
	for name, requirement := range map[string]metav1.LabelSelectorRequirement{
		"key":      {Key: "k~!#", Operator: metav1.LabelSelectorOpIn, Values: []string{"v"}},
		"operator": {Key: "app", Operator: "Equals", Values: []string{"v"}},
	} {
		t.Run(name, func(t *testing.T) {
			pdb := newPDB(minAvailable("1"))
			pdb.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
			run(t, func(f *fixture) {
				if c := f.pdb().Status.Conditions; len(c) != 1 || c[0].Reason != policy.SyncFailedReason {
					t.Errorf("conditions %+v", c)
				}
				f.expectEvent("PodDisruptionBudget", "Warning NoPods Failed to get pods: ")
				n := f.wrote()
				time.Sleep(10 * time.Minute)
				f.settle()
				if f.wrote() != n || len(f.events("PodDisruptionBudget")) != 1 {
					t.Errorf("%d writes, events %q: the same failure is told again", f.wrote()-n, f.events("PodDisruptionBudget"))
				}
			}, pdb)
		})
	}
}

func TestUnmanagedPods(t *testing.T) {
	run(t, func(f *fixture) {
		if s := f.pdb().Status; s.ExpectedPods != 0 || s.DisruptionsAllowed != 0 || s.CurrentHealthy != 1 {
			t.Errorf("status %+v", s)
		}
		f.expectEvent("PodDisruptionBudget", "Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: web,}")
	}, newPod("naked"), newPDB(maxUnavailable("1")))
}

// A percentage is one of what the owner wants, not of the Pods that happen to be there.
func TestPercentageIsOfTheOwnersScale(t *testing.T) {
	rs := &apps.ReplicaSet{ObjectMeta: meta("rs", "2", nil), Spec: apps.ReplicaSetSpec{Replicas: new(int32(4))}}
	owned := ownedBy(ref("apps/v1", "ReplicaSet", "rs", "2"))
	run(t, func(f *fixture) {
		if s := f.pdb().Status; s.ExpectedPods != 4 || s.DesiredHealthy != 2 || s.CurrentHealthy != 3 || s.DisruptionsAllowed != 1 {
			t.Errorf("status %+v", s)
		}
	}, rs, newPod("a", owned), newPod("b", owned), newPod("c", owned), newPDB(minAvailable("50%")))
}

func TestUnknownOwnerAllowsNothingAndIsAskedForAgain(t *testing.T) {
	pod := newPod("a", ownedBy(ref("example.com/v1", "Gadget", "g", "1")))
	pdb := newPDB(maxUnavailable("1"))
	pdb.Status.DisruptionsAllowed = 4
	run(t, func(f *fixture) {
		s := f.pdb().Status
		if s.DisruptionsAllowed != 0 || len(s.Conditions) != 1 || s.Conditions[0].Reason != policy.SyncFailedReason {
			t.Errorf("status %+v", s)
		}
		f.expectEvent("PodDisruptionBudget", "Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: ")
		// Somebody else's doing brings it back without an event.
		rs := &apps.ReplicaSet{ObjectMeta: meta("rs", "2", nil), Spec: apps.ReplicaSetSpec{Replicas: new(int32(1))}}
		if err := f.client.Tracker().Add(rs); err != nil {
			t.Fatal(err)
		}
		pod.OwnerReferences = nil
		ownedBy(ref("apps/v1", "ReplicaSet", "rs", "2"))(pod)
		f.updatePod(pod.DeepCopy())
		if s := f.pdb().Status; s.DisruptionsAllowed != 1 {
			t.Errorf("recovered: %+v", s)
		}
	}, pod.DeepCopy(), pdb)
}

func TestSeveralBudgetsAreAllKeptAndWarnedOf(t *testing.T) {
	second := newPDB(minAvailable("1"))
	second.Name, second.UID = "zweites", "uid-2"
	a := newPod("a")
	run(t, func(f *fixture) {
		f.expectEvent("Pod", `Warning MultiplePodDisruptionBudgets Pod "default"/"a" matches multiple PodDisruptionBudgets.  Chose "budget" arbitrarily.`)
		unready(a)
		f.updatePod(a.DeepCopy())
		for _, name := range []string{"budget", "zweites"} {
			pdb, err := f.client.PolicyV1().PodDisruptionBudgets("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || pdb.Status.CurrentHealthy != 0 || pdb.Status.ExpectedPods != 1 {
				t.Errorf("%s: %+v, %v", name, pdb.Status, err)
			}
		}
		if got := f.events("Pod"); len(got) != 1 {
			t.Errorf("events %q, want no second when the pod merely changes", got)
		}
	}, a.DeepCopy(), newPDB(minAvailable("1")), second)
}

func TestPodThatIsNotDeletedInTimeCountsAgain(t *testing.T) {
	run(t, func(f *fixture) {
		if s := f.pdb().Status; s.CurrentHealthy != 1 || len(s.DisruptedPods) != 1 {
			t.Fatalf("status %+v", s)
		}
		time.Sleep(DeletionTimeout)
		f.settle()
		if s := f.pdb().Status; s.CurrentHealthy != 2 || len(s.DisruptedPods) != 0 {
			t.Errorf("after the time-out: %+v", s)
		}
		f.expectEvent("Pod", "Warning NotDeleted Pod was expected by PDB default/default to be deleted but it wasn't")
	}, newPod("a"), newPod("b"), newPDB(minAvailable("1"), disrupted("a", 0)))
}

// An eviction writes the budget, too: a conflict is retried when the cache has caught up.
func TestConflictIsRetried(t *testing.T) {
	failures := 2
	run(t, func(f *fixture) {
		f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
			if failures == 0 {
				return false, nil, nil
			}
			failures--
			return true, nil, apierrors.NewConflict(budgetResource, "budget", errors.New("evicted"))
		})
		a := newPod("a", unready)
		f.updatePod(a)
		f.settle()
		if s := f.pdb().Status; s.CurrentHealthy != 0 || failures != 0 {
			t.Errorf("status %+v after conflicts", s)
		}
		for _, c := range f.pdb().Status.Conditions {
			if c.Reason == policy.SyncFailedReason {
				t.Error("a conflict is taken for a failure")
			}
		}
	}, newPod("a"), newPDB(minAvailable("1")))
}

func TestBudgetThatIsGone(t *testing.T) {
	run(t, func(f *fixture) {
		if err := f.client.Tracker().Delete(policy.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "default", "budget"); err != nil {
			t.Fatal(err)
		}
		f.settle()
		n := f.wrote()
		f.updatePod(newPod("a", unready))
		if f.wrote() != n {
			t.Error("a budget that is gone was written")
		}
	}, newPod("a"), newPDB(minAvailable("1")))
}

func TestStaleDisruptionTargetIsTakenBack(t *testing.T) {
	marked := newPod("a", disruptionTarget(v1.ConditionTrue, "PreemptionByScheduler", 0))
	failed := newPod("failed", disruptionTarget(v1.ConditionTrue, "PreemptionByScheduler", 0), func(p *v1.Pod) { p.Status.Phase = v1.PodFailed })
	run(t, func(f *fixture) {
		condition := func(name string) v1.PodCondition {
			pod, err := f.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == v1.DisruptionTarget {
					return c
				}
			}
			t.Fatalf("pod %s has no condition", name)
			return v1.PodCondition{}
		}
		time.Sleep(stalePodDisruptionTimeout - 3*time.Second)
		f.settle()
		if c := condition("a"); c.Status != v1.ConditionTrue {
			t.Errorf("taken back early: %+v", c)
		}
		time.Sleep(3 * time.Second)
		f.settle()
		if c := condition("a"); c.Status != v1.ConditionFalse || c.Reason != "" || c.Message != "" || c.ObservedGeneration != 3 {
			t.Errorf("condition %+v, want False without a reason", c)
		}
		if c := condition("failed"); c.Status != v1.ConditionTrue {
			t.Errorf("condition of a pod that has ended: %+v", c)
		}
		pod, err := f.client.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || len(pod.Status.Conditions) != 2 {
			t.Errorf("conditions %+v, %v: the others must stay", pod.Status.Conditions, err)
		}
	}, marked, failed)
}
