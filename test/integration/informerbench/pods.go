// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	namespaces       = 20
	podsPerOwner     = 10
	podsPerNode      = 50
	variablesPerPod  = 15
	writersAtOnce    = 24
	controllerWrites = "kube-controller-manager"
	kubeletWrites    = "kubelet"
)

// podName tells the i-th pod; its owner is a ReplicaSet of podsPerOwner pods.
func podName(i int) (namespace, owner, name string) {
	set := i / podsPerOwner
	owner = fmt.Sprintf("web-%04d-6d4cf56db6", set)
	return fmt.Sprintf("team-%02d", set%namespaces), owner, fmt.Sprintf("%s-x%04d", owner, i)
}

// createPods creates n ordinary pods that run.
func createPods(ctx context.Context, client kubernetes.Interface, n int, log func(string, ...any)) error {
	for i := range namespaces {
		if err := createNamespace(ctx, client, fmt.Sprintf("team-%02d", i)); err != nil {
			return err
		}
	}
	start := time.Now()
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for i := range n {
		group.Go(func() error {
			if err := createPod(ctx, client, i); err != nil {
				return fmt.Errorf("creating pod %d: %w", i, err)
			}
			if d := done.Add(1); d%2000 == 0 {
				log("%d of %d pods after %s", d, n, time.Since(start).Round(time.Second))
			}
			return nil
		})
	}
	return group.Wait()
}

func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}
	if _, err := client.CoreV1().ServiceAccounts(name).Create(ctx, sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the service account of %s: %w", name, err)
	}
	return nil
}

// createPod applies the pod as a controller and its status as a kubelet.
func createPod(ctx context.Context, client kubernetes.Interface, i int) error {
	namespace, owner, name := podName(i)
	pods := client.CoreV1().Pods(namespace)
	pod := applycorev1.Pod(name, namespace).
		WithGenerateName(owner + "-").
		WithLabels(map[string]string{
			"app.kubernetes.io/name": owner[:8], "app.kubernetes.io/part-of": "shop", "tier": "frontend",
			"pod-template-hash": "6d4cf56db6",
		}).
		WithAnnotations(map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("apps/v1").WithKind("ReplicaSet").
			WithName(owner).WithUID(types.UID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i/podsPerOwner))).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(applycorev1.PodSpec().
			WithNodeName(fmt.Sprintf("node-%04d", i/podsPerNode)).
			WithContainers(container(owner, "app", "registry.example.com/shop/web:v1.27.3", 8080),
				container(owner, "proxy", "registry.example.com/mesh/proxy:v1.9.0", 15001)))
	if _, err := pods.Apply(ctx, pod, metav1.ApplyOptions{FieldManager: controllerWrites, Force: true}); err != nil {
		return err
	}
	_, err := pods.ApplyStatus(ctx, applycorev1.Pod(name, namespace).WithStatus(podStatus(i)),
		metav1.ApplyOptions{FieldManager: kubeletWrites, Force: true})
	return err
}

func container(owner, name, image string, port int32) *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().WithName(name).WithImage(image).
		WithArgs("--listen=0.0.0.0", "--config=/etc/"+name+"/config.yaml", "--log-level=info").
		WithPorts(applycorev1.ContainerPort().WithName(name).WithContainerPort(port)).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")})).
		WithReadinessProbe(probe("/readyz", port)).WithLivenessProbe(probe("/healthz", port))
	for v := range variablesPerPod - 1 {
		c.WithEnv(applycorev1.EnvVar().WithName(fmt.Sprintf("SERVICE_SETTING_%d", v)).
			WithValue(fmt.Sprintf("value-%d-of-%s", v, owner)))
	}
	return c.WithEnv(applycorev1.EnvVar().WithName("POD_IP").WithValueFrom(applycorev1.EnvVarSource().
		WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("status.podIP"))))
}

func probe(path string, port int32) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().WithHTTPGet(applycorev1.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(port))).
		WithPeriodSeconds(10).WithTimeoutSeconds(2)
}

// podStatus is that of a pod that became ready a few seconds after its start, at a time of its own.
func podStatus(i int) *applycorev1.PodStatusApplyConfiguration {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 7 * time.Second)
	at := func(seconds int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)) }
	condition := func(typ corev1.PodConditionType, when metav1.Time) *applycorev1.PodConditionApplyConfiguration {
		return applycorev1.PodCondition().WithType(typ).WithStatus(corev1.ConditionTrue).WithLastTransitionTime(when)
	}
	ip := fmt.Sprintf("10.%d.%d.%d", 64+i/65536, i/256%256, i%256)
	host := fmt.Sprintf("192.168.%d.%d", i/podsPerNode/250, i/podsPerNode%250+1)
	return applycorev1.PodStatus().
		WithPhase(corev1.PodRunning).WithStartTime(at(0)).WithPodIP(ip).WithPodIPs(applycorev1.PodIP().WithIP(ip)).
		WithHostIP(host).WithHostIPs(applycorev1.HostIP().WithIP(host)).
		WithConditions(condition(corev1.PodScheduled, at(0)), condition(corev1.PodReadyToStartContainers, at(2)),
			condition(corev1.PodInitialized, at(0)), condition(corev1.ContainersReady, at(9)), condition(corev1.PodReady, at(9))).
		WithContainerStatuses(containerStatus(i, "app", "registry.example.com/shop/web:v1.27.3", at(3)),
			containerStatus(i, "proxy", "registry.example.com/mesh/proxy:v1.9.0", at(3)))
}

func containerStatus(i int, name, image string, started metav1.Time) *applycorev1.ContainerStatusApplyConfiguration {
	return applycorev1.ContainerStatus().WithName(name).WithImage(image).
		WithImageID(fmt.Sprintf("registry.example.com/%s@sha256:%064x", name, 4711)).
		WithContainerID(fmt.Sprintf("containerd://%064x", i*31+len(name))).
		WithReady(true).WithStarted(true).WithRestartCount(0).
		WithState(applycorev1.ContainerState().WithRunning(applycorev1.ContainerStateRunning().WithStartedAt(started)))
}

// updatePods makes n updates, as a kubelet that sees pods lose and gain readiness does.
func updatePods(ctx context.Context, client kubernetes.Interface, pods, n, round int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for u := range n {
		group.Go(func() error {
			namespace, _, name := podName(u % pods)
			status := corev1.ConditionFalse
			if round%2 == 1 {
				status = corev1.ConditionTrue
			}
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q},{"type":"ContainersReady","status":%q}]}}`,
				status, time.Now().UTC().Format(time.RFC3339), status)
			_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch),
				metav1.PatchOptions{FieldManager: kubeletWrites}, "status")
			return err
		})
	}
	return group.Wait()
}
