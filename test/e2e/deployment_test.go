// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

var _ = Describe("A Deployment", Label("deployment-controller"), func() {
	c := useCluster()
	const name = "web"

	It("rolls out, is scaled, and reports it", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 3, nil)
		d := c.waitForRollout(ctx, name, 3)
		Expect(conditions(d)).To(Equal(map[string]string{"Available": "True MinimumReplicasAvailable", "Progressing": "True NewReplicaSetAvailable"}))
		Expect(d.Annotations).To(HaveKeyWithValue(revisionAnnotation, "1"))
		sets := c.replicaSets(ctx, d)
		Expect(sets).To(HaveLen(1))
		Expect(sets[0].Labels).To(HaveKey(appsv1.DefaultDeploymentUniqueLabelKey))
		Expect(sets[0].Name).To(Equal(name + "-" + sets[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey]))
		c.haveEvent(ctx, "Deployment", name, "ScalingReplicaSet")

		for _, replicas := range []int32{5, 1, 0} {
			scale, err := c.AppsV1().Deployments(c.namespace).GetScale(ctx, name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			scale.Spec.Replicas = replicas
			_, err = c.AppsV1().Deployments(c.namespace).UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			d = c.waitForRollout(ctx, name, replicas)
		}
		Expect(d.Annotations).To(HaveKeyWithValue(revisionAnnotation, "1"), "scaling is no new revision")
		Expect(c.replicaSets(ctx, d)).To(HaveLen(1))
	}, specTimeout)

	It("rolls out a new template and keeps enough pods while it does", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 4, func(d *appsv1.Deployment) {
			// 25% of each, the default, would be 1 as well.
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(1)),
			}}
		})
		c.waitForRollout(ctx, name, 4)
		watch := c.watchPods(ctx)
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { setVariable(d, "2") })
		d := c.waitForRollout(ctx, name, 4)
		Expect(watch.stop().fewestReady).To(BeNumerically(">=", 3), "replicas - maxUnavailable")
		Expect(d.Annotations).To(HaveKeyWithValue(revisionAnnotation, "2"))
		sets := c.replicaSets(ctx, d)
		Expect(sets).To(HaveLen(2))
		Expect(*sets[0].Spec.Replicas).To(BeZero(), "the old revision")
		Expect(*sets[1].Spec.Replicas).To(BeEquivalentTo(4), "the new revision")
	}, specTimeout)

	It("is rolled back to an earlier revision", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		first := c.replicaSets(ctx, c.waitForRollout(ctx, name, 2))[0]
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { setVariable(d, "2") })
		c.waitForRollout(ctx, name, 2)
		// What kubectl rollout undo does.
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) {
			d.Spec.Template = *first.Spec.Template.DeepCopy()
			delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		})
		sets := c.replicaSets(ctx, c.waitForRollout(ctx, name, 2))
		Expect(sets).To(HaveLen(2), "no new ReplicaSet")
		Expect(sets[1].Name).To(Equal(first.Name), "the newest revision is the first again")
		Expect(sets[1].Annotations).To(And(
			HaveKeyWithValue(revisionAnnotation, "3"),
			HaveKeyWithValue("deployment.kubernetes.io/revision-history", "1")))
		Expect(*sets[0].Spec.Replicas).To(BeZero())
	}, specTimeout)

	It("is restarted as kubectl rollout restart does", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		c.waitForRollout(ctx, name, 2)
		before, err := c.livePods(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339)}
		})
		c.waitForRollout(ctx, name, 2)
		after, err := c.livePods(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range before {
			Expect(podNames(after)).NotTo(ContainElement(pod.Name))
		}
	}, specTimeout)

	It("does not roll out while it is paused, but is scaled", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 2, nil)
		c.waitForRollout(ctx, name, 2)
		d := c.updateDeployment(ctx, name, func(d *appsv1.Deployment) {
			d.Spec.Paused = true
			d.Spec.Replicas = ptr.To[int32](3)
			setVariable(d, "2")
		})
		Eventually(c.liveCount).WithContext(ctx).WithArguments("").Should(Equal(3))
		Eventually(func(ctx context.Context) map[string]string { return conditions(c.deployment(ctx, name)) }).WithContext(ctx).
			Should(HaveKeyWithValue("Progressing", "Unknown DeploymentPaused"))
		Consistently(func(ctx context.Context) int { return len(c.replicaSets(ctx, d)) }).WithContext(ctx).Should(Equal(1))
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { d.Spec.Paused = false })
		Expect(c.replicaSets(ctx, c.waitForRollout(ctx, name, 3))).To(HaveLen(2))
	}, specTimeout)

	It("with strategy Recreate never runs two revisions side by side", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 3, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
		c.waitForRollout(ctx, name, 3)
		watch := c.watchPods(ctx)
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { setVariable(d, "2") })
		d := c.waitForRollout(ctx, name, 3)
		seen := watch.stop()
		Expect(seen.most).To(BeNumerically("<=", 3), "pods")
		Expect(seen.revisions).To(BeNumerically("<=", 1), "revisions with pods at any time")
		Expect(c.replicaSets(ctx, d)).To(HaveLen(2))
	}, specTimeout)

	It("says that a rollout is stuck, and goes on when it is mended", Label(labelSlow), func(ctx SpecContext) {
		c.createDeployment(ctx, name, 1, func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds = ptr.To[int32](3)
			d.Spec.Template.Spec.NodeSelector = map[string]string{"kcm-e2e/no-such-node": "true"}
		})
		Eventually(func(ctx context.Context) map[string]string { return conditions(c.deployment(ctx, name)) }).WithContext(ctx).
			Should(Equal(map[string]string{"Available": "False MinimumReplicasUnavailable", "Progressing": "False ProgressDeadlineExceeded"}))
		c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = nil })
		d := c.waitForRollout(ctx, name, 1)
		Expect(conditions(d)).To(HaveKeyWithValue("Progressing", "True NewReplicaSetAvailable"))
	}, specTimeout)

	It("keeps as many old revisions as it is told to", func(ctx SpecContext) {
		c.createDeployment(ctx, name, 1, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](1) })
		d := c.waitForRollout(ctx, name, 1)
		for _, value := range []string{"2", "3", "4"} {
			c.updateDeployment(ctx, name, func(d *appsv1.Deployment) { setVariable(d, value) })
			d = c.waitForRollout(ctx, name, 1)
		}
		Eventually(func(ctx context.Context) []string {
			var revisions []string
			for _, rs := range c.replicaSets(ctx, d) {
				revisions = append(revisions, rs.Annotations[revisionAnnotation])
			}
			return revisions
		}).WithContext(ctx).Should(Equal([]string{"3", "4"}))
	}, specTimeout)
})

