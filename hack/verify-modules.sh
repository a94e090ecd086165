#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# go.mod and go.sum of every module, the tools' included, are as go mod tidy leaves them.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go
cd "$KCM_ROOT"

failed=false
for module in $(kcm::modules) hack/tools/*/; do
  [ -f "$module/go.mod" ] || continue
  if ! difference=$(cd "$module" && GOWORK=off go mod tidy -diff 2>&1); then
    echo "$module: run go mod tidy:" >&2
    echo "$difference" | sed '/^go: \(found\|finding\|downloading\)/d' >&2
    failed=true
  fi
done
! $failed
