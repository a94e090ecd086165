#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs Bazel: an installed bazelisk or bazel, or else one that is set up here, once, which takes some minutes
# (hack/install-bazel.sh). docs/bazel.md says more.
#
#   hack/bazel.sh build //...
#
# KCM_BAZEL                the program to run instead
# KCM_BAZEL_OUTPUT_BASE    where Bazel keeps what it has built. Bazel's own default is a folder per checkout; the one
#                          that is set up here shares a folder of $KCM_CACHE among all checkouts.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::require_go

cache=${KCM_CACHE:-$HOME/.cache/kcm}
own=$cache/bazel/bin/bazel
output_base=${KCM_BAZEL_OUTPUT_BASE:-}

if [ -n "${KCM_BAZEL:-}" ]; then
  bazel=$KCM_BAZEL
elif bazel=$(command -v bazelisk) || bazel=$(command -v bazel); then
  :
else
  bazel=$own
  if [ ! -x "$bazel" ]; then
    "$KCM_ROOT/hack/install-bazel.sh" "$cache/bazel"
  fi
  output_base=${output_base:-$cache/bazel/output-base}
fi

# Where the integration tests find what is not Bazel's: hack/tools/build.sh of this checkout, and the asset cache.
export KCM_ROOT KCM_CACHE=$cache
cd "$KCM_ROOT"
if [ -n "$output_base" ]; then
  exec "$bazel" --output_base="$output_base" "$@"
fi
exec "$bazel" "$@"
