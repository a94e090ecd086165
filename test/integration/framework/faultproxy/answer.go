// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer writes the rule's status as the API server would: a Status object with
// the reason that belongs to the code.
func answer(w http.ResponseWriter, method string, rule Rule) {
	seconds := int(rule.RetryAfter / time.Second)
	status := apierrors.NewGenericServerResponse(rule.Status, method, schema.GroupResource{}, "",
		"answered by the fault proxy", seconds, false).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rule.Status)
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
