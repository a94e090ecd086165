// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// TestStatefulSets runs one controller for tests that do not disturb each other.
func TestStatefulSets(t *testing.T) {
	start(t, framework.New(t), framework.ControllersOptions{})
	for name, test := range map[string]func(*testing.T, *framework.Env){
		"life":                             testLife,
		"parallel":                         testParallel,
		"rolling update":                   testRollingUpdate,
		"max unavailable":                  testMaxUnavailable,
		"partition (BC009)":                testPartition,
		"on delete":                        testOnDelete,
		"reverted template (BC001)":        testRevertedTemplate,
		"min ready seconds (BC004)":        testMinReadySeconds,
		"labelled claim templates (BC006)": testLabelledClaimTemplates,
		"failed and deleted pods":          testFailedAndDeletedPods,
		"start ordinal":                    testStartOrdinal,
		"adoption and release":             testAdoptionAndRelease,
		"history limit and rollback":       testHistory,
		"old encoding of a revision":       testOldEncoding,
		"claim in deletion":                testClaimInDeletion,
		"quota":                            testQuota,
		"namespace in deletion":            testNamespaceInDeletion,
		"claims of another controller":     testConflictingController,
		"deletion leaves the pods":         testSetInDeletion,
		"made anew with the same template": testMadeAnew,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, framework.New(t))
		})
	}
}

func (c *cluster) sent(mark audit.Mark) map[string]int {
	c.t.Helper()
	return c.env.AuditSince(c.t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Not(audit.Resource("events"))).
		Count(func(e audit.Event) string { return fmt.Sprintf("%s %s %d", e.Verb, e.Resource(), e.Code()) })
}

func testLife(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	set := c.create(web(3, claims))
	c.waitComplete(3)
	pods, err := c.listPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, pod := range pods {
		want := map[string]string{
			"app": "web", apps.StatefulSetPodNameLabel: pod.Name, apps.PodIndexLabel: fmt.Sprint(i),
			apps.StatefulSetRevisionLabel: c.revisions()[0].Name,
		}
		for key, value := range want {
			if pod.Labels[key] != value {
				t.Errorf("%s: label %s is %q, want %q", pod.Name, key, pod.Labels[key], value)
			}
		}
		if pod.Name != fmt.Sprintf("web-%d", i) || pod.Spec.Hostname != pod.Name || pod.Spec.Subdomain != "svc" || !metav1.IsControlledBy(&pod, set) {
			t.Errorf("pod %s: hostname %s, subdomain %s, owners %v", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain, pod.OwnerReferences)
		}
		if v := pod.Spec.Volumes[0]; v.Name != "data" || v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "data-"+pod.Name {
			t.Errorf("pod %s: volume %+v", pod.Name, v)
		}
	}
	sent := c.sent(mark)
	for what, n := range map[string]int{"create pods 201": 3, "create persistentvolumeclaims 201": 3, "create controllerrevisions.apps 201": 1} {
		if sent[what] != n {
			t.Errorf("%s: %d times, want %d", what, sent[what], n)
		}
		delete(sent, what)
	}
	delete(sent, "update statefulsets.apps/status 200")
	if len(sent) != 0 {
		t.Errorf("more was sent: %v", sent)
	}
	for i := range 3 {
		c.waitEvent(fmt.Sprintf("SuccessfulCreate Create Claim data-web-%d Pod web-%d in StatefulSet web success", i, i), 1)
		c.waitEvent(fmt.Sprintf("SuccessfulCreate Create Pod web-%d in StatefulSet web successful", i), 1)
	}
	// Nothing to do, nothing sent.
	mark = env.AuditMark(t)
	c.patch(`{"metadata":{"labels":{"x":"y"}}}`)
	c.stayTags("web-0:1 web-1:1 web-2:1", time.Second)
	if sent := c.sent(mark); len(sent) != 0 {
		t.Errorf("sent at rest: %v", sent)
	}
	c.scale(1)
	c.waitComplete(1)
	c.waitTags("web-0:1")
	c.waitEvent("SuccessfulDelete Delete Pod web-2 in StatefulSet web successful", 1)
	c.waitClaims("data-web-0", "data-web-1", "data-web-2") // kept
	c.scale(0)
	c.waitComplete(0)
}

