#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# To be sourced, after golang.sh. The program that makes, checks, unpacks and pushes the image.

# kcm::image runs build/cmd/image, built when its source has changed. Paths are relative to where the caller is.
kcm::image() {
  # For this machine, whatever is built with it.
  GOOS='' GOARCH='' CGO_ENABLED=0 go build -C "$KCM_ROOT/build" -o "$KCM_ROOT/_output/bin/image" ./cmd/image
  "$KCM_ROOT/_output/bin/image" "$@"
}
