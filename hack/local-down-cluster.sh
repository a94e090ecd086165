#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Stops what hack/local-up-cluster.sh has started. The data stays, unless --purge is given.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/localup.sh"
kcm::localup down "$@"
