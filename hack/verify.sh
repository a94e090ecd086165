#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every hack/verify-*.sh and says at the end which failed.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
cd "$KCM_ROOT"

failed=()
for script in hack/verify-*.sh; do
  echo "=== $script"
  started=$SECONDS
  if "$script"; then
    echo "=== ok $((SECONDS - started))s"
  else
    failed+=("$script")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
