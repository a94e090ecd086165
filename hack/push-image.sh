#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Pushes the image to a registry, for all architectures, and prints its name with digest there. Credentials are those of
# docker login or podman login.
#
#   hack/push-image.sh REGISTRY[/PATH] [LAYOUT]      default: the image of hack/build-image.sh, which is built first
#
# For instance: hack/push-image.sh localhost:5000; hack/push-image.sh ghcr.io/me _output/release/v1.37.2-kcm.1/image.oci

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/image.sh"
kcm::arguments 1 2 "REGISTRY[/PATH] [LAYOUT]" "$@"
kcm::require_go

layout=${2:-}
if [ -z "$layout" ]; then
  "$KCM_ROOT/hack/build-image.sh" >&2
  layout=$KCM_ROOT/_output/image/image.oci
fi
kcm::image push "$layout" "$1"
