// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deployment

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// TestDeployments runs each case in a namespace of its own, all before the same controllers.
func TestDeployments(t *testing.T) {
	env := framework.New(t)
	kubelet := newNodes(t, env)
	start(t, env, framework.ControllersOptions{})
	cases := map[string]func(*cluster){
		"a new deployment":                             testNew,
		"a rollout and back":                           testRollout,
		"the selector is immutable":                    testSelectorIsImmutable,
		"paused and scaled (BC022)":                    testPaused,
		"a hash collision":                             testHashCollision,
		"pods that never come up":                      testProgressDeadline,
		"no progress deadline":                         testNoDeadline,
		"overlapping deployments":                      testOverlapping,
		"proportional scaling (BC017)":                 testProportionalScaling,
		"a stale desired-replicas annotation (BC018)":  testStaleAnnotation,
		"a very long name (BC020)":                     testLongName,
		"replicas default to one":                      testDefaultReplicas,
		"minReadySeconds and availability":             testMinReadySeconds,
		"adoption and release":                         testAdoption,
		"the scale subresource":                        testScaleSubresource,
		"recreate waits for old pods":                  testRecreate,
		"terminating pods are counted, not waited for": testTerminatingPods,
		"revision history":                             testRevisionHistory,
		"the rollback annotation":                      testRollback,
		"annotations":                                  testAnnotations,
		"a replica set that may not be created":        testCreateDenied,
		"pods that may not be created":                 testReplicaFailure,
		"being deleted":                                testDeletion,
		"a namespace that is being deleted":            testTerminatingNamespace,
		"the new replica set is deleted":               testNewReplicaSetDeleted,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newCluster(t, env, kubelet))
		})
	}
}

func testNew(c *cluster) {
	c.create(web(2))
	d := c.waitComplete("web")
	rs := c.replicaSet("v1")
	hash := rs.Labels[hashLabel]
	if hash == "" || rs.Name != "web-"+hash || rs.Spec.Selector.MatchLabels[hashLabel] != hash || rs.Spec.Template.Labels[hashLabel] != hash {
		c.t.Errorf("the hash is not everywhere: %+v", rs)
	}
	if !metav1.IsControlledBy(&rs, d) {
		c.t.Errorf("owners: %v", rs.OwnerReferences)
	}
	for _, pod := range c.listPods() {
		if pod.Labels[hashLabel] != hash {
			c.t.Errorf("pod %s has labels %v", pod.Name, pod.Labels)
		}
	}
	for what, revision := range map[string]string{"deployment": d.Annotations[util.RevisionAnnotation], "replica set": rs.Annotations[util.RevisionAnnotation]} {
		if revision != "1" {
			c.t.Errorf("the %s has revision %q", what, revision)
		}
	}
	if rs.Annotations[util.DesiredReplicasAnnotation] != "2" || rs.Annotations[util.MaxReplicasAnnotation] != "3" {
		c.t.Errorf("annotations: %v", rs.Annotations)
	}
	c.waitEvents("web", "Normal ScalingReplicaSet Scaled up replica set v1 from 0 to 2")
}

func testRollout(c *cluster) {
	c.create(web(3, rolling(1, 0)))
	c.waitComplete("web")
	c.setImage("web", "v2")
	d := c.waitComplete("web")
	if d.Annotations[util.RevisionAnnotation] != "2" {
		c.t.Errorf("revision %s", d.Annotations[util.RevisionAnnotation])
	}
	c.waitSizes(sizes{"v1": 0, "v2": 3})
	c.waitEvents("web",
		"Normal ScalingReplicaSet Scaled up replica set v1 from 0 to 3",
		"Normal ScalingReplicaSet Scaled up replica set v2 from 0 to 1",
		"Normal ScalingReplicaSet Scaled down replica set v1 from 3 to 2",
		"Normal ScalingReplicaSet Scaled up replica set v2 from 1 to 2",
		"Normal ScalingReplicaSet Scaled down replica set v1 from 2 to 1",
		"Normal ScalingReplicaSet Scaled up replica set v2 from 2 to 3",
		"Normal ScalingReplicaSet Scaled down replica set v1 from 1 to 0")
	c.setImage("web", "v1")
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 3, "v2": 0})
	rs := c.replicaSet("v1")
	if rs.Annotations[util.RevisionAnnotation] != "3" || rs.Annotations[util.RevisionHistoryAnnotation] != "1" {
		c.t.Errorf("annotations: %v", rs.Annotations)
	}
}