// An ordered set makes its Pods one after the other; a parallel one does not wait.
func testParallel(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.become(fakekubelet.NotReady, "1")
	c.create(web(4, parallel))
	c.waitTags("web-0:1 web-1:1 web-2:1 web-3:1")
	c.become(fakekubelet.Ready, "1")
	c.waitComplete(4)
	c.scale(30)
	c.waitComplete(30)
	c.scale(1)
	c.waitComplete(1)
}

func testRollingUpdate(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(3))
	before := c.waitComplete(3)
	mark := env.AuditMark(t)
	c.setImage("2")
	after := c.waitSet("the new revision", func(set *apps.StatefulSet) bool {
		return set.Status.CurrentRevision == set.Status.UpdateRevision && set.Status.CurrentRevision != before.Status.CurrentRevision && set.Status.ReadyReplicas == 3
	})
	if after.Status.CurrentReplicas != 3 || after.Status.UpdatedReplicas != 3 {
		t.Errorf("status %+v", after.Status)
	}
	c.waitTags("web-0:2 web-1:2 web-2:2")
	var order []string
	for _, e := range env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Namespace(c.ns), audit.Resource("pods")) {
		name := e.ObjectRef.Name
		order = append(order, e.Verb+" "+name)
	}
	if got, want := strings.Join(order, ", "), "delete web-2, create web-2, delete web-1, create web-1, delete web-0, create web-0"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func testMaxUnavailable(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(5, parallel, rolling(0, 2)))
	c.waitComplete(5)
	c.become(fakekubelet.NotReady, "2")
	c.setImage("2")
	c.waitTags("web-0:1 web-1:1 web-2:1 web-3:2 web-4:2")
	c.stayTags("web-0:1 web-1:1 web-2:1 web-3:2 web-4:2", time.Second)
	c.become(fakekubelet.Ready, "2")
	c.waitTags("web-0:2 web-1:2 web-2:2 web-3:2 web-4:2")
	c.waitComplete(5)
	// A bad template of a parallel set is mended by the next one.
	c.become(fakekubelet.NotReady, "3")
	c.setImage("3")
	c.waitTags("web-0:2 web-1:2 web-2:2 web-3:3 web-4:3")
	c.setImage("2")
	c.waitComplete(5)
	c.waitTags("web-0:2 web-1:2 web-2:2 web-3:2 web-4:2")
}

func testPartition(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(5, rolling(1, 1)))
	c.waitComplete(5)
	c.setImage("2")
	c.waitTags("web-0:1 web-1:2 web-2:2 web-3:2 web-4:2")
	c.waitReady(5)
	uid := c.pod("web-0").UID
	c.deletePod("web-0")
	env.WaitFor(t, "another web-0", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, "web-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && pod.UID != uid, err
	})
	c.waitTags("web-0:1 web-1:2 web-2:2 web-3:2 web-4:2")
	set := c.waitSet("5 ready of two revisions", func(set *apps.StatefulSet) bool {
		s := set.Status
		return s.ReadyReplicas == 5 && s.UpdatedReplicas == 4 && s.CurrentReplicas == 1 && s.CurrentRevision != s.UpdateRevision
	})
	if label := c.pod("web-0").Labels[apps.StatefulSetRevisionLabel]; label != set.Status.CurrentRevision {
		t.Errorf("web-0 is of revision %s", label)
	}
	c.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	c.waitTags("web-0:2 web-1:2 web-2:2 web-3:2 web-4:2")
	c.waitComplete(5)
}

func testOnDelete(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(3, strategy(apps.OnDeleteStatefulSetStrategyType)))
	c.waitComplete(3)
	c.setImage("2")
	c.waitSet("a new revision", func(set *apps.StatefulSet) bool { return set.Status.CurrentRevision != set.Status.UpdateRevision })
	c.stayTags("web-0:1 web-1:1 web-2:1", time.Second)
	c.deletePod("web-1")
	c.waitTags("web-0:1 web-1:2 web-2:1")
	c.waitReady(3)
	c.deletePod("web-0")
	c.waitTags("web-0:2 web-1:2 web-2:1")
	c.waitReady(3)
	c.deletePod("web-2")
	c.waitComplete(3)
}

