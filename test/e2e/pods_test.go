// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// podWatch follows the pods of a namespace, every change of them.
type podWatch struct {
	cancel context.CancelFunc
	done   chan podsSeen
}

// podsSeen are the extremes of a time.
type podsSeen struct {
	// fewestReady is the smallest number of ready pods that were not being deleted.
	fewestReady int
	// most is the greatest number of pods that had not ended.
	most int
	// revisions is the greatest number of pod-template-hash labels among those.
	revisions int
}

// watchPods follows the pods from now on, until stop or the end of the spec.
func (c *cluster) watchPods(ctx context.Context) *podWatch {
	GinkgoHelper()
	list, err := c.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(ctx)
	w, err := c.CoreV1().Pods(c.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
	}
	Expect(err).NotTo(HaveOccurred())
	pods := map[types.UID]*corev1.Pod{}
	for _, p := range list.Items {
		pods[p.UID] = &p
	}
	out := &podWatch{cancel: cancel, done: make(chan podsSeen, 1)}
	go func() {
		defer GinkgoRecover()
		out.done <- follow(w, pods)
	}()
	DeferCleanup(cancel)
	return out
}

// stop ends the watch and returns what it has seen.
func (w *podWatch) stop() podsSeen {
	w.cancel()
	return <-w.done
}

func follow(w watch.Interface, pods map[types.UID]*corev1.Pod) podsSeen {
	defer w.Stop()
	seen := podsSeen{fewestReady: len(pods)}
	seen.add(pods)
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue // the watch's end
		}
		if event.Type == watch.Deleted {
			delete(pods, pod.UID)
		} else {
			pods[pod.UID] = pod
		}
		seen.add(pods)
	}
	return seen
}

func (s *podsSeen) add(pods map[types.UID]*corev1.Pod) {
	ready, running := 0, 0
	revisions := map[string]bool{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		running++
		revisions[p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]] = true
		if p.DeletionTimestamp == nil && isReady(p) {
			ready++
		}
	}
	s.fewestReady = min(s.fewestReady, ready)
	s.most = max(s.most, running)
	s.revisions = max(s.revisions, len(revisions))
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (c *cluster) liveCount(ctx context.Context, selector string) (int, error) {
	pods, err := c.livePods(ctx, selector)
	return len(pods), err
}

// createPod makes a pod that nobody controls; change may be nil.
func (c *cluster) createPod(ctx context.Context, name string, change func(*corev1.Pod)) *corev1.Pod {
	GinkgoHelper()
	template := podTemplate(map[string]string{"app": name})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels}, Spec: template.Spec}
	if change != nil {
		change(p)
	}
	p, err := c.CoreV1().Pods(c.namespace).Create(ctx, p, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return p
}

// controllerOfPod is nil for a pod that nobody controls.
func (c *cluster) controllerOfPod(ctx context.Context, name string) (*metav1.OwnerReference, error) {
	p, err := c.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return metav1.GetControllerOf(p), nil
}

func podNames(pods []corev1.Pod) []string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}
