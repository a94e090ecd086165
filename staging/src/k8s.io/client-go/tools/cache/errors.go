// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
)

// ErrStreamingListUnsupported is what a Source's Watch returns for a streaming list that whatever
// stands behind it cannot give. The list is then read in pages.
var ErrStreamingListUnsupported = errors.New("streaming lists are not supported")

// IsStreamingListUnsupported says whether the error means that lists cannot be streamed.
func IsStreamingListUnsupported(err error) bool { return errors.Is(err, ErrStreamingListUnsupported) }