// BC001: kubernetes/kubernetes#67250.
func testRevertedTemplate(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(3))
	c.waitComplete(3)
	c.become(fakekubelet.Waiting, "bad")
	c.setImage("bad")
	c.waitTags("web-0:1 web-1:1 web-2:bad")
	c.waitReady(2)
	c.setImage("1")
	c.waitSet("its first revision again", func(set *apps.StatefulSet) bool { return set.Status.CurrentRevision == set.Status.UpdateRevision })
	c.waitAnyEvent("waits for Pod web-2")
	c.stayTags("web-0:1 web-1:1 web-2:bad", 5*time.Second)
	all, err := c.events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for event, n := range all {
		if strings.HasPrefix(event, "RolloutBlocked") && n != 1 {
			t.Errorf("told %d times: %s", n, event)
		}
	}
	c.deletePod("web-2")
	c.waitTags("web-0:1 web-1:1 web-2:1")
	set := c.waitComplete(3)
	if n := len(c.revisions()); n != 2 || set.Status.CurrentRevision != c.revisions()[1].Name {
		t.Errorf("%d revisions, current %s", n, set.Status.CurrentRevision)
	}
}

// BC004: kubernetes/kubernetes#135428.
func testMinReadySeconds(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(1, func(set *apps.StatefulSet) { set.Spec.MinReadySeconds = 10 }))
	set := c.waitReady(1)
	if set.Status.AvailableReplicas != 0 {
		t.Error("available at once")
	}
	c.waitSet("1 available", func(set *apps.StatefulSet) bool { return set.Status.AvailableReplicas == 1 })
	for _, condition := range c.pod("web-0").Status.Conditions {
		// Times of conditions are whole seconds; the machine may be busy.
		if after := time.Since(condition.LastTransitionTime.Time); condition.Type == corev1.PodReady && (after < 10*time.Second || after > 30*time.Second) {
			t.Errorf("available after %v", after)
		}
	}
}

// BC006: kubernetes/kubernetes#121142.
func testLabelledClaimTemplates(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(1, parallel, claims))
	c.waitComplete(1)
	for range 5 {
		c.scale(5)
		c.waitComplete(5)
		c.waitClaims("data-web-0", "data-web-1", "data-web-2", "data-web-3", "data-web-4")
		list, err := env.Client.CoreV1().PersistentVolumeClaims(c.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range list.Items {
			if len(claim.Labels) != 2 || claim.Labels["disk"] != "fast" || claim.Labels["app"] != "web" {
				t.Errorf("claim %s has labels %v", claim.Name, claim.Labels)
			}
			if claim.Name != "data-web-0" {
				if err := env.Client.CoreV1().PersistentVolumeClaims(c.ns).Delete(t.Context(), claim.Name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		}
		c.scale(1)
		c.waitComplete(1)
		c.waitTags("web-0:1")
	}
	set, err := env.Client.AppsV1().StatefulSets(c.ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || len(set.Spec.VolumeClaimTemplates[0].Labels) != 1 {
		t.Errorf("template %+v: %v", set.Spec.VolumeClaimTemplates, err)
	}
}

func testFailedAndDeletedPods(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(3))
	c.waitComplete(3)
	for _, outcome := range []fakekubelet.Outcome{fakekubelet.Failed, fakekubelet.Succeeded} {
		uid := c.pod("web-1").UID
		c.kubelet.Set(outcome, func(pod *corev1.Pod) bool { return pod.UID == uid })
		env.WaitFor(t, "another web-1", timeout, func(ctx context.Context) (bool, error) {
			pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, "web-1", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil && pod.UID != uid, err
		})
		c.waitComplete(3)
	}
	c.deletePod("web-0")
	c.deletePod("web-2")
	c.waitTags("web-0:1 web-1:1 web-2:1")
	c.waitComplete(3)
}

func testStartOrdinal(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(2))
	c.waitComplete(2)
	c.patch(`{"spec":{"ordinals":{"start":2}}}`)
	c.waitTags("web-2:1 web-3:1")
	c.waitComplete(2)
	c.patch(`{"spec":{"ordinals":{"start":1}}}`)
	c.waitTags("web-1:1 web-2:1")
	c.waitComplete(2)
}

func testAdoptionAndRelease(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	set := c.create(web(2))
	c.waitComplete(2)
	uid := c.pod("web-1").UID
	c.patchPod("web-1", `{"metadata":{"labels":{"app":"other"}}}`)
	env.WaitFor(t, "web-1 to be released", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, "web-1", metav1.GetOptions{})
		return err == nil && metav1.GetControllerOf(pod) == nil, err
	})
	c.patchPod("web-1", `{"metadata":{"labels":{"app":"web","apps.kubernetes.io/pod-index":null}}}`)
	env.WaitFor(t, "web-1 to be adopted, and its label mended", timeout, func(ctx context.Context) (bool, error) {
		pod, err := env.Client.CoreV1().Pods(c.ns).Get(ctx, "web-1", metav1.GetOptions{})
		return err == nil && metav1.IsControlledBy(pod, set) && pod.UID == uid && pod.Labels[apps.PodIndexLabel] == "1", err
	})
	c.waitComplete(2)
	c.waitEvent("SuccessfulUpdate Update Pod web-1 in StatefulSet web successful", 1)
}

