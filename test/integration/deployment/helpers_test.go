// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package deployment runs the deployment-controller, together with the replicaset-controller, against
// a real API server.
package deployment

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kcm-dev/kcm/pkg/controller/deployment"
	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "deployment-controller"
	timeout        = 60 * time.Second
	hashLabel      = apps.DefaultDeploymentUniqueLabelKey
)

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	framework.Main(m)
}

// start runs the two controllers as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	runReplicaSets(t, c)
	runDeployments(t, c)
	return c
}

func runReplicaSets(t *testing.T, c *framework.Controllers) {
	t.Helper()
	sets := replicaset.NewReplicaSetController(c.Ctx, c.Informers.Apps().V1().ReplicaSets(), c.Informers.Core().V1().Pods(),
		c.Client("replicaset-controller"), replicaset.BurstReplicas)
	c.Run("replicaset-controller", func(ctx context.Context) { sets.Run(ctx, 5) })
}

func runDeployments(t *testing.T, c *framework.Controllers) {
	t.Helper()
	dc, err := deployment.NewDeploymentController(c.Ctx, c.Informers.Apps().V1().Deployments(), c.Informers.Apps().V1().ReplicaSets(),
		c.Informers.Core().V1().Pods(), c.Client(serviceAccount))
	if err != nil {
		t.Fatal(err)
	}
	c.Run("deployment-controller", func(ctx context.Context) { dc.Run(ctx, 5) })
}

// nodes are fake nodes that several clusters share.
type nodes struct {
	*fakekubelet.Kubelet
	mu   sync.Mutex
	held map[string]bool // namespaces whose terminating pods do not end
}

func newNodes(t *testing.T, env *framework.Env) *nodes {
	t.Helper()
	n := &nodes{Kubelet: env.Kubelet(t, 3, fakekubelet.Options{}), held: map[string]bool{}}
	n.hold("", false)
	return n
}

// hold keeps the terminating pods of a namespace from ending, or lets them end.
func (n *nodes) hold(namespace string, hold bool) {
	n.mu.Lock()
	n.held[namespace] = hold
	n.mu.Unlock()
	n.HoldDeletion(func(p *corev1.Pod) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.held[p.Namespace]
	})
}

// cluster is a namespace of the test's own in which controllers and kubelets act.
type cluster struct {
	t       *testing.T
	env     *framework.Env
	kubelet *nodes
	ns      string
}

func newCluster(t *testing.T, env *framework.Env, kubelet *nodes) *cluster {
	t.Helper()
	return &cluster{t: t, env: env, kubelet: kubelet, ns: env.Namespace(t, "deployment")}
}

// pods gives an outcome to the namespace's pods of an image; "" means all of them.
func (c *cluster) pods(outcome fakekubelet.Outcome, image string) {
	c.kubelet.Set(outcome, func(p *corev1.Pod) bool {
		return p.Namespace == c.ns && (image == "" || p.Spec.Containers[0].Image == image)
	})
}

func template(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "main", Image: image}},
		},
	}
}

// web returns a Deployment "web" of image v1.
func web(replicas int32, changes ...func(*apps.Deployment)) *apps.Deployment {
	d := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("web", "v1"),
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func rolling(surge, unavailable int32) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RollingUpdateDeploymentStrategyType, RollingUpdate: &apps.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable))}}
	}
}

func recreating(d *apps.Deployment) {
	d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
}

