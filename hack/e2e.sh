#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the end-to-end tests (test/e2e) on a cluster: the one of a kubeconfig, or a local one that is started for them
# with this checkout's manager and stopped after them.
#
#   hack/e2e.sh [--kubeconfig FILE] [--kcm BINARY] [--kcm-arg FLAG]... [--label-filter EXPRESSION]
#               [flag of go test or -ginkgo.*]...
#
#   --kubeconfig     an administrator's; say that of hack/kind-up.sh, or of make up
#   --kcm            a manager binary for the local cluster, upstream's too; default: this checkout's
#   --kcm-arg        a flag for it, such as --kcm-arg=--feature-gates=AllAlpha=true
#   --label-filter   which specs: 'deployment-controller', '!slow', 'namespace-controller || leader-election'
#
# The result is also in _output/e2e/junit.xml.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::help "$@"
kcm::require_go
# The suite is compiled as the local cluster's programs are.
kcm::share_build_cache

kubeconfig=
filter=
up_flags=()
test_flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --kubeconfig | --kcm | --kcm-arg | --label-filter)
      [ $# -ge 2 ] || kcm::fail "$1 needs a value"
      case $1 in
        --kubeconfig) kubeconfig=$2 ;;
        --kcm | --kcm-arg) up_flags+=("$1=$2") ;;
        --label-filter) filter=$2 ;;
      esac
      shift
      ;;
    --kubeconfig=*) kubeconfig=${1#*=} ;;
    --kcm=* | --kcm-arg=*) up_flags+=("$1") ;;
    --label-filter=*) filter=${1#*=} ;;
    *) test_flags+=("$1") ;;
  esac
  shift
done
if [ -n "$kubeconfig" ]; then
  [ ${#up_flags[@]} = 0 ] || kcm::fail "--kcm and --kcm-arg are for the local cluster, and --kubeconfig names another"
  [ -r "$kubeconfig" ] || kcm::fail "--kubeconfig: $kubeconfig cannot be read"
  kubeconfig=$(realpath "$kubeconfig")
fi

cd "$KCM_ROOT"
if [ -z "$kubeconfig" ]; then
  data=$(mktemp -d)
  trap 'hack/local-down-cluster.sh --data-dir "$data/cluster" --purge >/dev/null; rm -rf "$data"' EXIT
  # Beside a cluster of make up, and beside other runs of this script.
  first_port=$((20000 + RANDOM % 1000 * 6))
  hack/local-up-cluster.sh --data-dir "$data/cluster" --no-example --ports-from "$first_port" "${up_flags[@]}"
  kubeconfig=$data/cluster/admin.conf
fi

if [ ! -t 1 ]; then
  test_flags+=(-ginkgo.no-color)
fi
report=$KCM_ROOT/_output/e2e/junit.xml
mkdir -p "$(dirname "$report")"
echo "=== go test ./test/e2e"
KCM_E2E_KUBECONFIG=$kubeconfig go test -count=1 -timeout 30m ./test/e2e \
  -ginkgo.junit-report="$report" -ginkgo.label-filter="$filter" -ginkgo.show-node-events=false "${test_flags[@]}"
echo "=== JUnit: _output/e2e/junit.xml"
