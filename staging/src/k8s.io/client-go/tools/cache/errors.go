// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrStreamingListUnsupported is what a Source's Watch returns for a streaming list that whatever
	// stands behind it cannot be asked for. Lists are then read in pages.
	ErrStreamingListUnsupported = errors.New("streaming lists are not supported")

	// errWentBack says that a resource version is older than one that was seen before: the server has
	// another history now.
	errWentBack = errors.New("the server's resource version went back")
	// errSilent ends a watch from which nothing has come for too long.
	errSilent = errors.New("nothing has come from the watch for too long")
	// errOverdue ends a watch that the server should have ended long ago, or a request that it should
	// have answered.
	errOverdue = errors.New("the server has not answered, or not ended the watch when its time was up")
	// errStopped says that an informer has stopped, or is about to.
	errStopped = errors.New("the informer has stopped")
)

// reason is why everything is listed.
type reason string

const (
	// notNeeded: the watch can go on from where it was.
	notNeeded reason = ""
	// reasonFirst: nothing has been listed yet.
	reasonFirst reason = "first"
	// reasonExpired: the server does not know the version any more (410 Gone).
	reasonExpired reason = "expired"
	// reasonTooLarge: the server does not know the version yet, and may never.
	reasonTooLarge reason = "version too large"
	// reasonWentBack: the server has another history.
	reasonWentBack reason = "version went back"
)

// relistAfter says why everything must be listed after a watch has ended with the error.
func relistAfter(err error) reason {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return reasonExpired
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return reasonTooLarge
	case errors.Is(err, errWentBack):
		return reasonWentBack
	default:
		return notNeeded
	}
}

// ordinary says that a watch ended as watches do.
func ordinary(err error) bool { return errors.Is(err, io.EOF) }
