// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestStatusWriteIsRetriedOnce(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	conflict := apierrors.NewConflict(apps.Resource("replicasets"), "web", errors.New("changed"))
	tests := []struct {
		name     string
		updates  []error // answers; nil afterwards
		get      error
		wantErr  bool
		requests string
	}{
		{"at once", nil, nil, false, "update replicasets/status"},
		{"conflict", []error{conflict}, nil, false, "update replicasets/status, get replicasets, update replicasets/status"},
		{"two conflicts", []error{conflict, conflict}, nil, true, "update replicasets/status, get replicasets, update replicasets/status"},
		{"the read fails", []error{conflict}, errors.New("no"), true, "update replicasets/status, get replicasets"},
		{"gone", []error{apierrors.NewNotFound(apps.Resource("replicasets"), "web")}, nil, false, "update replicasets/status"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, BurstReplicas, set)
			answers := tc.updates
			f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
				if len(answers) == 0 {
					return false, nil, nil
				}
				answer := answers[0]
				answers = answers[1:]
				return true, nil, answer
			})
			if tc.get != nil {
				f.client.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.get })
			}
			if err := f.syncSet(t, set); (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %v", err, tc.wantErr)
			}
			if got := f.requests(); got != tc.requests {
				t.Errorf("requests %s, want %s", got, tc.requests)
			}
		})
	}
}

// The answer to the first write is lost: the live read shows that it was carried out.
func TestStatusWriteOfUnknownOutcome(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	f := newFixture(t, BurstReplicas, set)
	f.setIndexer.Bookmark("1")
	f.client.PrependReactor("update", "replicasets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written := action.(clienttesting.UpdateAction).GetObject().(*apps.ReplicaSet).DeepCopy()
		written.ResourceVersion = "5"
		return true, nil, errors.Join(noAnswer(), f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("replicasets"), written, "ns"))
	})
	if err := f.syncSet(t, set); err != nil {
		t.Fatal(err)
	}
	if got := f.requests(); got != "update replicasets/status, get replicasets" {
		t.Errorf("requests %s", got)
	}
	f.client.ClearActions()
	if err := f.syncSet(t, set); err == nil || f.requests() != "" {
		t.Errorf("acts on a cache that does not show the status yet: %v, requests %s", err, f.requests())
	}
}

func TestStatusRetryStopsAtAnotherUID(t *testing.T) {
	set := newSet("web", 0)
	set.Status.Replicas = 3
	f := newFixture(t, BurstReplicas, set)
	other := newSet("web", 0)
	other.UID = "other"
	f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(apps.Resource("replicasets"), "web", errors.New("changed"))
	})
	f.client.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, other, nil })
	if err := f.syncSet(t, set); err != nil || f.requests() != "update replicasets/status, get replicasets" {
		t.Errorf("error %v, requests %s", err, f.requests())
	}
}

func TestFailureIsToldEvenIfTheStatusCannotBeWritten(t *testing.T) {
	set := newSet("web", 1)
	f := newFixture(t, BurstReplicas, set)
	f.podControl.Err = errors.New("no pods today")
	f.client.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no status today")
	})
	err := f.syncSet(t, set)
	if err == nil || !strings.Contains(err.Error(), "no pods today") || !strings.Contains(err.Error(), "no status today") {
		t.Errorf("error %v", err)
	}
}
