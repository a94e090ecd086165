#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# To be sourced. What scripts need to know about Go and the modules of this checkout.

KCM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# kcm::fail MESSAGE ends the script with one line.
kcm::fail() {
  echo "error: hack/${0##*hack/}: $*" >&2
  exit 1
}

# kcm::arguments FEWEST MOST USAGE ARGUMENT... ends the script unless it was called with so many arguments, none of them
# a flag: with one line, or with what stands at the script's top when that is asked for.
kcm::arguments() {
  local fewest=$1 most=$2 usage argument
  usage="usage is hack/${0##*hack/}${3:+ $3}"
  shift 3
  kcm::help "$@"
  for argument in "$@"; do
    [[ $argument != -* ]] || kcm::fail "unknown flag \"$argument\": $usage"
  done
  [ $# -le "$most" ] || kcm::fail "\"${*:most+1:1}\" is one argument too many: $usage"
  [ $# -ge "$fewest" ] || kcm::fail "an argument is missing: $usage"
}

# kcm::help ARGUMENT... prints what stands at the script's top, and ends it, if the first argument is --help or -h.
kcm::help() {
  case ${1:-} in
    -h | --help)
      sed -n '5,/^$/{s/^#$//;s/^# //;p;}' "$0"
      exit 0
      ;;
  esac
}

# kcm::share_build_cache makes checks and tests compile as the binaries are compiled, peers included: static, without
# paths of this machine. Packages are then built once for all of them, which halves the time of a first run.
kcm::share_build_cache() {
  export CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}"
}

# kcm::require_go ends the script with one line unless Go is there and new enough for go.mod.
kcm::require_go() {
  local needed have
  needed=$(awk '$1 == "go" { print $2; exit }' "$KCM_ROOT/go.mod")
  if ! command -v go >/dev/null; then
    echo "error: go is not in PATH: install Go $needed or newer (https://go.dev/dl)" >&2
    exit 1
  fi
  # Go fails here when it is too old and may not, or cannot, fetch the toolchain that go.mod asks for.
  if ! have=$(cd "$KCM_ROOT" && go env GOVERSION 2>&1); then
    echo "error: Go $needed or newer is needed: $(echo "$have" | tail -n 1)" >&2
    exit 1
  fi
  if [ "$(printf '%s\n' "$needed" "${have#go}" | sort -V | head -n 1)" != "$needed" ]; then
    echo "error: Go $needed or newer is needed, $(command -v go) is ${have#go}: install a newer one (https://go.dev/dl)" >&2
    exit 1
  fi
}

# kcm::modules prints the folders of the product's modules, "." first: those that go.work lists.
kcm::modules() {
  (cd "$KCM_ROOT" && go list -m -f '{{.Dir}}' | sed "s|^$KCM_ROOT\$|.|; s|^$KCM_ROOT/||")
}

# kcm::source_folders prints the top folders and files of ours that hold source, relative to the root.
kcm::source_folders() {
  (cd "$KCM_ROOT" && git ls-files --cached --others --exclude-standard '*.go' '*.sh' | cut -d/ -f1 | sort -u)
}
