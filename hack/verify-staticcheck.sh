#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# staticcheck has nothing to say, in any module. Its version is pinned in hack/tools/lint/go.mod, its checks are chosen
# in staticcheck.conf.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"

version=$(awk '$2 == "honnef.co/go/tools" { print $3; exit }' hack/tools/lint/go.mod)
# One that was built by an older Go cannot read the packages of a newer one.
staticcheck=${KCM_CACHE:-$HOME/.cache/kcm}/staticcheck-$version-$(go env GOVERSION)/staticcheck
if [ ! -x "$staticcheck" ]; then
  echo "building staticcheck $version …" >&2
  mkdir -p "$(dirname "$staticcheck")"
  (cd hack/tools/lint && GOWORK=off go build -o "$staticcheck.$$" honnef.co/go/tools/cmd/staticcheck)
  mv "$staticcheck.$$" "$staticcheck"
fi
failed=false
for module in $(kcm::modules); do
  (cd "$module" && "$staticcheck" -tags=integration ./...) || failed=true
done
! $failed
