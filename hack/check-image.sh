#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks an image, by what it should hold, and by running it: its binary starts and answers /healthz. No container
# engine is needed. With root, on Linux, the binary sees nothing but the image's files, and runs as the image's user.
#
#   hack/check-image.sh [LAYOUT]      default: _output/image/image.oci, of hack/build-image.sh
#
# KCM_ARCHITECTURES   what the image is for, sorted; default "amd64 arm64"

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/image.sh"
kcm::arguments 0 1 "[LAYOUT]" "$@"
kcm::require_go

layout=${1:-$KCM_ROOT/_output/image/image.oci}
architectures=${KCM_ARCHITECTURES:-amd64 arm64}
kcm::image check --architectures "${architectures// /,}" "$layout"
echo "ok: platforms, configuration, labels and files are as they should be"

if [ "$(uname -s)" != Linux ]; then
  echo "not run: the image's binary is one for Linux" >&2
elif [ "$(id -u)" != 0 ]; then
  echo "ok: $(kcm::image run "$layout") (as this user: chroot takes root)"
else
  echo "ok: $(kcm::image run --isolate "$layout"), alone with the image's files and as its user"
fi
