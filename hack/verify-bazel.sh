#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# The BUILD files and the macro of third-party modules are as hack/update-bazel.sh leaves them, and Bazel sees the same
# packages, libraries and tests as go list does. Bazel itself is not needed.
#
#   hack/verify-bazel.sh [--query]      --query also asks Bazel itself for its packages

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/bazel.sh"
kcm::help "$@"
kcm::require_go
cd "$KCM_ROOT"

case ${1:-} in
  "" | --query) ;;
  *) kcm::fail "\"$1\" is not --query" ;;
esac

# verify_files compares the files with those that are written anew in a copy.
verify_files() {
  local copy file stale=false
  copy=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$copy'" EXIT
  kcm::bazel_copy "$copy"
  kcm::bazel_generate "$copy"
  for file in $(kcm::bazel_files "$copy"); do
    diff --unified --new-file --label "$file" --label "$file, as it should be" "$file" "$copy/$file" || stale=true
  done
  if $stale; then
    echo "run hack/update-bazel.sh: the files above are stale" >&2
    return 1
  fi
}

# packages_of_go prints "library FOLDER" and "test FOLDER" for what go list finds in the product's modules.
packages_of_go() {
  local module
  for module in $(kcm::modules); do
    (cd "$module" && go list -tags integration -f '{{if .GoFiles}}library {{.Dir}}
{{end}}{{if or .TestGoFiles .XTestGoFiles}}test {{.Dir}}
{{end}}' ./...) | sed "s| $KCM_ROOT/| |; /^\$/d"
  done | sort
}

# packages_of_files prints the same from the BUILD files.
packages_of_files() {
  kcm::bazel_files . | while read -r file; do
    awk -v folder="$(dirname "$file")" '/^go_library\(/ { print "library " folder } /^(go|integration)_test\(/ { print "test " folder }' "$file"
  done | sort --unique
}

# packages_of_bazel prints the same as Bazel answers it.
packages_of_bazel() {
  {
    hack/bazel.sh query --noshow_progress --output=package 'kind("go_library rule", //...)' | sed 's/^/library /'
    hack/bazel.sh query --noshow_progress --output=package 'kind("go_test rule", //...)' | sed 's/^/test /'
  } | sort
}

# same_packages NAME compares a list with go list's.
same_packages() {
  local differences
  if ! differences=$(diff <(packages_of_go) -); then
    echo "go list (<) and $1 (>) see different packages:" >&2
    echo "$differences" | grep '^[<>]' >&2
    return 1
  fi
}

# tagged_tests fails unless all tests with the build tag integration are integration_tests: bazel test //... would run
# others with the unit tests, in a sandbox where nothing is that they need.
tagged_tests() {
  local folder untagged=false
  for folder in $(git grep -l '^//go:build integration$' -- '*_test.go' | xargs -r dirname | sort --unique); do
    if ! grep -q '^integration_test(' "$folder/BUILD.bazel"; then
      echo "$folder has tests on a control plane: its BUILD.bazel needs" >&2
      echo "    # gazelle:map_kind go_test integration_test //build/bazel:integration.bzl" >&2
      untagged=true
    fi
  done
  ! $untagged
}

failed=false
(verify_files) || failed=true
packages_of_files | same_packages "the BUILD files" || failed=true
tagged_tests || failed=true
if [ "${1:-}" = --query ]; then
  packages_of_bazel | same_packages "Bazel" || failed=true
fi
! $failed