// createDeployment makes a deployment of pods that have the label app=name; change may be nil.
func (c *cluster) createDeployment(ctx context.Context, name string, replicas int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels),
		},
	}
	if change != nil {
		change(d)
	}
	d, err := c.AppsV1().Deployments(c.namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

func (c *cluster) deployment(ctx context.Context, name string) *appsv1.Deployment {
	GinkgoHelper()
	d, err := c.AppsV1().Deployments(c.namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

func (c *cluster) updateDeployment(ctx context.Context, name string, change func(*appsv1.Deployment)) *appsv1.Deployment {
	GinkgoHelper()
	var d *appsv1.Deployment
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		d = c.deployment(ctx, name)
		change(d)
		d, err = c.AppsV1().Deployments(c.namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
	return d
}

// setVariable makes another revision.
func setVariable(d *appsv1.Deployment, value string) {
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "REVISION", Value: value}}
}

// waitForRollout is kubectl rollout status, and that the status has been brought up to the spec in full.
func (c *cluster) waitForRollout(ctx context.Context, name string, replicas int32) *appsv1.Deployment {
	GinkgoHelper()
	var d *appsv1.Deployment
	Eventually(func(g Gomega, ctx context.Context) {
		var err error
		d, err = c.AppsV1().Deployments(c.namespace).Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation), "observedGeneration")
		g.Expect(d.Status.Replicas).To(Equal(replicas), "replicas")
		g.Expect(d.Status.UpdatedReplicas).To(Equal(replicas), "updatedReplicas")
		g.Expect(d.Status.ReadyReplicas).To(Equal(replicas), "readyReplicas")
		g.Expect(d.Status.AvailableReplicas).To(Equal(replicas), "availableReplicas")
		g.Expect(d.Status.UnavailableReplicas).To(BeZero(), "unavailableReplicas")
		g.Expect(conditions(d)).To(HaveKeyWithValue("Progressing", "True NewReplicaSetAvailable"))
	}).WithContext(ctx).Should(Succeed(), "rollout of %s", name)
	Eventually(c.liveCount).WithContext(ctx).WithArguments("app="+name).Should(BeEquivalentTo(replicas), "live pods")
	return d
}

// replicaSets returns those that the deployment controls, by revision.
func (c *cluster) replicaSets(ctx context.Context, d *appsv1.Deployment) []appsv1.ReplicaSet {
	GinkgoHelper()
	list, err := c.AppsV1().ReplicaSets(c.namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	sets := slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&rs, d) })
	slices.SortFunc(sets, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(revision(a), revision(b)) })
	return sets
}

// revision is 0 for a ReplicaSet that has none yet.
func revision(rs appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(rs.Annotations[revisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// conditions are a deployment's by type, as "status reason".
func conditions(d *appsv1.Deployment) map[string]string {
	out := map[string]string{}
	for _, c := range d.Status.Conditions {
		out[string(c.Type)] = fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	return out
}
