// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package statefulset runs the statefulset-controller against a real API server.
package statefulset

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	"github.com/kcm-dev/kcm/pkg/controller/statefulset"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
	"github.com/kcm-dev/kcm/test/integration/framework"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

const (
	serviceAccount = "statefulset-controller"
	timeout        = 90 * time.Second
)

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	framework.Main(m,
		// Owners of claims need the right to update the owners' finalizers (BC008).
		framework.WithAPIServerArgs("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
			// Its finalizer is for a controller that these tests do not run.
			"--disable-admission-plugins=StorageObjectInUseProtection"),
		framework.WithFeatureGates(map[string]bool{"StatefulSetRecreateStrategy": true}))
}

// start runs the statefulset-controller as the manager does.
func start(t *testing.T, env *framework.Env, opts framework.ControllersOptions) *framework.Controllers {
	t.Helper()
	c := env.Controllers(t, opts)
	run(t, c)
	return c
}

func run(t *testing.T, c *framework.Controllers) {
	t.Helper()
	sets := statefulset.NewStatefulSetController(c.Ctx, c.Informers.Core().V1().Pods(), c.Informers.Apps().V1().StatefulSets(),
		c.Informers.Core().V1().PersistentVolumeClaims(), c.Informers.Apps().V1().ControllerRevisions(), c.Client(serviceAccount))
	c.Run(serviceAccount, func(ctx context.Context) { sets.Run(ctx, 5) })
}

// startWithGarbageCollector runs the garbage collector beside it.
func startWithGarbageCollector(t *testing.T, env *framework.Env) {
	t.Helper()
	c := env.Controllers(t, framework.ControllersOptions{})
	run(t, c)
	const collector = "generic-garbage-collector"
	metadataClient, err := metadata.NewForConfig(c.Config(collector))
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(collector)
	started := make(chan struct{})
	close(started)
	gc, err := garbagecollector.NewGarbageCollector(c.Ctx, client, metadataClient,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())), garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(c.Informers, c.Metadata), started)
	if err != nil {
		t.Fatal(err)
	}
	c.Run("garbage-collector-controller", func(ctx context.Context) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { gc.Sync(ctx, client.Discovery(), time.Second) })
		gc.Run(ctx, 20, 5*time.Second)
	})
}

// cluster is a namespace of a test's own, with nodes for its Pods.
type cluster struct {
	t       *testing.T
	env     *framework.Env
	ns      string
	kubelet *fakekubelet.Kubelet
}

func newCluster(t *testing.T, env *framework.Env) *cluster {
	t.Helper()
	return &cluster{t: t, env: env, ns: env.Namespace(t, "statefulset"), kubelet: env.Kubelet(t, 2, fakekubelet.Options{})}
}

type option func(*apps.StatefulSet)

// web returns a StatefulSet "web".
func web(replicas int32, options ...option) *apps.StatefulSet {
	labels := map[string]string{"app": "web"}
	set := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.StatefulSetSpec{
			Replicas:    &replicas,
			ServiceName: "svc",
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/web:1"}},
				},
			},
		},
	}
	for _, o := range options {
		o(set)
	}
	return set
}

func parallel(set *apps.StatefulSet) { set.Spec.PodManagementPolicy = apps.ParallelPodManagement }

func strategy(kind apps.StatefulSetUpdateStrategyType) option {
	return func(set *apps.StatefulSet) { set.Spec.UpdateStrategy.Type = kind }
}

func rolling(partition int32, maxUnavailable int) option {
	return func(set *apps.StatefulSet) {
		set.Spec.UpdateStrategy = apps.StatefulSetUpdateStrategy{
			Type:          apps.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &apps.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: new(intstr.FromInt32(int32(maxUnavailable)))},
		}
	}
}

// claims gives each Pod a claim from a template with labels of its own.
func claims(set *apps.StatefulSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"disk": "fast"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
}

func retaining(whenDeleted, whenScaled apps.PersistentVolumeClaimRetentionPolicyType) option {
	return func(set *apps.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &apps.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: whenDeleted, WhenScaled: whenScaled}
	}
}

const (
	keep = apps.RetainPersistentVolumeClaimRetentionPolicyType
	drop = apps.DeletePersistentVolumeClaimRetentionPolicyType
)

func (c *cluster) create(set *apps.StatefulSet) *apps.StatefulSet {
	c.t.Helper()
	created, err := c.env.Client.AppsV1().StatefulSets(c.ns).Create(c.t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) patch(patch string) {
	c.t.Helper()
	_, err := c.env.Client.AppsV1().StatefulSets(c.ns).Patch(c.t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) scale(replicas int) { c.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)) }

