// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// ordinaryPod is the i-th pod of a ReplicaSet, as a server sends it.
func ordinaryPod(i int) *corev1.Pod {
	start := metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/" + name + ":1", Command: []string{"/" + name}, Args: []string{"-v"},
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Env:            []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}},
			Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			VolumeMounts:   []corev1.VolumeMount{{Name: fmt.Sprintf("kube-api-access-%05d", i), MountPath: "/var/run/secrets"}},
			LivenessProbe:  &corev1.Probe{PeriodSeconds: 10},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 10},
		}
	}
	status := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, Ready: true, Started: ptr.To(true), Image: "registry.example.com/" + name + ":1",
			ImageID: "sha256:1", ContainerID: fmt.Sprintf("containerd://%s%d", name, i),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 3, Reason: "Error", StartedAt: start, FinishedAt: start, ContainerID: fmt.Sprint(i)}},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", i), GenerateName: "web-", Namespace: "shop", UID: types.UID(fmt.Sprintf("uid-%d", i)),
			ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: start,
			Labels:          map[string]string{"app": "web", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1("{}")}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%3), ServiceAccountName: "default", Tolerations: []corev1.Toleration{{Key: "k", Operator: "Exists"}},
			Affinity:       &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
			InitContainers: []corev1.Container{container("init")}, Containers: []corev1.Container{container("app"), container("proxy")},
			Volumes: []corev1.Volume{
				{Name: fmt.Sprintf("kube-api-access-%05d", i), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
			PodIP: fmt.Sprintf("10.1.0.%d", i), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.1.0.%d", i)}}, StartTime: &start,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: start},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start, Reason: "r", Message: "m", ObservedGeneration: 4},
			},
			InitContainerStatuses: []corev1.ContainerStatus{status("init")},
			ContainerStatuses:     []corev1.ContainerStatus{status("app"), status("proxy")},
		},
	}
}

// trimmedPod is what is to be left of an ordinary pod, said by hand.
func trimmedPod(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ManagedFields = nil
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i, c := range containers {
			containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources}
		}
	}
	pod.Spec.Volumes = pod.Spec.Volumes[1:2]
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i, s := range statuses {
			statuses[i] = corev1.ContainerStatus{
				Name: s.Name, Ready: s.Ready, Started: s.Started,
				State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
			}
		}
	}
	return pod
}

func decoded(t testing.TB, d *decoder, k *Kind, raw []byte) *corev1.Pod {
	t.Helper()
	obj, size, err := k.decode(d, k, raw)
	if err != nil {
		t.Fatalf("decoding: %v", err)
	}
	if size < 1000 || size > 10000 {
		t.Errorf("size %d of a pod is not believable", size)
	}
	return obj.(*corev1.Pod)
}

