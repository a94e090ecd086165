// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kcm-dev/kcm/pkg/controller"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

func noAnswer() error { return errors.New("read tcp: connection reset by peer") }

// A creation that got no answer may have happened: it is looked up live before the next.
func TestCreateOfUnknownOutcome(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened=%v", happened), func(t *testing.T) {
			set := newSet("web", 1)
			f := newFixture(t, BurstReplicas, set)
			f.podIndexer.Bookmark("10")
			f.podControl.Err = noAnswer()
			if err := f.syncSet(t, set); err == nil {
				t.Fatal("no error")
			}
			f.podControl.Err = nil
			f.podControl.Clear()
			created := newPod("created", set, version("12"))
			if happened {
				_ = f.client.Tracker().Add(created)
				_ = f.client.Tracker().Add(newPod("orphan", nil, version("99"))) // none of the set's business
			}
			f.client.ClearActions()

			// At once, the request may still be on its way.
			if err := f.syncSet(t, set); err == nil {
				t.Error("acts while the request may still be on its way")
			}
			f.writes(t, 0, 0, 0)
			if got := f.requests(); got != "" {
				t.Errorf("requests %s", got)
			}

			f.clock.Step(settleDelay)
			err := f.syncSet(t, set)
			if !strings.HasPrefix(f.requests(), "list pods") {
				t.Errorf("requests %s", f.requests())
			}
			if !happened {
				if err != nil {
					t.Fatal(err)
				}
				f.writes(t, 1, 0, 0)
				return
			}
			if err == nil {
				t.Error("acts on a cache that does not show the Pod yet")
			}
			f.writes(t, 0, 0, 0)
			f.add(created)
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			f.writes(t, 0, 0, 0)
			if strings.Contains(f.requests(), "list pods") {
				t.Error("listed again")
			}
		})
	}
}

func TestDeleteOfUnknownOutcome(t *testing.T) {
	for _, outcome := range []string{"gone", "terminating", "unharmed"} {
		t.Run(outcome, func(t *testing.T) {
			set := newSet("web", 1)
			f := newFixture(t, BurstReplicas, set)
			keep, drop := newPod("keep", set, ready()), newPod("drop", set)
			f.add(keep, drop)
			f.podControl.Err = noAnswer()
			if err := f.syncSet(t, set); err == nil {
				t.Fatal("no error")
			}
			f.podControl.Err = nil
			f.podControl.Clear()
			_ = f.client.Tracker().Add(keep)
			switch outcome {
			case "terminating":
				_ = f.client.Tracker().Add(newPod("drop", set, leaving()))
			case "unharmed":
				_ = f.client.Tracker().Add(drop)
			}
			f.clock.Step(settleDelay)
			if err := f.syncSet(t, set); err != nil {
				t.Fatal(err)
			}
			if outcome == "unharmed" {
				f.writes(t, 0, 1, 0) // tried again
			} else {
				f.writes(t, 0, 0, 0) // and not one more
			}
		})
	}
}

func TestOutcomeUnknown(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}}
	}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{noAnswer(), true},
		{fmt.Errorf("unable to delete pods: %w", noAnswer()), true},
		{fmt.Errorf("post: %w", gate.ErrFenced), false},
		{apierrors.NewTimeoutError("t", 1), true},
		{apierrors.NewServerTimeout(v1.Resource("pods"), "create", 1), true},
		{status(http.StatusInternalServerError, ""), true}, // storage
		{status(http.StatusBadGateway, metav1.StatusReasonUnknown), true},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{apierrors.NewServiceUnavailable("shutting down"), false},
		{apierrors.NewTooManyRequests("t", 1), false},
		{apierrors.NewForbidden(v1.Resource("pods"), "a", errors.New("quota")), false},
	} {
		if got := controller.OutcomeUnknown(tc.err); got != tc.want {
			t.Errorf("%v: unknown %v", tc.err, got)
		}
	}
}
