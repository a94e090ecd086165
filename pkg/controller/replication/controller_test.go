// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kcm-dev/kcm/pkg/controller/testutil"
)

// cluster is a manager that runs on the fake API server of a synctest bubble.
type cluster struct {
	t       *testing.T
	client  *fake.Clientset
	manager *ReplicationManager
}

// run calls test while a manager runs, after the objects were created one after the other.
func run(t *testing.T, objects []runtime.Object, test func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset()}
		versions := testutil.CountVersions(c.client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(c.client, 0)
		c.manager = NewReplicationManager(ctx, factory.Core().V1().Pods(), factory.Core().V1().ReplicationControllers(), c.client, BurstReplicas)
		factory.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.manager.Run(ctx, 2)
		}()
		defer func() {
			cancel()
			<-done
			factory.Shutdown()
		}()
		c.settle()
		// A cache that has seen no version yet passes for a fresh one.
		elsewhere := orphan("elsewhere", nil)
		elsewhere.Namespace = "other"
		for _, object := range append([]runtime.Object{elsewhere}, objects...) {
			versions.Stamp(object.(metav1.Object))
			if err := c.client.Tracker().Add(object); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		c.settle()
		test(c)
	})
}

// settle lets two seconds pass: more than any retry takes.
func (c *cluster) settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func (c *cluster) pods() []v1.Pod {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

func (c *cluster) get() *v1.ReplicationController {
	c.t.Helper()
	rc, err := c.client.CoreV1().ReplicationControllers("default").Get(c.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return rc
}

// writes lists what was sent, as "verb resource/subresource", each once.
func (c *cluster) writes() []string {
	var all []string
	for _, action := range c.client.Actions() {
		switch action.GetVerb() {
		case "get", "list", "watch":
			continue
		}
		request := action.GetVerb() + " " + action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			request += "/" + sub
		}
		all = append(all, request)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func web(changes ...func(*v1.ReplicationController)) *v1.ReplicationController {
	rc := full()
	rc.OwnerReferences = nil
	rc.ResourceVersion = ""
	rc.Spec.MinReadySeconds = 0
	rc.Status = v1.ReplicationControllerStatus{}
	for _, change := range changes {
		change(rc)
	}
	return rc
}

func orphan(name string, labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "orphan", Labels: labels}}
}

func TestCreatesPods(t *testing.T) {
	run(t, []runtime.Object{web()}, func(c *cluster) {
		pods := c.pods()
		if len(pods) != 4 {
			t.Fatalf("%d pods, want 4", len(pods))
		}
		for _, pod := range pods {
			want := *metav1.NewControllerRef(web(), v1.SchemeGroupVersion.WithKind("ReplicationController"))
			if len(pod.OwnerReferences) != 1 || pod.OwnerReferences[0].String() != want.String() || pod.GenerateName != "web-" || pod.Labels["tier"] != "front" {
				t.Errorf("pod %q with labels %v owned by %v", pod.GenerateName, pod.Labels, pod.OwnerReferences)
			}
		}
		if want := []string{"create events", "create pods", "update replicationcontrollers/status"}; !slices.Equal(c.writes(), want) {
			t.Errorf("requests %v, want %v", c.writes(), want)
		}
		status := c.get().Status
		if status.Replicas != 4 || status.FullyLabeledReplicas != 4 || status.ReadyReplicas != 0 || status.ObservedGeneration != 3 {
			t.Errorf("status %+v", status)
		}
	})
}

func TestEventsAreOnTheReplicationController(t *testing.T) {
	run(t, []runtime.Object{web()}, func(c *cluster) {
		list, err := c.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		// In a bubble all four are of one nanosecond, and so of one name.
		if err != nil || len(list.Items) == 0 {
			t.Fatalf("%d events, %v; want some", len(list.Items), err)
		}
		for _, event := range list.Items {
			on := event.InvolvedObject
			if on.Kind != "ReplicationController" || on.APIVersion != "v1" || on.Namespace != "default" || on.Name != "web" || on.UID != "u1" {
				t.Errorf("an event on %+v", on)
			}
			if event.Source.Component != "replication-controller" || event.Reason != "SuccessfulCreate" || !strings.HasPrefix(event.Message, "Created pod: web-") {
				t.Errorf("event %s of %s: %s", event.Reason, event.Source.Component, event.Message)
			}
		}
	})
}

// The status that is sent has no field that a ReplicationController has not
// (kubernetes/kubernetes#131822).
func TestStatusHasNoTerminatingReplicas(t *testing.T) {
	leaving := orphan("leaving", map[string]string{"app": "web"})
	leaving.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(web(), v1.SchemeGroupVersion.WithKind("ReplicationController"))}
	leaving.DeletionTimestamp = new(metav1.Now())
	leaving.Finalizers = []string{"example.com/hold"}
	run(t, []runtime.Object{web(), leaving}, func(c *cluster) {
		updates := 0
		for _, action := range c.client.Actions() {
			update, ok := action.(clienttesting.UpdateAction)
			if !ok || action.GetSubresource() != "status" {
				continue
			}
			updates++
			data, err := json.Marshal(update.GetObject())
			if err != nil || strings.Contains(string(data), "terminatingReplicas") {
				t.Errorf("status update %s, %v", data, err)
			}
		}
		if updates == 0 || c.get().Status.Replicas != 4 {
			t.Errorf("%d status updates, status %+v; want 4 replicas beside the one in deletion", updates, c.get().Status)
		}
	})
}

