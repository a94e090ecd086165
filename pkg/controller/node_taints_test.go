// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func taint(key, value string) v1.Taint {
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectNoSchedule}
}

func taints(values ...string) (all []v1.Taint, pointers []*v1.Taint) {
	for _, keyValue := range values {
		key, value, _ := strings.Cut(keyValue, "=")
		all = append(all, taint(key, value))
		pointers = append(pointers, new(taint(key, value)))
	}
	return all, pointers
}

func nodeWith(values ...string) *v1.Node {
	all, _ := taints(values...)
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: "7"}, Spec: v1.NodeSpec{Taints: all}}
}

func verbs(client *fake.Clientset) string {
	var all []string
	for _, action := range client.Actions() {
		all = append(all, action.GetVerb())
	}
	return strings.Join(all, " ")
}

func TestAddOrUpdateTaintOnNode(t *testing.T) {
	tests := []struct {
		name      string
		have, add []string
		want      []string
		verbs     string
	}{
		{"one", []string{"a=1"}, []string{"b=2"}, []string{"a=1", "b=2"}, "get patch"},
		{"several", []string{"a=1"}, []string{"b=2", "c=3"}, []string{"a=1", "b=2", "c=3"}, "get patch"},
		{"there already", []string{"a=1", "b=2"}, []string{"b=2"}, []string{"a=1", "b=2"}, "get"},
		{"to a node without", nil, []string{"a=1"}, []string{"a=1"}, "get patch"},
		{"none", []string{"a=1"}, nil, []string{"a=1"}, ""},
		{"another value", []string{"a=1", "b=2"}, []string{"a=3"}, []string{"a=3", "b=2"}, "get patch"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(nodeWith(tc.have...))
			_, add := taints(tc.add...)
			if err := AddOrUpdateTaintOnNode(t.Context(), client, "node", add...); err != nil {
				t.Fatal(err)
			}
			checkNode(t, client, tc.want, tc.verbs)
		})
	}
	client := fake.NewClientset()
	if err := AddOrUpdateTaintOnNode(t.Context(), client, "node", new(taint("a", "1"))); !apierrors.IsNotFound(err) {
		t.Errorf("missing node: %v", err)
	}
}

func TestRemoveTaintOffNode(t *testing.T) {
	tests := []struct {
		name         string
		have, remove []string
		known        bool // the caller has the Node from a cache
		want         []string
		verbs        string
	}{
		{"one", []string{"a=1", "b=2"}, []string{"b=2"}, true, []string{"a=1"}, "get patch"},
		{"several", []string{"a=1", "b=2", "c=3"}, []string{"b=2", "c=3"}, true, []string{"a=1"}, "get patch"},
		{"whatever its value", []string{"a=1"}, []string{"a=9"}, true, nil, "get patch"},
		{"one that it has not", []string{"a=1"}, []string{"b=2"}, true, []string{"a=1"}, ""},
		{"one that it has not, unseen", []string{"a=1"}, []string{"b=2"}, false, []string{"a=1"}, "get"},
		{"from a node without", nil, []string{"b=2"}, true, nil, ""},
		{"none from a node without", nil, nil, true, nil, ""},
		{"none", []string{"a=1"}, nil, true, []string{"a=1"}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(nodeWith(tc.have...))
			_, remove := taints(tc.remove...)
			var node *v1.Node
			if tc.known {
				node = nodeWith(tc.have...)
			}
			if err := RemoveTaintOffNode(t.Context(), client, "node", node, remove...); err != nil {
				t.Fatal(err)
			}
			checkNode(t, client, tc.want, tc.verbs)
		})
	}
}

func checkNode(t *testing.T, client *fake.Clientset, want []string, wantVerbs string) {
	t.Helper()
	if got := verbs(client); got != wantVerbs {
		t.Errorf("requests %q, want %q", got, wantVerbs)
	}
	for _, action := range client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"7"`) {
			t.Errorf("no precondition on the version: %s", patch.GetPatch())
		}
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wanted, _ := taints(want...)
	if !equality.Semantic.DeepEqual(node.Spec.Taints, wanted) {
		t.Errorf("taints %v, want %v", node.Spec.Taints, wanted)
	}
}

func TestNodeUpdatesRetryOnConflictWithLiveReads(t *testing.T) {
	client := fake.NewClientset(nodeWith("a=1"))
	conflicts := 2
	client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts == 0 {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(v1.Resource("nodes"), "node", errors.New("changed"))
	})
	if err := AddOrUpdateTaintOnNode(t.Context(), client, "node", new(taint("b", "2"))); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, action := range client.Actions() {
		if get, ok := action.(clienttesting.GetActionImpl); ok {
			versions = append(versions, get.GetOptions.ResourceVersion)
		}
	}
	if strings.Join(versions, ",") != "0,," {
		t.Errorf("read at versions %q, want the API server's cache once and then live", versions)
	}
}

func TestAddOrUpdateLabelsOnNode(t *testing.T) {
	node := nodeWith()
	node.Labels = map[string]string{"a": "1", "b": "2"}
	client := fake.NewClientset(node)
	if err := AddOrUpdateLabelsOnNode(t.Context(), client, "node", map[string]string{"b": "3", "c": "4"}); err != nil {
		t.Fatal(err)
	}
	if got := verbs(client); got != "get patch" {
		t.Errorf("requests %q", got)
	}
	if got, want := string(client.Actions()[1].(clienttesting.PatchAction).GetPatch()), `{"metadata":{"labels":{"b":"3","c":"4"}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
	client.ClearActions()
	if err := AddOrUpdateLabelsOnNode(t.Context(), client, "node", map[string]string{"c": "4"}); err != nil || verbs(client) != "get" {
		t.Errorf("nothing to do: %v, requests %q", err, verbs(client))
	}
}
