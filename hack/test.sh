#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests: the unit tests of every module, then those on a real control plane. Prints what it runs, go test's
# own lines, and totals. Every package is run; a failure shows in the totals and in the exit code.
#
#   hack/test.sh [unit|integration|all] [flag of go test...]       default: all
#
# For instance: hack/test.sh unit -race; hack/test.sh integration -run TestDeployment -v

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::require_go
cd "$KCM_ROOT"

what=all
case ${1:-} in
  unit | integration | all) what=$1 && shift ;;
  -h | --help)
    sed -n '/^# Runs/,/^$/{s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  -* | "") ;;
  *)
    echo "error: hack/test.sh: \"$1\" is none of unit, integration, all, nor a flag of go test" >&2
    exit 1
    ;;
esac

# Two packages at a time: an integration test has an etcd and an API server beside it.
flags=(-p 2 -timeout 15m "$@")
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=false

# run MODULE PACKAGE... runs go test in the module's folder.
run() {
  local module=$1 before=$SECONDS packages="$*"
  shift
  [ $# -gt 3 ] && packages="$# packages" || packages="$*"
  echo "=== go test ${flags[*]} $packages (in $module)"
  if ! (cd "$module" && go test "${flags[@]}" "$@") 2>&1 | tee -a "$output" | { grep -v 'no test files' || true; }; then
    failed=true
  fi
  echo "=== $((SECONDS - before))s"
}

if [ "$what" != integration ]; then
  for module in $(kcm::modules); do
    # What is under test/ starts programs.
    mapfile -t packages < <(cd "$module" && go list ./... | grep -v '^github.com/kcm-dev/kcm/test/')
    run "$module" "${packages[@]}"
  done
fi
if [ "$what" != unit ]; then
  echo "=== hack/tools/build.sh"
  hack/tools/build.sh etcd kube-apiserver kube-scheduler kubectl kwok >/dev/null
  run . ./test/...
fi

echo "=== totals after ${SECONDS}s"
grep -E '^(FAIL|---? FAIL|panic:)' "$output" | grep -v '^FAIL$' || true
passed=$(grep -cE '^ok[[:space:]]' "$output" || true)
broken=$(grep -cE '^FAIL[[:space:]]' "$output" || true)
echo "packages: $passed passed, $broken failed"
if $failed; then
  exit 1
fi
