// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revision is a ReplicaSet that differs from the others of its Deployment in the image.
func revision(i int) *appsv1.ReplicaSet {
	pod := ordinaryPod(0)
	pod.Spec.NodeName = ""
	for c := range pod.Spec.Containers {
		pod.Spec.Containers[c].Image = fmt.Sprintf("image:%d", i)
		for v := range 15 {
			pod.Spec.Containers[c].Env = append(pod.Spec.Containers[c].Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: fmt.Sprintf("value %d of the variable", v)})
		}
	}
	labels := map[string]string{"app": "web", "pod-template-hash": fmt.Sprint(i)}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "shop", UID: "u", ResourceVersion: "1", Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
}

func TestRevisionsShare(t *testing.T) {
	k, err := NewKinds().For(&appsv1.ReplicaSet{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDecoder(NewTable())
	var sets []*appsv1.ReplicaSet
	for i := range 2 {
		raw := marshal(t, revision(i))
		checkSame(t, d, k, raw)
		obj, _, err := k.decode(d, k, raw)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, obj.(*appsv1.ReplicaSet))
	}
	a, b := &sets[0].Spec.Template.Spec, &sets[1].Spec.Template.Spec
	if &a.Containers[1].Env[0] != &b.Containers[1].Env[0] || a.Containers[0].ReadinessProbe != b.Containers[0].ReadinessProbe ||
		&a.Volumes[0] != &b.Volumes[0] || &a.InitContainers[0].Env[0] != &b.InitContainers[0].Env[0] {
		t.Error("the templates of two revisions do not share what they have in common")
	}
	if &a.Containers[0] == &b.Containers[0] || a.Containers[0].Image == b.Containers[0].Image {
		t.Error("two revisions have the same containers")
	}
	sets[0].Labels["probe"] = "x"
	if sets[0].Spec.Template.Labels["probe"] != "x" {
		t.Error("the labels of a ReplicaSet and of its template are not shared")
	}
}

// TestRevisionsAreSmall compares what a hundred revisions cost decoded by the generated code and here.
func TestRevisionsAreSmall(t *testing.T) {
	const n = 100
	raws := make([][]byte, n)
	for i := range raws {
		raws[i] = marshal(t, revision(i))
	}
	k, err := NewKinds().For(&appsv1.ReplicaSet{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDecoder(NewTable())
	decode := func(raw []byte) any {
		obj, _, err := k.decode(d, k, raw)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	generated := func(raw []byte) any {
		var rs appsv1.ReplicaSet
		if err := rs.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		return &rs
	}
	ours, theirs := heapOf(raws, decode), heapOf(raws, generated)
	if ours > theirs/2 {
		t.Errorf("a revision costs %d bytes, and %d when nothing is shared", ours/n, theirs/n)
	}
	t.Logf("%d and %d bytes", ours/n, theirs/n)
}

// heapOf is what the decoded objects cost in live memory.
func heapOf(raws [][]byte, decode func([]byte) any) int64 {
	objects := make([]any, len(raws))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, raw := range raws {
		objects[i] = decode(raw)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(objects)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestEveryTemplateIsFound looks whether the templates of all workloads are shared: a path that were
// wrong would do no harm but to memory.
func TestEveryTemplateIsFound(t *testing.T) {
	spec := revision(1).Spec.Template
	for _, obj := range []object{
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: spec}},
		&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: spec}},
		&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: spec}},
		&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: spec}},
		&batchv1.Job{Spec: batchv1.JobSpec{Template: spec}},
		&batchv1.CronJob{Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: spec}}}},
		&corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &spec}},
		&corev1.PodTemplate{Template: spec},
	} {
		k, err := NewKinds().For(obj)
		if err != nil {
			t.Fatal(err)
		}
		table := NewTable()
		checkSame(t, newDecoder(table), k, marshal(t, obj))
		if table.templates.len() != 1 || table.containers.len() != 3 && table.containers.len() != 2 {
			t.Errorf("%T: %d templates and %d containers in the table", obj, table.templates.len(), table.containers.len())
		}
	}
}
