// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services makes the Services and Pods of tests of endpoints: Pods whose kubelet is the
// test, so that it says what address a Pod has and whether it is ready.
package services

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kcm-dev/kcm/test/integration/framework"
)

// Timeout is how long a World waits for a condition.
const Timeout = 60 * time.Second

// DualStack lets the API server give Services addresses of both families.
func DualStack() framework.Option {
	return framework.WithAPIServerArgs("--service-cluster-ip-range=10.0.0.0/16,fd00:1::/108")
}

// World is a namespace with Services and Pods of a test's own.
type World struct {
	T   testing.TB
	Env *framework.Env
	NS  string
}

// NewWorld returns a World in a new namespace.
func NewWorld(t testing.TB, env *framework.Env) *World {
	t.Helper()
	return &World{T: t, Env: env, NS: env.Namespace(t, "services")}
}

// Service creates a Service on port 80 that selects app=web, unless a change says otherwise.
func (w *World) Service(name string, changes ...func(*corev1.Service)) *corev1.Service {
	w.T.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, change := range changes {
		change(service)
	}
	service, err := w.Env.Client.CoreV1().Services(w.NS).Create(w.T.Context(), service, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return service
}

// Pod creates a Pod with the label app=web on a node.
func (w *World) Pod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	pod, err := w.Env.Client.CoreV1().Pods(w.NS).Create(w.T.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return pod
}

// Status says what a Pod's kubelet says: its phase, readiness and addresses.
func (w *World) Status(name string, phase corev1.PodPhase, ready bool, addresses ...string) {
	w.T.Helper()
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	status := map[string]any{"phase": phase, "conditions": []corev1.PodCondition{condition}}
	if len(addresses) > 0 {
		var all []corev1.PodIP
		for _, address := range addresses {
			all = append(all, corev1.PodIP{IP: address})
		}
		status["podIP"], status["podIPs"] = addresses[0], all
	}
	w.patch(name, map[string]any{"status": status}, "status")
}

// Running creates a Pod that runs, is ready and has the addresses.
func (w *World) Running(name, node string, addresses ...string) {
	w.T.Helper()
	w.Pod(name, node)
	w.Status(name, corev1.PodRunning, true, addresses...)
}

// Annotate changes a Pod in a way that no endpoint shows.
func (w *World) Annotate(name, value string) {
	w.T.Helper()
	w.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": value}}})
}

func (w *World) patch(name string, body any, subresources ...string) {
	w.T.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.Env.Client.CoreV1().Pods(w.NS).Patch(w.T.Context(), name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresources...); err != nil {
		w.T.Fatal(err)
	}
}

// Delete deletes a Pod, at once or with grace: then its kubelet is still to end it.
func (w *World) Delete(name string, grace int64) {
	w.T.Helper()
	if err := w.Env.Client.CoreV1().Pods(w.NS).Delete(w.T.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		w.T.Fatal(err)
	}
}

// Node creates a node in a zone, unless it is there; it is deleted at the end of the test.
func (w *World) Node(name, zone string) {
	w.T.Helper()
	nodes := w.Env.Client.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	if _, err := nodes.Create(w.T.Context(), node, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		if err := nodes.Delete(context.WithoutCancel(w.T.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			w.T.Error(err)
		}
	})
}

// Address returns the IPv4 address number i.
func Address(i int) string {
	return netip.AddrFrom4([4]byte{10, 100, byte(i / 250), byte(i%250 + 1)}).String()
}

// Address6 returns the IPv6 address number i.
func Address6(i int) string { return fmt.Sprintf("fd00:2::%x", i+1) }