func (c *cluster) setImage(tag string) {
	c.patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/web:%s"}]}}}}`, tag))
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	if err := c.env.Client.CoreV1().Pods(c.ns).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

func (c *cluster) patchPod(name, patch string) {
	c.t.Helper()
	if _, err := c.env.Client.CoreV1().Pods(c.ns).Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// become gives the Pods of an image tag an outcome, now and later.
func (c *cluster) become(outcome fakekubelet.Outcome, tag string) {
	c.kubelet.Set(outcome, func(pod *corev1.Pod) bool { return tagOf(pod) == tag })
}

func tagOf(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}

func (c *cluster) listPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.env.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func (c *cluster) pod(name string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.env.Client.CoreV1().Pods(c.ns).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// tags returns the image tags of the Pods by name, as "web-0:1 web-1:2".
func tags(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name+":"+tagOf(&pods[i]))
	}
	return strings.Join(all, " ")
}

// waitTags waits until the Pods are just these, all to stay.
func (c *cluster) waitTags(want string) {
	c.t.Helper()
	c.env.WaitFor(c.t, "pods "+want, timeout, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		if err != nil {
			return false, err
		}
		going := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		if got := tags(pods); got != want || going {
			return false, fmt.Errorf("there are %s", got)
		}
		return true, nil
	})
}

// stayTags fails the test when the Pods are others for a moment.
func (c *cluster) stayTags(want string, within time.Duration) {
	c.t.Helper()
	c.env.Never(c.t, "other pods than "+want, within, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		return err == nil && tags(pods) != want, err
	})
}

// waitSet waits until the condition holds for the set, and returns the set.
func (c *cluster) waitSet(what string, condition func(*apps.StatefulSet) bool) *apps.StatefulSet {
	c.t.Helper()
	var got *apps.StatefulSet
	c.env.WaitFor(c.t, fmt.Sprintf("stateful set %s/web to have %s", c.ns, what), timeout, func(ctx context.Context) (bool, error) {
		set, err := c.env.Client.AppsV1().StatefulSets(c.ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = set
		if set.Status.ObservedGeneration != set.Generation || !condition(set) {
			status, _ := json.Marshal(set.Status)
			return false, fmt.Errorf("generation %d, status %s", set.Generation, status)
		}
		return true, nil
	})
	return got
}

// waitComplete waits until all replicas are there, of one revision, and available.
func (c *cluster) waitComplete(replicas int32) *apps.StatefulSet {
	c.t.Helper()
	return c.waitSet(fmt.Sprintf("%d replicas, complete", replicas), func(set *apps.StatefulSet) bool {
		s := set.Status
		return s.Replicas == replicas && s.ReadyReplicas == replicas && s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas &&
			s.CurrentReplicas == replicas && s.CurrentRevision == s.UpdateRevision
	})
}

func (c *cluster) waitReady(ready int32) *apps.StatefulSet {
	c.t.Helper()
	return c.waitSet(fmt.Sprintf("%d ready", ready), func(set *apps.StatefulSet) bool { return set.Status.ReadyReplicas == ready })
}

func (c *cluster) claimNames(ctx context.Context) ([]string, error) {
	list, err := c.env.Client.CoreV1().PersistentVolumeClaims(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, claim := range list.Items {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	return names, nil
}

func (c *cluster) waitClaims(want ...string) {
	c.t.Helper()
	c.env.WaitFor(c.t, fmt.Sprintf("claims %v", want), timeout, func(ctx context.Context) (bool, error) {
		names, err := c.claimNames(ctx)
		if err != nil || !slices.Equal(names, want) {
			return false, fmt.Errorf("there are %v: %v", names, err)
		}
		return true, nil
	})
}

func (c *cluster) revisions() []apps.ControllerRevision {
	c.t.Helper()
	list, err := c.env.Client.AppsV1().ControllerRevisions(c.ns).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b apps.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// events returns how often each of the set's events was told, by "reason message".
func (c *cluster) events(ctx context.Context) (map[string]int32, error) {
	list, err := c.env.Client.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=StatefulSet"})
	if err != nil {
		return nil, err
	}
	all := map[string]int32{}
	for _, event := range list.Items {
		all[event.Reason+" "+event.Message] += event.Count
	}
	return all, nil
}

// waitEvent waits until an event has come count times, no more.
func (c *cluster) waitEvent(text string, count int32) {
	c.t.Helper()
	c.waitEvents(text, func(n int32) bool { return n == count })
}

// waitAnyEvent waits for an event that comes again with each attempt.
func (c *cluster) waitAnyEvent(text string) {
	c.t.Helper()
	c.waitEvents(text, func(n int32) bool { return n > 0 })
}

func (c *cluster) waitEvents(text string, enough func(int32) bool) {
	c.t.Helper()
	c.env.WaitFor(c.t, "event "+text, timeout, func(ctx context.Context) (bool, error) {
		all, err := c.events(ctx)
		if err != nil {
			return false, err
		}
		for event, n := range all {
			if strings.Contains(event, text) && enough(n) {
				return true, nil
			}
		}
		return false, fmt.Errorf("there are %v", all)
	})
}
