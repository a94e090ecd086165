#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Plays scenarios against upstream's manager and this checkout's, and shows what differs. Builds what is missing.
#
#   hack/differential.sh [scenario...]       default: all; a name is that of a file in test/scenarios
#
# What a scenario is: test/scenarios/doc.go. What may differ: test/differential/accepted.yaml.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::help "$@"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"

run=TestDifferential
for name in "$@"; do
  if [ ! -f "test/scenarios/$name.yaml" ]; then
    kcm::fail "there is no test/scenarios/$name.yaml"
  fi
done
if [ $# -gt 0 ]; then
  run="^TestDifferential\$/^($(IFS='|' && echo "$*"))\$"
fi
exec go test -tags=integration -count=1 -timeout=30m -v -run "$run" ./test/differential
