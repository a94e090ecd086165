// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"
)

// RequeueAfter returns what a sync returns to be called again after d although nothing failed:
// the key's back-off is forgotten, and neither log nor metrics count a failure.
func RequeueAfter(d time.Duration) error { return &requeueAfter{after: d} }

type requeueAfter struct{ after time.Duration }

func (r *requeueAfter) Error() string { return fmt.Sprintf("sync again after %s", r.after) }

// Terminal wraps a failure that a retry cannot mend, such as a selector that does not parse. It is
// logged and recorded, and the key waits for its next event. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err: err}
}

type terminalError struct{ err error }

func (t *terminalError) Error() string { return t.err.Error() }
func (t *terminalError) Unwrap() error { return t.err }
