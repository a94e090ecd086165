// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

func cachedDiscovery(d discovery.DiscoveryInterface) discovery.CachedDiscoveryInterface {
	return memory.NewMemCacheClient(d)
}

// Play plays the scenario in a namespace, which it creates. At each checkpoint it calls at, whose error ends the play.
func (s *Stage) Play(ctx context.Context, sc Scenario, namespace string, at func(ctx context.Context, checkpoint string) error) error {
	sc, err := sc.In(namespace)
	if err != nil {
		return err
	}
	if err := s.Namespace(ctx, namespace); err != nil {
		return err
	}
	for i, step := range sc.Steps {
		err := s.do(ctx, step, namespace)
		if err == nil && step.Checkpoint != "" {
			err = at(ctx, step.Checkpoint)
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, step, err)
		}
	}
	return nil
}

func (s *Stage) do(ctx context.Context, step Step, namespace string) error {
	switch {
	case step.Create != nil:
		return s.create(ctx, step.Create, namespace)
	case step.Patch != nil:
		return s.patch(ctx, *step.Patch, namespace)
	case step.Scale != nil:
		return s.patch(ctx, Patch{Ref: step.Scale.Ref, Patch: map[string]any{"spec": map[string]any{"replicas": step.Scale.Replicas}}}, namespace)
	case step.Delete != nil:
		return s.remove(ctx, *step.Delete, namespace)
	case step.Pods != nil:
		return s.setPods(ctx, *step.Pods, namespace)
	case step.Hold != nil:
		return s.hold(*step.Hold, namespace)
	case step.Wait != nil:
		return s.wait(ctx, *step.Wait, namespace)
	case step.Advance != nil:
		select {
		case <-time.After(step.Time()):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// create creates one object, or a list of them. A status is written, too.
func (s *Stage) create(ctx context.Context, what any, namespace string) error {
	list, isList := what.([]any)
	if !isList {
		list = []any{what}
	}
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("create: %v is no object", item)
		}
		object := &unstructured.Unstructured{Object: fields}
		kind := object.GetKind()
		if group := object.GroupVersionKind().Group; group != "" {
			kind += "." + group
		}
		client, err := s.client(kind, namespace)
		if err != nil {
			return err
		}
		if err := s.resolveOwners(ctx, object, namespace); err != nil {
			return err
		}
		created, err := client.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		status, hasStatus := fields["status"]
		if !hasStatus {
			continue
		}
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if _, err := client.Patch(ctx, created.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

// resolveOwners fills in the UIDs of owner references that have none: files cannot know them.
func (s *Stage) resolveOwners(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	refs := object.GetOwnerReferences()
	for i, ref := range refs {
		if ref.UID != "" {
			continue
		}
		kind := ref.Kind
		if group, _, found := strings.Cut(ref.APIVersion, "/"); found {
			kind += "." + group
		}
		client, err := s.client(kind, namespace)
		if err != nil {
			return err
		}
		owner, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		refs[i].UID = owner.GetUID()
	}
	if len(refs) > 0 {
		object.SetOwnerReferences(refs)
	}
	return nil
}

func (s *Stage) patch(ctx context.Context, p Patch, namespace string) error {
	client, err := s.client(p.Kind, namespace)
	if err != nil {
		return err
	}
	body, err := json.Marshal(p.Patch)
	if err != nil {
		return err
	}
	patchType := types.MergePatchType
	switch p.Type {
	case "strategic":
		patchType = types.StrategicMergePatchType
	case "json":
		patchType = types.JSONPatchType
	}
	var subresources []string
	if p.Subresource != "" {
		subresources = []string{p.Subresource}
	}
	names := []string{p.Name}
	if p.Name == "" {
		if names, err = s.names(ctx, p.Ref, namespace); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, err := client.Patch(ctx, name, patchType, body, metav1.PatchOptions{}, subresources...); err != nil {
			return err
		}
	}
	return nil
}

// names lists the names of what a selector matches.
func (s *Stage) names(ctx context.Context, ref Ref, namespace string) ([]string, error) {
	client, err := s.client(ref.Kind, namespace)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: ref.Selector})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names, nil
}

func (s *Stage) remove(ctx context.Context, d Delete, namespace string) error {
	client, err := s.client(d.Kind, namespace)
	if err != nil {
		return err
	}
	var options metav1.DeleteOptions
	if d.Propagation != "" {
		options.PropagationPolicy = &d.Propagation
	}
	if d.Now {
		options.GracePeriodSeconds = ptr.To[int64](0)
	}
	names := []string{d.Name}
	if d.Name == "" {
		if names, err = s.names(ctx, d.Ref, namespace); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := client.Delete(ctx, name, options); err != nil {
			return err
		}
	}
	return nil
}

// setPods tells the kubelet what becomes of pods.
func (s *Stage) setPods(ctx context.Context, p Pods, namespace string) error {
	selector, err := labels.Parse(p.Selector)
	if err != nil {
		return err
	}
	matches := func(pod *corev1.Pod) bool {
		return pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) &&
			(p.Image == "" || pod.Spec.Containers[0].Image == p.Image)
	}
	if p.Count > 0 {
		chosen, err := s.firstPods(ctx, p.Count, namespace, matches)
		if err != nil {
			return err
		}
		matches = func(pod *corev1.Pod) bool { return chosen.Has(pod.UID) }
	}
	s.Kubelet.Set(fakekubelet.Outcome(slices.Index(outcomes, p.Become)), matches)
	return nil
}

// firstPods returns the first so many pods: those that exist, run and are not to be deleted, by node and name.
func (s *Stage) firstPods(ctx context.Context, count int, namespace string, matches func(*corev1.Pod) bool) (sets.Set[types.UID], error) {
	list, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return !matches(&pod) || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	if len(pods) < count {
		return nil, fmt.Errorf("there are %d such pods, want %d: wait for them first", len(pods), count)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Spec.NodeName, b.Spec.NodeName), strings.Compare(a.Name, b.Name))
	})
	chosen := sets.New[types.UID]()
	for _, pod := range pods[:count] {
		chosen.Insert(pod.UID)
	}
	return chosen, nil
}

