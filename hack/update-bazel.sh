#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the BUILD files of all packages from their Go files, and build/bazel/go_deps.bzl from go.work. What was added
# to them by hand stays: data, tags, x_defs. Bazel itself is not needed.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/bazel.sh"
kcm::arguments 0 0 "" "$@"
kcm::require_go

# In a copy: files that git ignores, say those of failed tests in testdata, have no part in it.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
kcm::bazel_copy "$copy"
kcm::bazel_generate "$copy"

cd "$KCM_ROOT"
# A folder that has no Go files any more has no BUILD file: those that only Gazelle wrote are empty now.
for file in $(kcm::bazel_files "$copy"); do
  if [ -s "$file" ] && [ ! -s "$copy/$file" ]; then
    echo "removed $file"
    rm "$file"
  elif ! cmp --quiet "$file" "$copy/$file"; then
    echo "wrote $file"
    cp "$copy/$file" "$file"
  fi
done
