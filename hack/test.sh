#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests: the unit tests of every module, then those on a real control plane. Prints what it runs, go test's
# own lines, and totals. Every package is run; a failure shows in the totals and in the exit code.
#
#   hack/test.sh [unit|integration|all] [flag of go test...]       default: all
#
# The unit tests run with the race detector. For instance: hack/test.sh unit -count=1; hack/test.sh integration -race -run TestDeployment -v
#
# Tests on a control plane carry the build tag integration. A failed one leaves its logs in $KCM_TEST_KEEP, if set.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::help "$@"
kcm::require_go
cd "$KCM_ROOT"

what=all
case ${1:-} in
  unit | integration | all) what=$1 && shift ;;
  -* | "") ;;
  *) kcm::fail "\"$1\" is none of unit, integration, all, nor a flag of go test" ;;
esac

# Two packages at a time: an integration test has an etcd and an API server beside it.
flags=(-p 2 -timeout 20m "$@")
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=false

# run MODULE ARGUMENT... runs go test in the module's folder.
run() {
  local module=$1 before=$SECONDS
  shift
  echo "=== go test ${flags[*]} $* (in $module)"
  if ! (cd "$module" && go test "${flags[@]}" "$@") 2>&1 | tee -a "$output" | { grep -v 'no test files' || true; }; then
    failed=true
  fi
  echo "=== $((SECONDS - before))s"
}

if [ "$what" != integration ]; then
  race=-race
  if ! command -v "${CC:-cc}" >/dev/null; then
    echo "=== no C compiler (${CC:-cc}): the unit tests run without the race detector"
    race=
  fi
  for module in $(kcm::modules); do
    run "$module" $race ./...
  done
fi
if [ "$what" != unit ]; then
  # A controller that changes an object of a cache fails its tests. (Not in the unit tests: the detector's clock ticks
  # every second, which takes long where a test's clock jumps by years.)
  export KUBE_CACHE_MUTATION_DETECTOR=true
  # The race detector is written in C.
  [[ " $* " == *" -race "* ]] || kcm::share_build_cache
  echo "=== hack/tools/build.sh"
  hack/tools/build.sh >/dev/null
  before=$failed failed=false
  run . -tags=integration ./test/...
  # Real programs on a busy machine: a package that fails is run once more. That it failed is told in the totals, so
  # that nobody takes it for sound.
  if $failed; then
    mapfile -t again < <(awk '$1 == "FAIL" && $2 ~ /\/test\// { print $2 }' "$output" | sort -u)
    sed -i 's|^FAIL\([[:space:]].*/test/\)|failed once\1|; s|^--- FAIL|--- failed once|' "$output"
    failed=false
    run . -tags=integration -count=1 "${again[@]}"
  fi
  if $before; then
    failed=true
  fi
fi

echo "=== totals after ${SECONDS}s"
grep -E '^(FAIL|failed once|---? (FAIL|failed once)|panic:)' "$output" | grep -v '^FAIL$' || true
passed=$(grep -cE '^ok[[:space:]]' "$output" || true)
broken=$(grep -cE '^FAIL[[:space:]]' "$output" || true)
echo "packages: $passed passed, $broken failed"
if $failed; then
  exit 1
fi