func testSelectorIsImmutable(c *cluster) {
	c.create(web(1))
	patch := []byte(`{"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}}}}}`)
	_, err := c.env.Client.AppsV1().Deployments(c.ns).Patch(c.t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		c.t.Errorf("got %v", err)
	}
	c.waitComplete("web")
}

func testPaused(c *cluster) {
	const deadline = 4
	c.create(web(4, func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(deadline)) }))
	c.waitComplete("web")
	c.pods(fakekubelet.NotReady, "v2")
	c.patch("web", `{"spec":{"paused":true,"replicas":6,"template":{"spec":{"containers":[{"name":"main","image":"v2"}]}}}}`)
	cond := c.waitReason("web", apps.DeploymentProgressing, util.PausedDeployReason)
	if cond.Status != corev1.ConditionUnknown || cond.Message != "Deployment is paused" {
		c.t.Errorf("condition %+v", cond)
	}
	c.waitSizes(sizes{"v1": 6})
	c.neverOtherSizes(sizes{"v1": 6}, (deadline+2)*time.Second)
	if cond := c.waitReason("web", apps.DeploymentProgressing, util.PausedDeployReason); cond.Status != corev1.ConditionUnknown {
		c.t.Errorf("condition %+v", cond)
	}

	resumed := time.Now()
	c.patch("web", `{"spec":{"paused":false}}`)
	timedOut := c.waitReason("web", apps.DeploymentProgressing, util.TimedOutReason)
	if after := time.Since(resumed); after < (deadline-1)*time.Second {
		c.t.Errorf("timed out %v after it was resumed, the deadline is %d s", after, deadline)
	}
	if timedOut.Status != corev1.ConditionFalse {
		c.t.Errorf("condition %+v", timedOut)
	}
	c.pods(fakekubelet.Ready, "v2")
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 6})
}

func testHashCollision(c *cluster) {
	c.create(web(1))
	c.waitComplete("web")
	first := c.replicaSet("v1")
	if err := c.env.Client.AppsV1().Deployments(c.ns).Delete(c.t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
		c.t.Fatal(err)
	}
	c.patch("web", `{"metadata":{"finalizers":null}}`) // there is no garbage collector to do it
	// Another template under the name that the first has: what a collision looks like.
	if err := c.env.Client.AppsV1().ReplicaSets(c.ns).Delete(c.t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	blocker := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: first.Name}, Spec: apps.ReplicaSetSpec{Replicas: new(int32(0)),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}, Template: template("other", "other")}}
	if _, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Create(c.t.Context(), blocker, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.create(web(1))
	d := c.waitComplete("web")
	if d.Status.CollisionCount == nil || *d.Status.CollisionCount != 1 {
		c.t.Errorf("collisions: %v", d.Status.CollisionCount)
	}
	if second := c.replicaSet("v1"); second.Name == first.Name || !metav1.IsControlledBy(&second, d) {
		c.t.Errorf("the replica set is %s", second.Name)
	}
}

func testProgressDeadline(c *cluster) {
	c.create(web(2, rolling(1, 0), func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(3)) }))
	c.waitComplete("web")
	c.pods(fakekubelet.NotReady, "v2")
	c.setImage("web", "v2")
	cond := c.waitReason("web", apps.DeploymentProgressing, util.TimedOutReason)
	if want := fmt.Sprintf("ReplicaSet %q has timed out progressing.", c.replicaSet("v2").Name); cond.Status != corev1.ConditionFalse || cond.Message != want {
		c.t.Errorf("condition %+v, want message %q", cond, want)
	}
	c.waitSizes(sizes{"v1": 2, "v2": 1})
	if cond := c.waitReason("web", apps.DeploymentAvailable, util.MinimumReplicasAvailable); cond.Status != corev1.ConditionTrue {
		c.t.Errorf("condition %+v", cond)
	}
	c.pods(fakekubelet.Ready, "v2")
	c.waitComplete("web")
}