func podKind(t testing.TB) *Kind {
	t.Helper()
	k, err := NewKinds().For(&corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestPodIsTrimmedAsDeclared(t *testing.T) {
	pod := ordinaryPod(1)
	got := decoded(t, newDecoder(NewTable()), podKind(t), marshal(t, pod))
	if diff := cmp.Diff(trimmedPod(pod), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeep(t *testing.T) {
	kinds := NewKinds()
	if err := kinds.Keep(&corev1.Pod{}, "spec.containers.volumeMounts", "spec.volumes[volumeSource.projected]"); err != nil {
		t.Fatal(err)
	}
	k, err := kinds.For(&corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	pod := ordinaryPod(1)
	got := decoded(t, newDecoder(NewTable()), k, marshal(t, pod))
	if len(got.Spec.Volumes) != 2 || len(got.Spec.Containers[0].VolumeMounts) != 1 || len(got.Spec.InitContainers[0].VolumeMounts) != 0 {
		t.Errorf("kept is not what was asked for: %d volumes, %d mounts", len(got.Spec.Volumes), len(got.Spec.Containers[0].VolumeMounts))
	}
	if err := kinds.Keep(&corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if k, _ = kinds.For(&corev1.Pod{}); k.TrimsMoreThanManagedFields() {
		t.Errorf("after keeping all, %v is still dropped", k.Dropped())
	}
	for obj, path := range map[object]string{&corev1.Pod{}: "spec.nodeName", &corev1.Event{}: ""} {
		if err := kinds.Keep(obj, path); err == nil {
			t.Errorf("keeping %q of %T, which is not dropped, is no error", path, obj)
		}
	}
}

func TestPodsOfOneOwnerShare(t *testing.T) {
	table, k := NewTable(), podKind(t)
	// Two sources.
	a := decoded(t, newDecoder(table), k, marshal(t, ordinaryPod(1)))
	b := decoded(t, newDecoder(table), k, marshal(t, ordinaryPod(4)))
	for what, same := range map[string]bool{
		"containers":         &a.Spec.Containers[0] == &b.Spec.Containers[0],
		"init containers":    &a.Spec.InitContainers[0] == &b.Spec.InitContainers[0],
		"tolerations":        &a.Spec.Tolerations[0] == &b.Spec.Tolerations[0],
		"affinity":           a.Spec.Affinity == b.Spec.Affinity,
		"owner references":   &a.OwnerReferences[0] == &b.OwnerReferences[0],
		"container statuses": &a.Status.ContainerStatuses[0] == &b.Status.ContainerStatuses[0],
		"host addresses":     &a.Status.HostIPs[0] == &b.Status.HostIPs[0],
	} {
		if !same {
			t.Errorf("%s are not shared", what)
		}
	}
	// Maps have no address to compare; one is changed, as nobody else may.
	a.Labels["probe"] = "x"
	if b.Labels["probe"] != "x" {
		t.Error("labels are not shared")
	}
	if &a.Spec.Volumes[0] == &b.Spec.Volumes[0] || &a.Status.Conditions[0] == &b.Status.Conditions[0] {
		t.Error("what is a pod's own is shared")
	}
}

func TestPartsEndWithTheirObjects(t *testing.T) {
	table, k := NewTable(), podKind(t)
	d := newDecoder(table)
	kept := decoded(t, d, k, marshal(t, ordinaryPod(0)))
	alive := func() int {
		table.podSpecs.mu.Lock()
		defer table.podSpecs.mu.Unlock()
		table.podSpecs.sweepLocked()
		return len(table.podSpecs.parts)
	}
	for i := range 100 {
		pod := ordinaryPod(i)
		pod.Spec.SchedulerName = fmt.Sprint(i % 10)
		decoded(t, d, k, marshal(t, pod))
	}
	runtime.GC()
	if n := alive(); n != 1 {
		t.Errorf("%d specs are alive beside one pod", n)
	}
	again := decoded(t, d, k, marshal(t, ordinaryPod(0)))
	if &again.Spec.Containers[0] != &kept.Spec.Containers[0] {
		t.Error("a part of a living object is no longer shared after a collection")
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(again)
	runtime.GC()
	if n := alive(); n != 0 {
		t.Errorf("%d specs are alive without a pod", n)
	}
}

func TestTableStaysSmall(t *testing.T) {
	table, k := NewTable(), podKind(t)
	d := newDecoder(table)
	for i := range 20 * minSweep {
		pod := ordinaryPod(i)
		pod.Labels["unique"] = fmt.Sprint(i)
		decoded(t, d, k, marshal(t, pod))
		if i%100 == 0 {
			runtime.GC()
		}
	}
	if n := table.labels.len(); n > 3*minSweep {
		t.Errorf("%d label maps in the table, all but a few of objects that are gone", n)
	}
}

func TestDecodersAreConcurrent(t *testing.T) {
	table, k := NewTable(), podKind(t)
	var wg sync.WaitGroup
	for g := range 8 {
		raws := [][]byte{}
		for i := range 50 {
			pod := ordinaryPod(i)
			pod.Labels["g"] = fmt.Sprint(i % 7)
			raws = append(raws, marshal(t, pod))
		}
		wg.Go(func() {
			d := newDecoder(table)
			for round := range 20 {
				for i, raw := range raws {
					obj, _, err := k.object(d, raw)
					if err != nil || obj.(*corev1.Pod).Labels["g"] != fmt.Sprint(i%7) {
						t.Errorf("goroutine %d: %v", g, err)
						return
					}
				}
				if round%5 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

func TestDecodingAllocatesLittle(t *testing.T) {
	table, k := NewTable(), podKind(t)
	d := newDecoder(table)
	pod := ordinaryPod(1)
	pod.Spec.Volumes = nil
	raw := marshal(t, pod)
	first := decoded(t, d, k, raw)
	// The pod, its strings, its conditions.
	if allocs := testing.AllocsPerRun(100, func() { decoded(t, d, k, raw) }); allocs > 3 {
		t.Errorf("decoding a pod like one that is there takes %v allocations", allocs)
	}
	runtime.KeepAlive(first)
}

func BenchmarkPod(b *testing.B) {
	pods := make([][]byte, 1000)
	for i := range pods {
		pods[i] = marshal(b, ordinaryPod(i))
	}
	k := podKind(b)
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			var pod corev1.Pod
			if err := pod.Unmarshal(pods[i%len(pods)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("wire", func(b *testing.B) {
		d := newDecoder(NewTable())
		var last *corev1.Pod
		b.ReportAllocs()
		for i := range b.N {
			last = decoded(b, d, k, pods[i%len(pods)])
		}
		runtime.KeepAlive(last)
	})
}
