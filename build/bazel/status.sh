#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what binaries and images say of their version, a line "NAME value" each, as Bazel wants it
# (--workspace_status_command). The plain build of the image reads the same lines.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
hack/lib/version.sh | sed 's/^/STABLE_/; s/=/ /'