func TestAdoptsReleasesAndDeletes(t *testing.T) {
	rc := web(func(rc *v1.ReplicationController) { rc.Spec.Replicas = new(int32(1)) })
	ref := *metav1.NewControllerRef(rc, v1.SchemeGroupVersion.WithKind("ReplicationController"))
	running := orphan("running", map[string]string{"app": "web"})
	running.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	running.Spec.NodeName = "node"
	running.UID = "running"
	waiting := orphan("waiting", map[string]string{"app": "web"})
	waiting.UID = "waiting"
	relabelled := orphan("relabelled", map[string]string{"app": "other"})
	relabelled.UID = "relabelled"
	relabelled.OwnerReferences = []metav1.OwnerReference{ref}
	ofSet := orphan("of-a-set", map[string]string{"app": "web"})
	ofSet.UID = "set"
	ofSet.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "s", Controller: new(true)}}
	run(t, []runtime.Object{rc, running, waiting, relabelled, ofSet}, func(c *cluster) {
		got := map[string]string{}
		for _, pod := range c.pods() {
			got[pod.Name] = ""
			if owner := metav1.GetControllerOf(&pod); owner != nil {
				got[pod.Name] = owner.APIVersion + " " + owner.Kind
			}
		}
		want := map[string]string{"running": "v1 ReplicationController", "relabelled": "", "of-a-set": "apps/v1 ReplicaSet"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("pods and their controllers: %v, want %v", got, want)
		}
		reads := 0
		for _, action := range c.client.Actions() {
			if action.Matches("get", "replicationcontrollers") {
				reads++
			}
		}
		if reads == 0 {
			t.Error("adopted without a live look at the ReplicationController")
		}
	})
}

func TestLiveAndCachedLooks(t *testing.T) {
	rc := web()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	kind := newReplicationControllers(factory.Core().V1().ReplicationControllers(), client)
	live := web(func(rc *v1.ReplicationController) { rc.UID = "u2" })
	if err := client.Tracker().Add(live); err != nil {
		t.Fatal(err)
	}
	got, err := kind.GetLive(t.Context(), rc.Namespace, rc.Name)
	if err != nil || got.UID != "u2" {
		t.Errorf("live look shows UID %q, %v; want u2", got.UID, err)
	}
	if _, err := kind.GetLive(t.Context(), rc.Namespace, "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("live look at what is gone: %v, want NotFound", err)
	}
	if _, err := kind.Get(rc.Namespace, "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("cache look at what is gone: %v, want NotFound", err)
	}
}