func testNoDeadline(c *cluster) {
	c.create(web(1, func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(math.MaxInt32)) }))
	d := c.waitComplete("web")
	if cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing); cond != nil {
		c.t.Errorf("condition %+v", cond)
	}
}

func testOverlapping(c *cluster) {
	first := c.create(web(2))
	c.waitComplete("web")
	second := c.create(web(1, func(d *apps.Deployment) { d.Name = "other"; d.Spec.Template.Spec.Containers[0].Image = "v9" }))
	c.waitComplete("other")
	c.waitComplete("web")
	c.neverOtherSizes(sizes{"v1": 2, "v9": 1}, 2*time.Second)
	v1, v9 := c.replicaSet("v1"), c.replicaSet("v9")
	if !metav1.IsControlledBy(&v1, first) || !metav1.IsControlledBy(&v9, second) {
		c.t.Errorf("owners: %v, %v", v1.OwnerReferences, v9.OwnerReferences)
	}
	c.setImage("web", "v2")
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 2, "v9": 1})
}

func testProportionalScaling(c *cluster) {
	c.create(web(10, rolling(3, 2)))
	c.waitComplete("web")
	c.pods(fakekubelet.NotReady, "v2")
	c.setImage("web", "v2")
	c.waitSizes(sizes{"v1": 8, "v2": 5})
	c.waitDeployment("web", "13 pods", func(d *apps.Deployment) bool { return d.Status.Replicas == 13 })
	c.scale("web", 15)
	c.waitSizes(sizes{"v1": 11, "v2": 7})
	for _, image := range []string{"v1", "v2"} {
		a := c.replicaSet(image).Annotations
		if a[util.DesiredReplicasAnnotation] != "15" || a[util.MaxReplicasAnnotation] != "18" {
			c.t.Errorf("%s: annotations %v", image, a)
		}
	}
	c.neverOtherSizes(sizes{"v1": 11, "v2": 7}, 2*time.Second)
}

func testStaleAnnotation(c *cluster) {
	c.create(web(3, rolling(0, 1)))
	c.waitComplete("web")
	c.pods(fakekubelet.NotReady, "v2")
	c.setImage("web", "v2")
	c.waitSizes(sizes{"v1": 2, "v2": 1})
	spoil := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2"}}}`, util.DesiredReplicasAnnotation)
	c.patchReplicaSet(c.replicaSet("v2").Name, spoil)
	c.env.WaitFor(c.t, "the annotation to be repaired", timeout, func(ctx context.Context) (bool, error) {
		sets, err := c.replicaSets(ctx)
		rs := sets["v2"]
		return rs.Annotations[util.DesiredReplicasAnnotation] == "3", err
	})
	c.pods(fakekubelet.Ready, "v2")
	c.waitComplete("web")

	// The only active one, of the right size: here the rollout of upstream never begins.
	c.patchReplicaSet(c.replicaSet("v2").Name, spoil)
	c.setImage("web", "v3")
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 0, "v3": 3})
}

func testLongName(c *cluster) {
	name := strings.Repeat("a", 242) + "." + strings.Repeat("b", 10)
	d := c.create(web(1, func(d *apps.Deployment) { d.Name = name }))
	c.waitDeployment(name, "complete", isComplete)
	rs := c.replicaSet("v1")
	if !metav1.IsControlledBy(&rs, d) || len(rs.Name) > 253 || !strings.HasSuffix(rs.Name, "-"+rs.Labels[hashLabel]) {
		c.t.Errorf("replica set %s of %v", rs.Name, rs.OwnerReferences)
	}
}

func testDefaultReplicas(c *cluster) {
	c.create(web(0, func(d *apps.Deployment) { d.Spec.Replicas = nil }))
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 1})
}

