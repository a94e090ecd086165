#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# go vet has nothing to say, in any module.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"

failed=false
for module in $(kcm::modules); do
  (cd "$module" && go vet -tags=integration ./...) || failed=true
done
! $failed