func TestQuotaFailureIsACondition(t *testing.T) {
	refused := apierrors.NewForbidden(v1.Resource("pods"), "", fmt.Errorf("exceeded quota: pods"))
	run(t, nil, func(c *cluster) {
		c.react("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, refused
		})
		if _, err := c.client.CoreV1().ReplicationControllers("default").Create(t.Context(), web(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		conditions := c.get().Status.Conditions
		if len(conditions) != 1 || conditions[0].Type != v1.ReplicationControllerReplicaFailure || conditions[0].Status != v1.ConditionTrue ||
			conditions[0].Reason != "FailedCreate" || !strings.Contains(conditions[0].Message, "exceeded quota") || conditions[0].LastTransitionTime.IsZero() {
			t.Errorf("conditions %+v", conditions)
		}
	})
}

func TestNilTemplateDoesNotPanic(t *testing.T) {
	run(t, []runtime.Object{web(func(rc *v1.ReplicationController) { rc.Spec.Template = nil })}, func(c *cluster) {
		if pods := c.pods(); len(pods) != 0 {
			t.Errorf("pods %v from no template", pods)
		}
		for _, w := range c.manager.Workers() {
			if record := w.Record(); record.Panics > 0 {
				t.Errorf("%d panics", record.Panics)
			}
		}
	})
}

func TestWorkersAndName(t *testing.T) {
	run(t, nil, func(c *cluster) {
		if got := c.manager.Name(); got != "replicationcontroller-controller" {
			t.Errorf("name %q", got)
		}
		var queues []string
		for _, w := range c.manager.Workers() {
			record := w.Record()
			queues = append(queues, record.Controller+"/"+record.Queue)
		}
		if want := []string{"replicationcontroller-controller/replicationmanager", "replicationcontroller-controller/"}; !slices.Equal(queues, want) {
			t.Errorf("queues %v, want %v", queues, want)
		}
	})
}

func TestSiblings(t *testing.T) {
	ownedBy := func(name string, ref metav1.OwnerReference) *v1.ReplicationController {
		return web(func(rc *v1.ReplicationController) {
			rc.Name = name
			rc.OwnerReferences = []metav1.OwnerReference{ref}
		})
	}
	mine := full().OwnerReferences[0]
	otherUID, otherKind, noController := mine, mine, mine
	otherUID.UID, otherKind.Kind, noController.Controller = "x", "DeploymentThing", nil
	elsewhere := ownedBy("elsewhere", mine)
	elsewhere.Namespace = "other"
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	kind := newReplicationControllers(factory.Core().V1().ReplicationControllers(), client)
	for _, rc := range []*v1.ReplicationController{
		ownedBy("one", mine), ownedBy("two", mine), ownedBy("uid", otherUID), ownedBy("kind", otherKind),
		ownedBy("owner", noController), elsewhere, web(),
	} {
		if err := kind.informer.GetIndexer().Add(rc); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{"one": {"one", "two"}, "web": {"web"}, "owner": {"owner"}} {
		set, err := kind.Get("default", name)
		if err != nil {
			t.Fatal(err)
		}
		siblings, err := kind.Siblings(set)
		var got []string
		for _, sibling := range siblings {
			got = append(got, sibling.Name)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("siblings of %s: %v, %v; want %v", name, got, err, want)
		}
	}
	all, err := kind.List("default")
	if err != nil || len(all) != 6 {
		t.Errorf("listed %d of the namespace, %v; want 6", len(all), err)
	}
}

// react puts a reaction in front, while the controller may be sending requests.
func (c *cluster) react(verb, resource string, reaction clienttesting.ReactionFunc) {
	c.client.Lock()
	defer c.client.Unlock()
	c.client.PrependReactor(verb, resource, reaction)
}