func testMinReadySeconds(c *cluster) {
	c.create(web(2, func(d *apps.Deployment) {
		d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = 3600, new(int32(7200))
	}))
	c.waitDeployment("web", "ready", func(d *apps.Deployment) bool { return d.Status.ReadyReplicas == 2 })
	cond := c.waitReason("web", apps.DeploymentAvailable, util.MinimumReplicasUnavailable)
	if cond.Status != corev1.ConditionFalse || c.get("web").Status.AvailableReplicas != 0 || c.get("web").Status.UnavailableReplicas != 2 {
		c.t.Errorf("condition %+v, status %+v", cond, c.get("web").Status)
	}
	c.patch("web", `{"spec":{"minReadySeconds":1}}`)
	c.waitReason("web", apps.DeploymentAvailable, util.MinimumReplicasAvailable)
	c.waitComplete("web")
	if rs := c.replicaSet("v1"); rs.Spec.MinReadySeconds != 1 {
		c.t.Errorf("the replica set has minReadySeconds %d", rs.Spec.MinReadySeconds)
	}
}

func testAdoption(c *cluster) {
	d := c.create(web(1))
	c.waitComplete("web")
	first := c.replicaSet("v1")

	// Relabelled, it is released, and another takes its place.
	c.patchReplicaSet(first.Name, `{"metadata":{"labels":{"app":"gone"}}}`)
	c.env.WaitFor(c.t, "the replica set to be released", timeout, func(ctx context.Context) (bool, error) {
		rs, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Get(ctx, first.Name, metav1.GetOptions{})
		return err == nil && len(rs.OwnerReferences) == 0, err
	})
	// Its name is taken still, so that the new one gets another.
	c.env.WaitFor(c.t, "a second replica set", timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.AppsV1().ReplicaSets(c.ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 2, err
	})
	if d := c.waitComplete("web"); d.Status.CollisionCount == nil || *d.Status.CollisionCount != 1 {
		c.t.Errorf("collisions: %v", d.Status.CollisionCount)
	}
	// Labelled as before, it comes back: the oldest of that template, it is the new one again.
	c.patchReplicaSet(first.Name, `{"metadata":{"labels":{"app":"web"}}}`)
	c.env.WaitFor(c.t, "the replica set to be adopted and the other to be empty", timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.AppsV1().ReplicaSets(c.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, rs := range list.Items {
			want := int32(0)
			if rs.Name == first.Name {
				want = 1
			}
			if !metav1.IsControlledBy(&rs, d) || *rs.Spec.Replicas != want {
				return false, fmt.Errorf("%s: %d replicas, owners %v", rs.Name, *rs.Spec.Replicas, rs.OwnerReferences)
			}
		}
		return len(list.Items) == 2, nil
	})
	c.waitComplete("web")
}

func testScaleSubresource(c *cluster) {
	c.create(web(1))
	c.waitComplete("web")
	scale := &autoscaling.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.ns}, Spec: autoscaling.ScaleSpec{Replicas: 3}}
	if _, err := c.env.Client.AppsV1().Deployments(c.ns).UpdateScale(c.t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 3})
	got, err := c.env.Client.AppsV1().Deployments(c.ns).GetScale(c.t.Context(), "web", metav1.GetOptions{})
	if err != nil || got.Status.Replicas != 3 || got.Status.Selector != "app=web" {
		c.t.Errorf("scale: %+v, %v", got, err)
	}
}

func testRecreate(c *cluster) {
	c.create(web(2, recreating))
	c.waitComplete("web")
	c.kubelet.hold(c.ns, true)
	c.setImage("web", "v2")
	c.waitSizes(sizes{"v1": 0})
	c.waitDeployment("web", "without pods", func(d *apps.Deployment) bool { return d.Status.Replicas == 0 })
	if n := *c.waitDeployment("web", "counting", func(d *apps.Deployment) bool { return d.Status.TerminatingReplicas != nil }).Status.TerminatingReplicas; n != 2 {
		c.t.Errorf("%d terminating pods", n)
	}
	c.neverOtherSizes(sizes{"v1": 0}, 3*time.Second)
	c.kubelet.hold(c.ns, false)
	c.waitComplete("web")
	c.waitSizes(sizes{"v1": 0, "v2": 2})
	c.waitEvents("web",
		"Normal ScalingReplicaSet Scaled up replica set v1 from 0 to 2",
		"Normal ScalingReplicaSet Scaled down replica set v1 from 2 to 0",
		"Normal ScalingReplicaSet Scaled up replica set v2 from 0 to 2")
}

