// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package statefulset

import (
	"context"
	"fmt"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/kcm-dev/kcm/pkg/features"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

func testClaimInDeletion(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(1, claims))
	c.waitComplete(1)
	pvcs := env.Client.CoreV1().PersistentVolumeClaims(c.ns)
	claim, err := pvcs.Get(t.Context(), "data-web-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = []string{"example.com/hold"}
	if claim, err = pvcs.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pvcs.Delete(t.Context(), "data-web-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.deletePod("web-0")
	c.waitAnyEvent("FailedCreate Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted")
	c.stayTags("", 500*time.Millisecond)
	claim.Finalizers = nil
	claim.ResourceVersion = ""
	if _, err := pvcs.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitComplete(1)
}

func testQuota(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	created, err := env.Client.CoreV1().ResourceQuotas(c.ns).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Hard = quota.Spec.Hard
	created.Status.Used = quota.Spec.Hard
	if _, err := env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.create(web(3, parallel))
	// The status is written although nothing could be created.
	c.waitSet("no replicas and its revision", func(set *apps.StatefulSet) bool { return set.Status.Replicas == 0 && set.Status.UpdateRevision != "" })
	env.WaitFor(t, "an event of the failure", timeout, func(ctx context.Context) (bool, error) {
		all, err := c.events(ctx)
		for event := range all {
			if len(event) > 12 && event[:12] == "FailedCreate" {
				return true, nil
			}
		}
		return false, err
	})
	if err := env.Client.CoreV1().ResourceQuotas(c.ns).Delete(t.Context(), "q", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitComplete(3)
}

func testNamespaceInDeletion(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(3))
	c.waitComplete(3)
	if err := env.Client.CoreV1().Namespaces().Delete(t.Context(), c.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mark := env.AuditMark(t)
	c.deletePod("web-1")
	c.deletePod("web-2")
	c.waitReady(1)
	c.patch(`{"metadata":{"labels":{"x":"y"}}}`)
	c.stayTags("web-0:1", time.Second)
	if n := c.sent(mark)["create pods 403"]; n > 1 {
		t.Errorf("%d pods were asked for in vain", n)
	}
}

func testConflictingController(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	config, err := env.Client.CoreV1().ConfigMaps(c.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := web(1, claims, retaining(drop, drop))
	claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
	claim.Name = "data-web-0"
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: config.UID, Controller: new(true)}}
	if _, err := env.Client.CoreV1().PersistentVolumeClaims(c.ns).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.create(set)
	c.waitComplete(1)
	c.waitAnyEvent("ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference")
	if got, err := env.Client.CoreV1().PersistentVolumeClaims(c.ns).Get(t.Context(), "data-web-0", metav1.GetOptions{}); err != nil || len(got.OwnerReferences) != 1 {
		t.Errorf("owners %v: %v", got.OwnerReferences, err)
	}
}

func testSetInDeletion(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(2, func(set *apps.StatefulSet) { set.Finalizers = []string{"example.com/hold"} }))
	c.waitComplete(2)
	if err := env.Client.AppsV1().StatefulSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.deletePod("web-1")
	c.waitReady(1)
	c.stayTags("web-0:1", time.Second)
	c.patch(`{"metadata":{"finalizers":null}}`)
}

func testMadeAnew(t *testing.T, env *framework.Env) {
	c := newCluster(t, env)
	c.create(web(2))
	before := c.waitComplete(2)
	if err := env.Client.AppsV1().StatefulSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	c.create(web(2))
	// No garbage collector runs: the test does its work.
	for _, name := range []string{"web-0", "web-1"} {
		c.deletePod(name)
	}
	after := c.waitComplete(2)
	if before.Status.CurrentRevision != after.Status.CurrentRevision || *after.Status.CollisionCount != 0 {
		t.Errorf("revision %s, then %s, %d collisions", before.Status.CurrentRevision, after.Status.CurrentRevision, *after.Status.CollisionCount)
	}
}

// BC008: kubernetes/kubernetes#114116. The API server of this package enforces owner references.
func TestClaimRetention(t *testing.T) {
	env := framework.New(t)
	startWithGarbageCollector(t, env)
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	c.create(web(3, claims, retaining(drop, drop)))
	c.waitComplete(3)
	c.waitClaims("data-web-0", "data-web-1", "data-web-2")
	if n := c.sent(mark)["update persistentvolumeclaims 200"]; n != 0 {
		t.Errorf("%d claims were updated after they had been created", n)
	}
	c.scale(1)
	c.waitComplete(1)
	c.waitClaims("data-web-0")
	for what, n := range c.sent(mark) {
		if what == "update persistentvolumeclaims 200" && n != 2 {
			t.Errorf("%d claims were handed over", n)
		}
	}
	if refused := env.AuditSince(t, mark).Where(audit.ServiceAccount(serviceAccount), audit.Code(403, 422)); len(refused) != 0 {
		t.Errorf("refused: %v", refused)
	}
	// Up again, at once after going down: new claims for new pods.
	c.scale(2)
	c.waitComplete(2)
	c.scale(1)
	c.scale(2)
	c.waitSet("2 ready", func(set *apps.StatefulSet) bool { return set.Status.ReadyReplicas == 2 && set.Status.Replicas == 2 })
	c.waitClaims("data-web-0", "data-web-1")
	if err := env.Client.AppsV1().StatefulSets(c.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitTags("")
	c.waitClaims()
}

// Claims change their owners with the policy of a set that is there.
func TestClaimRetentionPolicyChange(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	c.create(web(2, claims))
	c.waitComplete(2)
	waitOwners := func(want int) {
		t.Helper()
		env.WaitFor(t, fmt.Sprintf("claims with %d owners", want), timeout, func(ctx context.Context) (bool, error) {
			list, err := env.Client.CoreV1().PersistentVolumeClaims(c.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for _, claim := range list.Items {
				if len(claim.OwnerReferences) != want {
					return false, fmt.Errorf("%s has %v", claim.Name, claim.OwnerReferences)
				}
			}
			return len(list.Items) == 2, nil
		})
	}
	waitOwners(0)
	c.patch(`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`)
	waitOwners(1)
	c.patch(`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}`)
	waitOwners(0)
}

func TestRecreateStrategy(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.StatefulSetRecreateStrategy, true)
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	c.create(web(3, claims, strategy(apps.RecreateStatefulSetStrategyType)))
	c.waitComplete(3)
	c.kubelet.HoldDeletion(func(pod *corev1.Pod) bool { return pod.Name == "web-0" })
	c.patch(`{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":30}}}}`)
	c.waitComplete(3)
	c.setImage("2")
	c.waitSet("its old pods deleted", func(set *apps.StatefulSet) bool {
		return len(set.Status.Conditions) == 1 && set.Status.Conditions[0].Reason == "RecreateInProgress"
	})
	c.kubelet.HoldDeletion(nil)
	c.waitTags("web-0:2 web-1:2 web-2:2")
	c.waitSet("all pods recreated", func(set *apps.StatefulSet) bool {
		s := set.Status
		return len(s.Conditions) == 1 && s.Conditions[0].Reason == "RecreateCompleted" && s.Conditions[0].Status == corev1.ConditionFalse && s.ReadyReplicas == 3
	})
	c.waitClaims("data-web-0", "data-web-1", "data-web-2")
}

func TestRecreateStrategyWithoutItsGate(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	c.create(web(1, strategy(apps.RecreateStatefulSetStrategyType)))
	c.waitAnyEvent(fmt.Sprintf("UnknownStrategy statefulset %s/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled", c.ns))
	c.stayTags("", time.Second)
}

// With our gate a set leaves a bad revision by itself.
func TestLeaveBadRevision(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.KCMStatefulSetLeaveBadRevision, true)
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	c.create(web(3))
	c.waitComplete(3)
	c.become(fakekubelet.Waiting, "bad")
	c.setImage("bad")
	c.waitTags("web-0:1 web-1:1 web-2:bad")
	c.setImage("3")
	c.waitAnyEvent("waits for Pod web-2")
	c.waitTags("web-0:3 web-1:3 web-2:3")
	c.waitComplete(3)
}

// Requests are the writes that are needed, none twice, whatever the caches show.
func TestRequestsOfAParallelSet(t *testing.T) {
	env := framework.New(t)
	start(t, env, framework.ControllersOptions{})
	c := newCluster(t, env)
	mark := env.AuditMark(t)
	c.create(web(60, parallel, claims))
	c.waitComplete(60)
	// In one write: two would meet the controller's own write of the status.
	c.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":20}},"template":{"spec":{"containers":[{"name":"main","image":"example.com/web:2"}]}}}}`)
	c.waitSet("all updated", func(set *apps.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 60 && set.Status.ReadyReplicas == 60
	})
	c.scale(0)
	c.waitComplete(0)
	sent := c.sent(mark)
	for what, n := range map[string]int{
		"create pods 201": 120, "delete pods 200": 120, "create persistentvolumeclaims 201": 60, "create controllerrevisions.apps 201": 2,
	} {
		if sent[what] != n {
			t.Errorf("%s: %d times, want %d", what, sent[what], n)
		}
		delete(sent, what)
	}
	t.Logf("%d updates of the status", sent["update statefulsets.apps/status 200"])
	delete(sent, "update statefulsets.apps/status 200")
	if len(sent) != 0 {
		t.Errorf("more was sent: %v", sent)
	}
}
