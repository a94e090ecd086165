#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Measures what holding pods costs, client-go's informers beside ours, on one real kube-apiserver. Prints the table and
# writes it to docs/informers-benchmark.md.
#
#   hack/benchmark-informers.sh [-pods=20000] [-updates=5000] [-rounds=3] [-only=VARIANT,…] [-output=FILE] [-profile=PREFIX]
#
# It takes about ten minutes, and both cores: measure on a machine that does nothing else.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::require_go
kcm::share_build_cache
cd "$KCM_ROOT"

hack/tools/build.sh >/dev/null
go build -o _output/bin/informerbench ./test/integration/informerbench
exec _output/bin/informerbench -output=docs/informers-benchmark.md "$@"
