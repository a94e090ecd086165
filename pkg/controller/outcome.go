// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

// OutcomeUnknown says whether a write may have happened although err came back: the
// connection broke, or the server gave up waiting for its own storage. A controller that
// goes on as if it had not happened may create a second object.
func OutcomeUnknown(err error) bool {
	if err == nil || errors.Is(err, gate.ErrFenced) || utilnet.IsConnectionRefused(err) {
		return false // no error, or never sent
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer
	}
	switch status.Status().Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return true
	case metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return false // an admission plugin failed, or the server is not there: before any storage
	}
	// Errors of storage come without a reason, those of a proxy in between as they are.
	return status.Status().Code >= http.StatusInternalServerError
}
