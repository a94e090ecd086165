#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the commit that is checked out twice, in two clones with nothing in common, and compares all bytes: the
# binaries of all architectures and the image. Cold builds: many minutes.
#
#   hack/check-reproducible.sh [go|bazel]...      default: go
#
# go: the second clone is at another path and has a build cache of its own, which starts empty.
# bazel: the second clone is at another path and has an output base of its own, which starts empty.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::help "$@"
kcm::require_go
cd "$KCM_ROOT"

for how in "$@"; do
  case $how in
    go | bazel) ;;
    *) kcm::fail "\"$how\" is neither go nor bazel" ;;
  esac
done

# Bazel's output bases are thus in the cache, not in /tmp, which may be small.
mkdir -p "${KCM_CACHE:-$HOME/.cache/kcm}"
work=$(mktemp -d "${KCM_CACHE:-$HOME/.cache/kcm}/reproducible.XXXXXX")
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
for clone in "$work/one" "$work/another/place"; do
  git clone --quiet --shared . "$clone"
done

# build_go CLONE [variable=value...] prints the checksums of what hack/build-image.sh makes.
build_go() {
  local clone=$1
  shift
  (cd "$clone" && env "$@" hack/build-image.sh "$work/out" >&2 && sums "$work/out")
  rm -rf "$work/out"
}

# build_bazel CLONE [variable=value...] prints the checksums of what //build makes.
build_bazel() {
  local clone=$1
  shift
  (
    cd "$clone"
    env "$@" hack/bazel.sh build //build:binaries //build:image >&2
    mkdir "$work/out"
    cp -rL bazel-bin/build/binaries bazel-bin/build/image.oci bazel-bin/build/image-linux-*.tar "$work/out"
    chmod -R u+w "$work/out"
    env "$@" hack/bazel.sh shutdown
    sums "$work/out"
  )
  rm -rf "$work/out"
}

sums() {
  (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

failed=false
for how in "${@:-go}"; do
  started=$SECONDS
  build_"$how" "$work/one" >"$work/one.sums"
  case $how in
    go) build_go "$work/another/place" GOCACHE="$work/gocache" >"$work/another.sums" ;;
    bazel) build_bazel "$work/another/place" KCM_BAZEL_OUTPUT_BASE="$work/output-base" >"$work/another.sums" ;;
  esac
  if diff "$work/one.sums" "$work/another.sums"; then
    echo "ok: $how made the same $(wc -l <"$work/one.sums") files twice, in $((SECONDS - started))s:"
    cat "$work/one.sums"
  else
    echo "error: $how made other bytes the second time, see above" >&2
    failed=true
  fi
done
! $failed