func testTerminatingPods(c *cluster) {
	c.create(web(2, rolling(1, 0)))
	c.waitComplete("web")
	c.kubelet.hold(c.ns, true)
	c.setImage("web", "v2")
	c.waitComplete("web") // rolling: old pods that take long to end do not hold it up
	if d := c.waitDeployment("web", "with two terminating pods", func(d *apps.Deployment) bool {
		return d.Status.TerminatingReplicas != nil && *d.Status.TerminatingReplicas == 2
	}); d.Status.Replicas != 2 {
		c.t.Errorf("status %+v", d.Status)
	}
	c.kubelet.hold(c.ns, false)
	c.waitDeployment("web", "without terminating pods", func(d *apps.Deployment) bool {
		return d.Status.TerminatingReplicas != nil && *d.Status.TerminatingReplicas == 0
	})
}

func testRevisionHistory(c *cluster) {
	c.create(web(1, func(d *apps.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(1)) }))
	for _, image := range []string{"v1", "v2", "v3", "v4"} {
		c.setImage("web", image)
		c.waitComplete("web")
	}
	c.waitSizes(sizes{"v3": 0, "v4": 1})
	c.patch("web", `{"spec":{"revisionHistoryLimit":0}}`)
	c.waitSizes(sizes{"v4": 1})
}

func testRollback(c *cluster) {
	c.create(web(1, func(d *apps.Deployment) { d.Annotations = map[string]string{"a": "1"} }))
	c.waitComplete("web")
	c.patch("web", `{"metadata":{"annotations":{"a":"2","b":"2"}},"spec":{"template":{"spec":{"containers":[{"name":"main","image":"v2"}]}}}}`)
	c.waitComplete("web")
	roll := func(revision string) {
		c.patch("web", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, apps.DeprecatedRollbackTo, revision))
		c.waitDeployment("web", "answered", func(d *apps.Deployment) bool {
			_, asks := d.Annotations[apps.DeprecatedRollbackTo]
			return !asks
		})
	}
	roll("0")
	d := c.waitDeployment("web", "rolled back", func(d *apps.Deployment) bool {
		return isComplete(d) && d.Annotations[util.RevisionAnnotation] == "3"
	})
	if d.Spec.Template.Spec.Containers[0].Image != "v1" || d.Spec.Template.Labels[hashLabel] != "" {
		c.t.Errorf("template %+v", d.Spec.Template)
	}
	if _, has := d.Annotations["b"]; has || d.Annotations["a"] != "1" {
		c.t.Errorf("annotations %v", d.Annotations)
	}
	roll("3")
	roll("9")
	c.waitEvents("web", // the first one twice
		"Normal ScalingReplicaSet Scaled up replica set v1 from 0 to 1",
		"Normal ScalingReplicaSet Scaled up replica set v2 from 0 to 1",
		"Normal ScalingReplicaSet Scaled down replica set v1 from 1 to 0",
		"Normal ScalingReplicaSet Scaled down replica set v2 from 1 to 0",
		`Normal DeploymentRollback Rolled back deployment "web" to revision 1`,
		`Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "web"`,
		"Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to.")
}

