#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Plays scenarios with this checkout's manager and faults: killed at each write, shown the past, without events, cut off
# from the API server, each request answered wrongly; and swaps it with upstream's on a populated cluster. Builds what is
# missing. Takes some twenty minutes.
#
#   hack/chaos.sh [flag of go test...]       for instance: hack/chaos.sh -run TestKill
#
# What is played: the files of test/scenarios with chaos: true. As part of hack/test.sh only a few of them are.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::help "$@"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"
export KCM_CHAOS_ALL=1
exec go test -tags=integration -count=1 -timeout=120m -p 1 -v "$@" ./test/chaos ./test/swap
