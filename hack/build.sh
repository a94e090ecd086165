#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Compiles every package of every module, and builds the binary with its version.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"

for module in $(kcm::modules); do
  (cd "$module" && go build ./...)
done
hack/build-manager.sh