func testHistory(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(1, func(set *apps.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(1)) }))
	first := c.waitComplete(1).Status.CurrentRevision
	for _, tag := range []string{"2", "3"} {
		c.setImage(tag)
		c.waitTags("web-0:" + tag)
		c.waitComplete(1)
	}
	env.WaitFor(t, "two revisions", timeout, func(context.Context) (bool, error) { return len(c.revisions()) == 2, nil })
	if revisions := c.revisions(); revisions[0].Name == first || revisions[0].Revision != 2 || revisions[1].Revision != 3 {
		t.Errorf("revisions %v, first %s", revisions, first)
	}
	second := c.revisions()[0].Name
	c.setImage("2")
	c.waitTags("web-0:2")
	if got := c.waitComplete(1).Status.CurrentRevision; got != second {
		t.Errorf("back to revision %s, want %s", got, second)
	}
	if revisions := c.revisions(); len(revisions) != 2 || revisions[1].Name != second || revisions[1].Revision != 4 {
		t.Errorf("revisions %v", revisions)
	}
}

// A revision that an older manager wrote in another way rolls nothing.
func testOldEncoding(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(2, strategy(apps.OnDeleteStatefulSetStrategyType))) // which lets the test prepare in peace
	c.waitComplete(2)
	old := c.revisions()[0]
	// Its data cannot be changed, so the same revision is made anew under another name; the set is pointed to it.
	if err := env.Client.AppsV1().ControllerRevisions(c.ns).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	older := old.DeepCopy()
	older.ObjectMeta = metav1.ObjectMeta{Name: "web-older", Labels: old.Labels, Annotations: old.Annotations, OwnerReferences: old.OwnerReferences}
	older.Revision = 7
	older.Data.Raw = []byte(strings.Replace(string(old.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
	if _, err := env.Client.AppsV1().ControllerRevisions(c.ns).Create(t.Context(), older, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := c.listPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range before {
		c.patchPod(pod.Name, `{"metadata":{"labels":{"controller-revision-hash":"web-older"}}}`)
	}
	wakes := 0
	env.WaitFor(t, "the controller to know the older revision", timeout, func(ctx context.Context) (bool, error) {
		wakes++ // no event tells of a revision
		c.patch(fmt.Sprintf(`{"metadata":{"annotations":{"wake":"%d"}}}`, wakes))
		set, err := env.Client.AppsV1().StatefulSets(c.ns).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && set.Status.UpdateRevision == "web-older", err
	})
	c.patch(`{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
	c.waitSet("the older revision", func(set *apps.StatefulSet) bool { return set.Status.UpdateRevision == "web-older" })
	c.waitComplete(2)
	c.stayTags("web-0:1 web-1:1", time.Second)
	after, err := c.listPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(before, after, func(a, b corev1.Pod) bool { return a.UID == b.UID }) {
		t.Error("pods were made anew")
	}
}
