#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# To be sourced. Builds the local cluster's command and becomes it.

source "$(dirname "${BASH_SOURCE[0]}")/golang.sh"

kcm::localup() {
  kcm::require_go
  kcm::share_build_cache
  local bin=$KCM_ROOT/_output/bin/localup
  if [ ! -x "$bin" ]; then
    echo "building the local cluster's command (a minute when cold) …" >&2
  fi
  # -C: the paths that the user gives stay relative to where he is.
  if ! go build -C "$KCM_ROOT" -o "$bin" ./test/cmd/localup; then
    echo "error: building the local cluster's command failed, see above" >&2
    exit 1
  fi
  KCM_ROOT=$KCM_ROOT exec "$bin" "$@"
}
