// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kcm-dev/kcm/test/integration/framework/golden"
)

// clusterScoped are the kinds without a namespace that scenarios may make.
func clusterScoped() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "persistentvolumes"}, {Version: "v1", Resource: "namespaces"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses"},
	}
}

// Snapshot is what there is at a moment, without what differs from run to run, as text.
type Snapshot struct {
	Objects string
	// Events are the Events, a line each, sorted, without those that repeat.
	Events string
	// Version changes whenever an object does.
	Version string
}

// Snapshot reads all objects of a namespace, and the cluster-scoped ones whose names begin with its name.
func (s *Stage) Snapshot(ctx context.Context, namespace string) (Snapshot, error) {
	objects, err := s.objects(ctx, namespace)
	if err != nil {
		return Snapshot{}, err
	}
	events, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return Snapshot{}, err
	}
	var versions []string
	for _, o := range objects {
		versions = append(versions, string(o.GetUID())+"@"+o.GetResourceVersion())
	}
	for i := range objects {
		simplify(&objects[i])
	}
	objects = golden.Normalize(objects)
	for i := range objects {
		sortSets(objects[i].Object)
	}
	text := golden.Document(objects)
	return Snapshot{
		Objects: scrubText(text, namespace),
		Events:  eventLines(events.Items, namespace),
		Version: strings.Join(versions, " "),
	}, nil
}

func (s *Stage) objects(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	resources := slices.Concat(s.namespaced, clusterScoped())
	found := make([][]unstructured.Unstructured, len(resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, gvr := range resources {
		group.Go(func() error {
			var list *unstructured.UnstructuredList
			var err error
			if i < len(s.namespaced) {
				list, err = s.dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
			} else {
				list, err = s.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
			}
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				return nil // a CRD that is gone
			}
			if err != nil {
				return fmt.Errorf("listing %s: %w", gvr.GroupResource(), err)
			}
			found[i] = slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
				return i >= len(s.namespaced) && o.GetName() != namespace && !strings.HasPrefix(o.GetName(), namespace+"-")
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// simplify takes out what depends on speed and not on what is decided: how many writes an object that a controller owns
// has had, and the order of what has none.
func simplify(o *unstructured.Unstructured) {
	generation := o.GetGeneration()
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if err == nil && found {
		state := "behind"
		if observed == generation {
			state = "current"
		}
		_ = unstructured.SetNestedField(o.Object, state, "status", "observedGeneration") // status is a map
	}
	if metav1.GetControllerOfNoCopy(o) != nil {
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
	}
	// When what caused the last change happened: nothing, if that change came in one batch with others.
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time")
	if len(o.GetAnnotations()) == 0 {
		o.SetAnnotations(nil)
	}
	// Equals are numbered by what they are, not by which second they were made in.
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	if o.GetKind() == "Pod" {
		for _, field := range []string{"podIP", "podIPs"} {
			if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "status", field); found {
				_ = unstructured.SetNestedField(o.Object, "<podIP>", "status", field) // status is a map
			}
		}
	}
	// A slice that was updated has lost its generateName, and has its name from it all the same.
	if service := o.GetLabels()["kubernetes.io/service-name"]; o.GetKind() == "EndpointSlice" && o.GetGenerateName() == "" && service != "" {
		o.SetGenerateName(service + "-")
		_ = unstructured.SetNestedField(o.Object, true, "metadata", "noGenerateName") // metadata is a map
	}
	for _, path := range [][]string{{"status", "active"}} {
		dropVersions(o.Object, path)
	}
	sortStatusConditions(o.Object)
}

// dropVersions takes the resource versions out of a list of references.
func dropVersions(object map[string]any, path []string) {
	list, _, err := unstructured.NestedSlice(object, path...)
	if err != nil || list == nil {
		return // a Job's active is a number
	}
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			delete(fields, "resourceVersion")
		}
	}
	_ = unstructured.SetNestedSlice(object, list, path...) // it was there
}

// sortSets sorts lists that are sets, after their members have their stable names.
func sortSets(object map[string]any) {
	sortByText(object["endpoints"])
	sortByText(object["subsets"])
	if subsets, ok := object["subsets"].([]any); ok {
		for _, subset := range subsets {
			if fields, ok := subset.(map[string]any); ok {
				sortByText(fields["addresses"])
				sortByText(fields["notReadyAddresses"])
			}
		}
	}
}

// sortByText sorts a list by its items' texts without addresses, whose numbers differ.
func sortByText(value any) {
	list, ok := value.([]any)
	if !ok {
		return
	}
	text := func(v any) string { return podIP.ReplaceAllString(golden.YAML(v), "<podIP>") }
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

// sortStatusConditions: conditions are a map by type.
func sortStatusConditions(object map[string]any) {
	conditions, found, err := unstructured.NestedSlice(object, "status", "conditions")
	if err != nil || !found {
		return
	}
	slices.SortStableFunc(conditions, func(a, b any) int {
		return strings.Compare(fmt.Sprint(field(a, []string{"type"})), fmt.Sprint(field(b, []string{"type"})))
	})
	_ = unstructured.SetNestedSlice(object, conditions, "status", "conditions") // status is a map
}

// podIP are the fake kubelet's addresses.
var podIP = regexp.MustCompile(`\b10\.1[2-9]\d\.\d+\.\d+\b`)

// What differs from run to run in texts.
var scrubbers = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----[\s\S]+?-----END [A-Z ]+-----`), "<pem>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`), "<clusterIP>"},
	{podIP, "<podIP>"},
	{regexp.MustCompile(`\b10\.244\.\d+\.0/24\b`), "<podCIDR>"},
	{regexp.MustCompile(`((?:ca\.crt|token): )[A-Za-z0-9+/=]{40,}`), "$1<data>"},
	{regexp.MustCompile(`("[^"\s]+)-[bcdfghjklmnpqrstvwxz2456789]{5}" is forbidden`), "$1-<x>\" is forbidden"},
	{regexp.MustCompile(`\(combined from similar events\): `), ""},
	{regexp.MustCompile(`\b(2[5-9]|3\d)\d{6}\b`), "<minutes>"}, // a CronJob's Jobs are named after the minute
	{regexp.MustCompile(`nodePort: \d+`), "nodePort: <port>"},
}

func scrubText(text, namespace string) string {
	for _, s := range scrubbers {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(namespace)+`\b`).ReplaceAllString(text, "<ns>")
}

// suffix is what the API server appends to generateName.
var suffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// eventLines are the Events in a form that compares: what is told of which object, not how often.
func eventLines(events []corev1.Event, namespace string) string {
	var lines []string
	for _, e := range events {
		if e.Reason == "ClusterIPNotAllocated" {
			continue // the API server's own repair, by its clock
		}
		lines = append(lines, suffix.ReplaceAllString(scrubText(fmt.Sprintf("%s %s %s %s: %s (%s)",
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason, e.Message, e.Source.Component), namespace), "-<x>"))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// Clear deletes the scenario's cluster-scoped objects; its namespace goes with the control plane.
func (s *Stage) Clear(ctx context.Context, namespace string) error {
	for _, gvr := range clusterScoped() {
		list, err := s.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing %s: %w", gvr.GroupResource(), err)
		}
		for _, o := range list.Items {
			if !strings.HasPrefix(o.GetName(), namespace+"-") || gvr.Resource == "namespaces" {
				continue
			}
			if err := s.dynamic.Resource(gvr).Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting %s %s: %w", gvr.GroupResource(), o.GetName(), err)
			}
		}
	}
	return nil
}

// StableName is a name without what the API server has made up.
func StableName(name string) string { return suffix.ReplaceAllString(name, "-<x>") }
