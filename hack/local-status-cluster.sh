#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Shows what runs of the local cluster.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/localup.sh"
kcm::localup status "$@"
