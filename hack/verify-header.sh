#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Every Go file and script names its owners and its license at the top.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
cd "$KCM_ROOT"

missing=$(find $(kcm::source_folders) \( -name '*.go' -o -name '*.sh' \) -type f | while read -r file; do
  head -n 3 "$file" | grep -q 'Copyright The kcm Authors\.' && head -n 4 "$file" | grep -q 'SPDX-License-Identifier: Apache-2\.0' || echo "$file"
done)
if [ -n "$missing" ]; then
  echo "the two header lines are missing in:" >&2
  echo "$missing" >&2
  exit 1
fi
