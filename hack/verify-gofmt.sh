#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Every Go file is as gofmt prints it.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go
cd "$KCM_ROOT"

unformatted=$(gofmt -l $(kcm::source_folders))
if [ -n "$unformatted" ]; then
  echo "not formatted, run gofmt -w on:" >&2
  echo "$unformatted" >&2
  exit 1
fi
