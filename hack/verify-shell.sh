#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Every script parses, and passes shellcheck where that is installed.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
cd "$KCM_ROOT"

scripts=$(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
for script in $scripts; do
  bash -n "$script"
done
if command -v shellcheck >/dev/null; then
  # shellcheck disable=SC2086
  shellcheck --external-sources --source-path=SCRIPTDIR $scripts
fi
