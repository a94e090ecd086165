// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package garbagecollector runs the garbage-collector-controller against a real API server.
package garbagecollector

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/kcm-dev/kcm/pkg/controller/deployment"
	"github.com/kcm-dev/kcm/pkg/controller/garbagecollector"
	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
	"github.com/kcm-dev/kcm/test/integration/framework"
)

const (
	serviceAccount = "generic-garbage-collector"
	timeout        = 60 * time.Second
	// short is how long something that must not happen is watched for.
	short = 3 * time.Second
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func TestMain(m *testing.M) {
	// These tests wait more than they work, so more may run at a time than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	framework.Main(m)
}

// start runs the garbage collector as the manager does, but for a shorter discovery period.
func start(t *testing.T, env *framework.Env) (*framework.Controllers, *garbagecollector.GarbageCollector) {
	t.Helper()
	c := env.Controllers(t, framework.ControllersOptions{})
	config := c.Config(serviceAccount)
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(serviceAccount)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})
	close(started)
	gc, err := garbagecollector.NewGarbageCollector(c.Ctx, client, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(),
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
	return c, gc
}

func runDeployments(t *testing.T, c *framework.Controllers) {
	t.Helper()
	sets := replicaset.NewReplicaSetController(c.Ctx, c.Informers.Apps().V1().ReplicaSets(), c.Informers.Core().V1().Pods(),
		c.Client("replicaset-controller"), replicaset.BurstReplicas)
	deployments, err := deployment.NewDeploymentController(c.Ctx, c.Informers.Apps().V1().Deployments(), c.Informers.Apps().V1().ReplicaSets(),
		c.Informers.Core().V1().Pods(), c.Client("deployment-controller"))
	if err != nil {
		t.Fatal(err)
	}
	c.Run("replicaset-controller", func(ctx context.Context) { sets.Run(ctx, 5) })
	c.Run("deployment-controller", func(ctx context.Context) { deployments.Run(ctx, 5) })
}

// space is a namespace and what tests do in it.
type space struct {
	t   *testing.T
	env *framework.Env
	ns  string
}

func newSpace(t *testing.T) *space {
	t.Helper()
	env := framework.New(t)
	return &space{t: t, env: env, ns: env.Namespace(t, "gc")}
}

// create creates a config map and returns the reference by which others own it.
func (s *space) create(name string, finalizers []string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	s.t.Helper()
	obj, err := s.env.Client.CoreV1().ConfigMaps(s.ns).Create(s.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers, OwnerReferences: owners},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: obj.UID}
}

func blocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = new(true)
	return r
}

func (s *space) get(name string) *corev1.ConfigMap {
	s.t.Helper()
	obj, err := s.env.Client.CoreV1().ConfigMaps(s.ns).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

func (s *space) delete(name string, policy metav1.DeletionPropagation) {
	s.t.Helper()
	if err := s.env.Client.CoreV1().ConfigMaps(s.ns).Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) release(name string) {
	s.t.Helper()
	patch := []byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/hold"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
	if _, err := s.env.Client.CoreV1().ConfigMaps(s.ns).Patch(s.t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) exists(ctx context.Context, name string) (bool, error) {
	_, err := s.env.Client.CoreV1().ConfigMaps(s.ns).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *space) waitGone(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.env.WaitFor(s.t, "config map "+name+" to go", timeout, func(ctx context.Context) (bool, error) {
			there, err := s.exists(ctx, name)
			return err == nil && !there, err
		})
	}
}

func (s *space) stays(names ...string) {
	s.t.Helper()
	s.env.Never(s.t, "one of "+strings.Join(names, ", ")+" is gone", short, func(ctx context.Context) (bool, error) {
		for _, name := range names {
			if there, err := s.exists(ctx, name); err != nil || !there {
				return err == nil, err
			}
		}
		return false, nil
	})
}

// deploy creates a Deployment of three pods and waits for them.
func (s *space) deploy() {
	s.t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := s.env.Client.AppsV1().Deployments(s.ns).Create(s.t.Context(), &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v1"}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.waitCounts(1, 1, 3)
}

func (s *space) deleteDeployment(policy metav1.DeletionPropagation) {
	s.t.Helper()
	if err := s.env.Client.AppsV1().Deployments(s.ns).Delete(s.t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) counts(ctx context.Context) ([3]int, error) {
	var n [3]int
	d, err := s.env.Client.AppsV1().Deployments(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return n, err
	}
	rs, err := s.env.Client.AppsV1().ReplicaSets(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return n, err
	}
	p, err := s.env.Client.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return n, err
	}
	return [3]int{len(d.Items), len(rs.Items), len(p.Items)}, nil
}

func (s *space) waitCounts(want ...int) {
	s.t.Helper()
	s.env.WaitFor(s.t, fmt.Sprintf("deployments, replica sets, pods: %v", want), timeout, func(ctx context.Context) (bool, error) {
		n, err := s.counts(ctx)
		if err == nil && n != [3]int(want) {
			err = fmt.Errorf("there are %v", n)
		}
		return err == nil, err
	})
}

func (s *space) dynamic(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.env.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	return client.Resource(gvr)
}

// createCRD makes the API server serve a kind in version v1, until the end of the test.
func (s *space) createCRD(group, plural, kind string) schema.GroupVersionResource {
	s.t.Helper()
	custom := framework.CustomKind{Group: group, Plural: plural, Kind: kind}
	s.env.CustomResource(s.t, custom)
	return custom.Resource()
}

// createCustom creates a custom object and returns the reference by which others own it.
func (s *space) createCustom(gvr schema.GroupVersionResource, kind, name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	s.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(gvr.GroupVersion().String())
	obj.SetKind(kind)
	obj.SetName(name)
	obj.SetOwnerReferences(owners)
	obj, err := s.dynamic(gvr).Namespace(s.ns).Create(s.t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: gvr.GroupVersion().String(), Kind: kind, Name: name, UID: obj.GetUID()}
}
