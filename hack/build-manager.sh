#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds this checkout's kube-controller-manager, static and reproducible, and prints its path.
#
#   hack/build-manager.sh [output]      default: _output/bin/kube-controller-manager

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/version.sh"
kcm::arguments 0 1 "[output]" "$@"
kcm::require_go

output=${1:-$KCM_ROOT/_output/bin/kube-controller-manager}
mkdir -p "$(dirname "$output")"
started=$SECONDS
echo "building kube-controller-manager (a minute when cold) …" >&2
ldflags=$(kcm::ldflags)
# Renamed into place: one that runs keeps its file.
new=$output.new.$$
trap 'rm -f "$new"' EXIT
(cd "$KCM_ROOT" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w$ldflags" -o "$new" ./cmd/kube-controller-manager) >&2
mv "$new" "$output"
echo "… kube-controller-manager done in $((SECONDS - started))s" >&2
echo "$output"
