#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Measures upstream's kube-controller-manager and this checkout's side by side, prints a table of ratios, and writes
# _output/benchmark/result.json and result.svg. Builds what is missing. Takes long; nothing else should run meanwhile.
#
#   hack/benchmark.sh [flag...] [scenario...]       default: all scenarios, 3 rounds
#
# For instance: hack/benchmark.sh --list; hack/benchmark.sh --rounds 1 --scale 0.05 scale-up; hack/benchmark.sh --docs
# --help lists the flags. How it measures, and how to add a scenario: test/benchmark/doc.go.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"
mkdir -p _output/suites
go build -o _output/suites/benchmark ./test/cmd/benchmark
exec _output/suites/benchmark "$@"