func (s *Stage) hold(h Hold, namespace string) error {
	selector, err := labels.Parse(h.Selector)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if h.Release {
		delete(s.held, namespace)
	} else {
		s.held[namespace] = selector
	}
	s.mu.Unlock()
	s.Kubelet.HoldDeletion(s.isHeld) // and look at all pods again
	return nil
}

func (s *Stage) wait(ctx context.Context, w Wait, namespace string) error {
	client, err := s.client(w.Kind, namespace)
	if err != nil {
		return err
	}
	last, timeout := "", s.Timeout
	if w.Within != nil {
		timeout = w.Within.Duration
	}
	err = cluster.WaitFor(ctx, "this", timeout, func(ctx context.Context) (bool, error) {
		if w.Count != nil {
			list, err := client.List(ctx, metav1.ListOptions{LabelSelector: w.Selector})
			if err != nil {
				return false, err
			}
			last = fmt.Sprintf("there are %d", len(list.Items))
			return len(list.Items) == *w.Count, nil
		}
		object, err := client.Get(ctx, w.Name, metav1.GetOptions{})
		if w.Gone {
			return apierrors.IsNotFound(err), nil
		}
		if err != nil {
			return false, err
		}
		var met bool
		met, last = fieldsAre(object.Object, w.Is)
		return met, nil
	})
	if err != nil && last != "" {
		err = fmt.Errorf("%w: last seen: %s", err, last)
	}
	return err
}

// fieldsAre tells whether the object's fields, by dotted paths, have these values, and what they have.
func fieldsAre(object map[string]any, want map[string]any) (bool, string) {
	all := true
	var seen []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		got := field(object, strings.Split(path, "."))
		if fmt.Sprint(got) != fmt.Sprint(want[path]) {
			all = false
		}
		seen = append(seen, fmt.Sprintf("%s=%v", path, got))
	}
	return all, strings.Join(seen, ", ")
}

// field returns the value at a path, "" if there is none. In a list, a part of the path is the type, the name or the
// number of an item.
func field(value any, path []string) any {
	for i, part := range path {
		switch v := value.(type) {
		case map[string]any:
			rest := strings.Join(path[i:], ".")
			if item, whole := v[rest]; whole { // a label or an annotation with dots
				return item
			}
			value = v[part]
		case []any:
			value = item(v, part)
		default:
			return ""
		}
	}
	if value == nil {
		return ""
	}
	return value
}

func item(list []any, name string) any {
	for i, entry := range list {
		if fmt.Sprint(i) == name {
			return entry
		}
		if fields, ok := entry.(map[string]any); ok && (fields["type"] == name || fields["name"] == name) {
			return entry
		}
	}
	return nil
}

// Release lets all held pods of a namespace end.
func (s *Stage) Release(namespace string) error { return s.hold(Hold{Release: true}, namespace) }
