// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push writes the index and all that it refers to, and returns its name with digest. Blobs that the registry has are
// not sent again. Who may push is taken from opts.
func Push(ctx context.Context, index v1.ImageIndex, ref name.Tag, opts ...remote.Option) (string, error) {
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("reading the index: %w", err)
	}
	if err := remote.WriteIndex(ref, index, append(opts, remote.WithContext(ctx))...); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", ref, err)
	}
	return ref.Context().Digest(digest.String()).Name(), nil
}
