#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks an image, by what it should hold, and by running it: its binary starts with nothing but the image's files and
# as the image's user, and answers /healthz. No container engine is needed; a root user is, for chroot.
#
#   hack/check-image.sh [LAYOUT]      default: _output/image/image.oci, of hack/build-image.sh

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/image.sh"
kcm::require_go

layout=${1:-$KCM_ROOT/_output/image/image.oci}
kcm::image check "$layout"
echo "ok: platforms, configuration, labels and files are as they should be"

if [ "$(id -u)" != 0 ] || [ "$(uname -s)" != Linux ]; then
  echo "not run: entering the image's files (chroot) needs Linux and root" >&2
  exit 0
fi

root=$(mktemp -d)
pid=
cleanup() {
  if [ -n "$pid" ]; then
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  fi
  rm -rf "$root"
}
trap cleanup EXIT
kcm::image extract --architecture "$(go env GOHOSTARCH)" "$layout" "$root/image"
chmod 755 "$root" "$root/image"

# No API server is there: the manager waits for its lease, and is alive while it does. --secure-port is free most likely.
port=$((20000 + RANDOM % 10000))
cat >"$root/kubeconfig" <<KUBECONFIG
{"apiVersion": "v1", "kind": "Config", "current-context": "none",
 "clusters": [{"name": "none", "cluster": {"server": "https://127.0.0.1:9", "insecure-skip-tls-verify": true}}],
 "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
 "users": [{"name": "none", "user": {"token": "none"}}]}
KUBECONFIG
install -m 644 "$root/kubeconfig" "$root/image/kubeconfig"
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
env -i "$chroot" --userspec=65532:65532 "$root/image" /usr/local/bin/kube-controller-manager --kubeconfig=/kubeconfig \
  --secure-port="$port" --bind-address=127.0.0.1 >"$root/log" 2>&1 &
pid=$!
for _ in $(seq 100); do
  if answer=$(curl --silent --insecure --fail "https://127.0.0.1:$port/healthz"); then
    echo "ok: the binary of the image runs as user $(awk '$1 == "Uid:" { print $2 }' "/proc/$pid/status") and answers /healthz with \"$answer\""
    exit 0
  fi
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.2
done
echo "error: the binary of the image does not answer /healthz:" >&2
tail -n 20 "$root/log" >&2
exit 1
