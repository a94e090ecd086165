#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the programs that kcm runs beside and is compared with, each pinned by a go.mod in hack/tools, and
# prints the folder that holds them. What is in the cache already is not built again.
#
#   hack/tools/build.sh [--print] [name...]     names: see usage; none = all
#
# The cache is ${KCM_CACHE:-$HOME/.cache/kcm}: <name>-<version>-<os>-<arch>/<name>, and one folder of links per
# set of versions, which is what is printed. Concurrent runs are safe: a lock per program, and renames.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
all="etcd kube-apiserver kube-scheduler kubectl kube-controller-manager kwok"

usage() {
  echo "usage: hack/tools/build.sh [--print] [name...]"
  echo "  --print  print the folder, build nothing"
  echo "  name     any of: $all (default: all)"
}

fail() {
  echo "hack/tools/build.sh: $*" >&2
  exit 1
}

# module_of and package_of say where a program's source is pinned.
module_of() {
  case $1 in
    etcd) echo "go.etcd.io/etcd/server/v3" ;;
    kwok) echo "sigs.k8s.io/kwok" ;;
    *) echo "k8s.io/kubernetes" ;;
  esac
}

package_of() {
  case $1 in
    etcd) echo "go.etcd.io/etcd/server/v3" ;;
    kwok) echo "sigs.k8s.io/kwok/cmd/kwok" ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

folder_of() {
  case $1 in
    etcd | kwok) echo "$tools/$1" ;;
    *) echo "$tools/kubernetes" ;;
  esac
}

# pinned_version prints the version of a program's module as its go.mod requires it.
pinned_version() {
  local version
  version=$(awk -v module="$(module_of "$1")" '
    $1 == "require" && $2 == module { print $3; exit }
    $1 == module { print $2; exit }' "$(folder_of "$1")/go.mod")
  [ -n "$version" ] || fail "$(folder_of "$1")/go.mod requires no $(module_of "$1")"
  echo "$version"
}

# ldflags_of stamps upstream's version: a build from the module cache has none, and clients ask for it.
ldflags_of() {
  local version=$2 flags="-s -w" minor
  case $1 in
    etcd) ;;
    kwok) flags="$flags -X sigs.k8s.io/kwok/pkg/consts.Version=$version" ;;
    *)
      minor=${version#v*.}
      minor=${minor%%.*}
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
        flags="$flags -X $package.gitTreeState=clean"
      done
      ;;
  esac
  echo "$flags"
}

# build puts the program at $cache/<name>-<version>-<platform>/<name>, unless it is there.
build() (
  name=$1
  version=$(pinned_version "$name")
  target=$cache/$name-$version-$platform
  [ -x "$target/$name" ] && exit 0

  command -v go >/dev/null || fail "go is not in PATH, and $name $version is not in $cache: install Go"
  mkdir -p "$target"
  # Without flock (macOS) two runs may build the same program: a waste, but the rename keeps it correct.
  if command -v flock >/dev/null; then
    exec 9>"$target/.lock"
    if ! flock -n 9; then
      echo "waiting for another build of $name $version …" >&2
      flock 9
    fi
    [ -x "$target/$name" ] && exit 0
  fi

  echo "building $name $version (minutes when cold) …" >&2
  started=$SECONDS
  log=$target/build.log
  new=$target/.new.$$
  trap 'rm -f "$new"' EXIT
  if ! (cd "$(folder_of "$name")" && GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly \
    GOOS=${platform%-*} GOARCH=${platform#*-} \
    go build -trimpath -ldflags "$(ldflags_of "$name" "$version")" -o "$new" "$(package_of "$name")") >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "building $name $version failed, see $log"
  fi
  mv "$new" "$target/$name"
  echo "… $name done in $((SECONDS - started))s" >&2
)

# link puts a link to the program into the printed folder. Renamed into place: readers never see it missing.
link() {
  local target=../$1-$(pinned_version "$1")-$platform/$1
  [ "$(readlink "$folder/$1" 2>/dev/null)" = "$target" ] && return
  ln -sfn "$target" "$folder/.$1.$$"
  mv -f "$folder/.$1.$$" "$folder/$1"
}

print_only=false
names=()
for argument in "$@"; do
  case $argument in
    --print) print_only=true ;;
    -h | --help) usage && exit 0 ;;
    -*) fail "unknown flag $argument; $(usage | head -n 1)" ;;
    *)
      [[ " $all " == *" $argument "* ]] || fail "unknown program \"$argument\", allowed: $all"
      names+=("$argument")
      ;;
  esac
done
[ ${#names[@]} -gt 0 ] || read -r -a names <<<"$all"

os=$(uname -s | tr '[:upper:]' '[:lower:]')
arch=$(uname -m)
case $arch in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
esac
platform=$os-$arch

cache=${KCM_CACHE:-$HOME/.cache/kcm}
folder=$cache/bin-kubernetes-$(pinned_version kubectl)-etcd-$(pinned_version etcd)-kwok-$(pinned_version kwok)-$platform

if ! $print_only; then
  mkdir -p "$folder"
  for name in "${names[@]}"; do
    build "$name"
    link "$name"
  done
fi
echo "$folder"
