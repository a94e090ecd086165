#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Puts Bazel into a folder, on a Debian machine that reaches Debian's packages but not Bazel's downloads: containers of
# a closed network, CI. Everybody else installs Bazelisk, and hack/bazel.sh takes it.
#
#   hack/install-bazel.sh FOLDER      then run FOLDER/bin/bazel
#
# Debian testing packages Bazel 7 (bazel-bootstrap), built against a newer libc than stable has. So it goes into a root
# file system of its own, FOLDER/rootfs, and FOLDER/bin/bazel enters that: the machine's own packages stay as they are,
# but for mmdebstrap, which is installed when it is missing. To remove it all, remove the folder.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 1 1 FOLDER "$@"
folder=$(realpath -m "$1")
rootfs=$folder/rootfs
suite=${KCM_BAZEL_SUITE:-forky}
want=$(cat "$KCM_ROOT/.bazelversion")

# wrapper prints the program that enters the root file system.
wrapper() {
  cat <<EOF2
#!/bin/bash
# Written by hack/install-bazel.sh.
set -eu
export KCM_BAZEL_ROOTFS=$(printf '%q' "$rootfs")
EOF2
  cat <<'EOF2'
# In a mount namespace of its own: this machine's folders inside the root file system, then pivot_root, since chroot
# would rule out Bazel's sandbox (no user namespaces in a chroot).
exec unshare --mount --propagation private bash -eu -c '
  root=$KCM_BAZEL_ROOTFS
  mount --bind "$root" "$root"
  for dir in /*; do
    case $dir in /bin | /boot | /etc | /lib* | /lost+found | /sbin | /usr | /var) continue ;; esac
    if [ -d "$dir" ] && [ ! -L "$dir" ]; then
      mkdir -p "$root$dir"
      mount --rbind "$dir" "$root$dir"
    fi
  done
  mkdir -p "$root/var/tmp"
  mount --bind /var/tmp "$root/var/tmp"
  mount --bind /usr/local "$root/usr/local"
  mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
  for file in group hosts passwd resolv.conf; do
    if [ -e "/etc/$file" ]; then mount --bind "/etc/$file" "$root/etc/$file"; fi
  done
  here=$PWD
  cd "$root"
  mkdir -p .host
  pivot_root . .host
  umount -l /.host
  cd "$here"
  exec /usr/bin/bazel "$@"' bazel "$@"
EOF2
}

# install_rootfs makes the root file system, beside its place first: what is there is complete.
install_rootfs() {
  local new=$rootfs.new mirror options
  # The mirror that this machine's own apt uses, and how it reaches it.
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/*$' | head -n 1)
  [ -n "$mirror" ] || kcm::fail "apt knows no Debian mirror: install Bazelisk instead (https://github.com/bazelbuild/bazelisk)"
  if ! command -v mmdebstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap
  fi
  options=$folder/apt-options
  apt-config dump | grep -E '^Acquire::(Check-|https?::Proxy|Retries)' >"$options" || true
  rm -rf --one-file-system "$new"
  mmdebstrap --quiet --mode=root --variant=apt \
    --include=bazel-bootstrap,ca-certificates,git,mount \
    --aptopt="$options" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$suite" "$new" "deb $mirror $suite main"
  # WORKSPACE mode looks these repositories up by name; Debian ships their sources.
  cat >>"$new/etc/bazel/bazelrc" <<'EOF2'

common --override_repository=bazel_skylib=/usr/share/bazel/tools/skylib
common --override_repository=platforms=/usr/share/bazel/tools/platforms
common --override_repository=rules_cc=/usr/share/bazel/rules/cc
common --override_repository=rules_java=/usr/share/bazel/rules/java
common --override_repository=rules_proto=/usr/share/bazel/rules/proto
common --override_repository=rules_python=/usr/share/bazel/rules/python
EOF2
  # Options that only warn, or that keep every sandbox on disk.
  sed -i -e '/--host_javabase/d' -e '/--sandbox_debug/d' "$new/etc/bazel/bazelrc"
  mv "$new" "$rootfs"
}

if [ ! -x "$rootfs/usr/bin/bazel" ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    kcm::fail "no bazelisk and no bazel in PATH: install Bazelisk (https://github.com/bazelbuild/bazelisk)"
  fi
  mkdir -p "$folder"
  # One at a time; the second finds the first one's work.
  exec 9>"$folder/.lock"
  flock 9
fi
if [ ! -x "$rootfs/usr/bin/bazel" ]; then
  echo "setting up Bazel $want in $folder, once: 660 MB to download, some minutes …" >&2
  started=$SECONDS
  log=$folder/install.log
  # Not as a condition: bash would go on after errors in it.
  set +e
  (
    set -e
    install_rootfs
  ) >"$log" 2>&1
  status=$?
  set -e
  if [ $status != 0 ]; then
    tail -n 5 "$log" >&2
    kcm::fail "setting up Bazel failed, see $log; or install Bazelisk (https://github.com/bazelbuild/bazelisk)"
  fi
  echo "… Bazel done in $((SECONDS - started))s" >&2
fi

mkdir -p "$folder/bin"
wrapper >"$folder/bin/.bazel.$$"
chmod 755 "$folder/bin/.bazel.$$"
mv "$folder/bin/.bazel.$$" "$folder/bin/bazel"
if ! got=$("$folder/bin/bazel" --version); then
  kcm::fail "Bazel in $rootfs does not start: mounting needs a privileged container"
fi
if [ "$got" != "bazel $want" ]; then
  echo "warning: Debian's $suite has $got, and .bazelversion says $want" >&2
fi
