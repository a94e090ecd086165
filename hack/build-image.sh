#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the container image with go build and go-containerregistry alone, for all architectures, and prints its name and
# digest. `hack/bazel.sh build //build:image` does the same with Bazel.
#
#   hack/build-image.sh [FOLDER]      default: _output/image
#
# FOLDER gets
#   kube-controller-manager-linux-ARCHITECTURE    the binaries
#   image.oci                                     the image as an OCI layout: one index over the architectures
#   image-oci.tar                                 the same in one file (podman load, ctr images import, skopeo)
#   image-linux-ARCHITECTURE.tar                  for docker load and kind load image-archive
#
# KCM_IMAGE           the image's name, without tag; default ghcr.io/kcm-dev/kube-controller-manager
# KCM_ARCHITECTURES   default "amd64 arm64"

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/image.sh"
kcm::arguments 0 1 "[FOLDER]" "$@"
kcm::require_go

folder=$(realpath -m "${1:-$KCM_ROOT/_output/image}")
read -r -a architectures <<<"${KCM_ARCHITECTURES:-amd64 arm64}"

mkdir -p "$folder"
arguments=()
for architecture in "${architectures[@]}"; do
  binary=$folder/kube-controller-manager-linux-$architecture
  GOOS=linux GOARCH=$architecture "$KCM_ROOT/hack/build-manager.sh" "$binary" >/dev/null
  arguments+=(--binary "$architecture=$binary" --docker-tar "$architecture=$folder/image-linux-$architecture.tar")
done
if [ -n "${KCM_IMAGE:-}" ]; then
  arguments+=(--repository "$KCM_IMAGE")
fi
status=$folder/.status
"$KCM_ROOT/build/bazel/status.sh" >"$status"
rm -rf "$folder/image.oci"
kcm::image build --status-file "$status" --layout "$folder/image.oci" --layout-tar "$folder/image-oci.tar" "${arguments[@]}"
rm "$status"
