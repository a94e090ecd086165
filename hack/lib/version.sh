#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the binaries say of their version: to be sourced, or run, which prints name=value lines.
#
# The version is that of the Kubernetes release whose libraries go.mod requires, with this checkout's commit as build
# metadata: v1.37.2+kcm.0123456789ab. Everything comes from go.mod and from the commit, its date too, so the same commit
# gives the same bytes. $KCM_VERSION, which hack/release.sh sets, is another version.

KCM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# kcm::version sets KCM_GIT_VERSION, KCM_GIT_MAJOR, KCM_GIT_MINOR, KCM_GIT_COMMIT, KCM_GIT_TREE_STATE, KCM_BUILD_DATE.
kcm::version() {
  local library
  library=$(awk '$1 == "k8s.io/component-base" { print $2; exit }' "$KCM_ROOT/go.mod") # v0.37.2
  KCM_GIT_VERSION=v1.${library#v0.}
  KCM_GIT_MAJOR=1
  KCM_GIT_MINOR=${library#v0.}
  KCM_GIT_MINOR=${KCM_GIT_MINOR%%.*}

  if ! KCM_GIT_COMMIT=$(git -C "$KCM_ROOT" rev-parse HEAD 2>/dev/null); then
    # A release's source archive.
    KCM_GIT_COMMIT=
    KCM_GIT_TREE_STATE=archive
    KCM_BUILD_DATE=1970-01-01T00:00:00Z
    KCM_GIT_VERSION+=+kcm
    return
  fi
  KCM_BUILD_DATE=$(TZ=UTC git -C "$KCM_ROOT" log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
  KCM_GIT_VERSION+=+kcm.${KCM_GIT_COMMIT:0:12}
  KCM_GIT_TREE_STATE=clean
  if [ -n "$(git -C "$KCM_ROOT" status --porcelain 2>/dev/null)" ]; then
    KCM_GIT_TREE_STATE=dirty
    KCM_GIT_VERSION+=-dirty
  fi
  # A release has a name.
  KCM_GIT_VERSION=${KCM_VERSION:-$KCM_GIT_VERSION}
}

# kcm::ldflags prints the linker flags that put the version into the two packages that are asked for it.
kcm::ldflags() {
  kcm::version
  local package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s.gitVersion=%s' "$package" "$KCM_GIT_VERSION"
    printf ' -X %s.gitMajor=%s -X %s.gitMinor=%s' "$package" "$KCM_GIT_MAJOR" "$package" "$KCM_GIT_MINOR"
    printf ' -X %s.gitCommit=%s' "$package" "$KCM_GIT_COMMIT"
    printf ' -X %s.gitTreeState=%s -X %s.buildDate=%s' "$package" "$KCM_GIT_TREE_STATE" "$package" "$KCM_BUILD_DATE"
  done
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  kcm::version
  for name in KCM_GIT_VERSION KCM_GIT_MAJOR KCM_GIT_MINOR KCM_GIT_COMMIT KCM_GIT_TREE_STATE KCM_BUILD_DATE; do
    echo "$name=${!name}"
  done
fi
