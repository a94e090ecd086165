#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs a control plane with fake nodes and this checkout's controller manager on this machine, and leaves it running.
# docs/local-cluster.md is the manual; --help lists the flags.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/localup.sh"
kcm::localup up "$@"