func (c *cluster) create(d *apps.Deployment) *apps.Deployment {
	c.t.Helper()
	d, err := c.env.Client.AppsV1().Deployments(c.ns).Create(c.t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c *cluster) get(name string) *apps.Deployment {
	c.t.Helper()
	d, err := c.env.Client.AppsV1().Deployments(c.ns).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// patch changes a Deployment by a strategic merge patch.
func (c *cluster) patch(name, patch string) {
	c.t.Helper()
	_, err := c.env.Client.AppsV1().Deployments(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) patchReplicaSet(name, patch string) {
	c.t.Helper()
	_, err := c.env.Client.AppsV1().ReplicaSets(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) setImage(name, image string) {
	c.t.Helper()
	c.patch(name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

func (c *cluster) scale(name string, replicas int) {
	c.t.Helper()
	c.patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// waitDeployment waits until the condition holds for the Deployment, and returns it.
func (c *cluster) waitDeployment(name, what string, condition func(*apps.Deployment) bool) *apps.Deployment {
	c.t.Helper()
	var got *apps.Deployment
	c.env.WaitFor(c.t, fmt.Sprintf("deployment %s/%s to be %s", c.ns, name, what), timeout, func(ctx context.Context) (bool, error) {
		d, err := c.env.Client.AppsV1().Deployments(c.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = d
		return condition(d), nil
	})
	return got
}

func isComplete(d *apps.Deployment) bool {
	cond := util.GetDeploymentCondition(d.Status, apps.DeploymentProgressing)
	return util.DeploymentComplete(d, &d.Status) && (cond == nil || cond.Reason == util.NewRSAvailableReason)
}

func (c *cluster) waitComplete(name string) *apps.Deployment {
	c.t.Helper()
	return c.waitDeployment(name, "complete", isComplete)
}

// waitReason waits until the condition of that type has the reason, and returns the condition.
func (c *cluster) waitReason(name string, conditionType apps.DeploymentConditionType, reason string) *apps.DeploymentCondition {
	c.t.Helper()
	d := c.waitDeployment(name, reason, func(d *apps.Deployment) bool {
		cond := util.GetDeploymentCondition(d.Status, conditionType)
		return cond != nil && cond.Reason == reason && d.Status.ObservedGeneration >= d.Generation
	})
	return util.GetDeploymentCondition(d.Status, conditionType)
}

// replicaSets returns the namespace's ReplicaSets by the image of their pods.
func (c *cluster) replicaSets(ctx context.Context) (map[string]apps.ReplicaSet, error) {
	list, err := c.env.Client.AppsV1().ReplicaSets(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sets := map[string]apps.ReplicaSet{}
	for _, rs := range list.Items {
		sets[rs.Spec.Template.Spec.Containers[0].Image] = rs
	}
	return sets, nil
}

func (c *cluster) replicaSet(image string) apps.ReplicaSet {
	c.t.Helper()
	sets, err := c.replicaSets(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	rs, ok := sets[image]
	if !ok {
		c.t.Fatalf("there is no replica set of image %s", image)
	}
	return rs
}

// sizes is how many pods the ReplicaSet of each image wants.
type sizes map[string]int32

func (c *cluster) sizes(ctx context.Context) (sizes, error) {
	sets, err := c.replicaSets(ctx)
	got := sizes{}
	for image, rs := range sets {
		got[image] = *rs.Spec.Replicas
	}
	return got, err
}

func (c *cluster) waitSizes(want sizes) {
	c.t.Helper()
	c.env.WaitFor(c.t, fmt.Sprintf("replica sets in %s to have sizes %v", c.ns, want), timeout, func(ctx context.Context) (bool, error) {
		got, err := c.sizes(ctx)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("they have %v", got)
		}
		return err == nil, err
	})
}

// neverOtherSizes fails the test when the sizes become others for a while.
func (c *cluster) neverOtherSizes(want sizes, within time.Duration) {
	c.t.Helper()
	c.env.Never(c.t, fmt.Sprintf("replica sets in %s have other sizes than %v", c.ns, want), within, func(ctx context.Context) (bool, error) {
		got, err := c.sizes(ctx)
		return !maps.Equal(got, want), err
	})
}

// waitEvents waits until the Deployment's events, "type reason message" without the ReplicaSets' hashes,
// are exactly these, in any order.
func (c *cluster) waitEvents(name string, want ...string) {
	c.t.Helper()
	slices.Sort(want)
	c.env.WaitFor(c.t, fmt.Sprintf("events of deployment %s", name), timeout, func(ctx context.Context) (bool, error) {
		list, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Deployment,involvedObject.name=" + name})
		if err != nil {
			return false, err
		}
		sets, err := c.replicaSets(ctx)
		if err != nil {
			return false, err
		}
		var got []string
		for _, e := range list.Items {
			message := e.Message
			for image, rs := range sets {
				message = strings.ReplaceAll(message, rs.Name, image)
			}
			got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Reason, message))
			if e.Source.Component != "deployment-controller" || e.InvolvedObject.APIVersion != "apps/v1" {
				return false, fmt.Errorf("event of %s on %s", e.Source.Component, e.InvolvedObject.APIVersion)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return false, fmt.Errorf("they are %q", got)
		}
		return true, nil
	})
}

func (c *cluster) listPods() []corev1.Pod {
	c.t.Helper()
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}