func testAnnotations(c *cluster) {
	c.create(web(1, func(d *apps.Deployment) {
		d.Annotations = map[string]string{"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	}))
	c.waitComplete("web")
	c.patch("web", `{"metadata":{"annotations":{"a":null,"b":"2"}}}`)
	c.env.WaitFor(c.t, "the annotations to be copied", timeout, func(ctx context.Context) (bool, error) {
		sets, err := c.replicaSets(ctx)
		a := sets["v1"].Annotations
		return a["a"] == "1" && a["b"] == "2", err
	})
	if _, has := c.replicaSet("v1").Annotations["kubectl.kubernetes.io/last-applied-configuration"]; has {
		c.t.Error("the last applied configuration was copied")
	}
}

func testCreateDenied(c *cluster) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/replicasets.apps": resource.MustParse("0")}}}
	quota, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Create(c.t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	// There is no quota controller to fill the status in, without which nothing is admitted at all.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	if _, err := c.env.Client.CoreV1().ResourceQuotas(c.ns).UpdateStatus(c.t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.create(web(1))
	d := c.waitDeployment("web", "refused", func(d *apps.Deployment) bool {
		cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
		return cond != nil && cond.Reason == util.FailedRSCreateReason
	})
	cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	if cond.Status != corev1.ConditionFalse || !strings.HasPrefix(cond.Message, `Failed to create new replica set "web-`) || !strings.Contains(cond.Message, "exceeded quota") {
		c.t.Errorf("condition %+v", cond)
	}
	if d.Status.ObservedGeneration != 0 {
		c.t.Errorf("a generation for which nothing was done is observed: %d", d.Status.ObservedGeneration)
	}
	if err := c.env.Client.CoreV1().ResourceQuotas(c.ns).Delete(c.t.Context(), "none", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.waitComplete("web")
}

func testReplicaFailure(c *cluster) {
	c.create(web(1, func(d *apps.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "missing" }))
	cond := c.waitReason("web", apps.DeploymentReplicaFailure, "FailedCreate")
	// The API server's words and nothing else, as upstream writes them.
	if cond.Status != corev1.ConditionTrue || !regexp.MustCompile(`^pods "web-\w+-" is forbidden: error looking up service account `).MatchString(cond.Message) {
		c.t.Errorf("condition %+v", cond)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "missing"}}
	if _, err := c.env.Client.CoreV1().ServiceAccounts(c.ns).Create(c.t.Context(), account, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	if d := c.waitComplete("web"); util.GetDeploymentCondition(d.Status, apps.DeploymentReplicaFailure) != nil {
		c.t.Errorf("conditions %+v", d.Status.Conditions)
	}
}

func testDeletion(c *cluster) {
	c.create(web(2))
	c.waitComplete("web")
	err := c.env.Client.AppsV1().Deployments(c.ns).Delete(c.t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	if err != nil {
		c.t.Fatal(err)
	}
	rs := c.replicaSet("v1") // the garbage collector, if it ran, would delete it
	if err := c.env.Client.AppsV1().ReplicaSets(c.ns).Delete(c.t.Context(), rs.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.waitDeployment("web", "without pods", func(d *apps.Deployment) bool {
		return d.Status.Replicas == 0 && d.Status.ObservedGeneration == d.Generation
	})
	c.neverOtherSizes(sizes{}, 2*time.Second)
}

func testTerminatingNamespace(c *cluster) {
	c.create(web(1))
	c.waitComplete("web")
	c.waitEvents("web", "Normal ScalingReplicaSet Scaled up replica set v1 from 0 to 1")
	if err := c.env.Client.CoreV1().Namespaces().Delete(c.t.Context(), c.ns, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.setImage("web", "v2")
	c.neverOtherSizes(sizes{"v1": 1}, 2*time.Second)
	d := c.get("web")
	if cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing); cond.Reason == util.FailedRSCreateReason {
		c.t.Errorf("condition %+v", cond)
	}
}

func testNewReplicaSetDeleted(c *cluster) {
	c.create(web(1))
	c.waitComplete("web")
	first := c.replicaSet("v1")
	if err := c.env.Client.AppsV1().ReplicaSets(c.ns).Delete(c.t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.env.WaitFor(c.t, "another replica set", timeout, func(ctx context.Context) (bool, error) {
		sets, err := c.replicaSets(ctx)
		rs, ok := sets["v1"]
		return ok && rs.UID != first.UID && rs.Name == first.Name, err
	})
	c.waitComplete("web")
}
