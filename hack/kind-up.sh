#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes a kind cluster whose controller manager is this checkout's: the image is built, loaded into the control plane's
# node, and put into kubeadm's static pod. Prints how to use the cluster, and to remove it.
#
#   hack/kind-up.sh [NAME]      default: kcm
#
# KCM_NODE_IMAGE   kind's node image, which has Kubernetes in it; default: kind's own choice
# KCM_IMAGE        the image's name, without tag; default ghcr.io/kcm-dev/kube-controller-manager

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
kcm::arguments 0 1 "[NAME]" "$@"
kcm::require_go
cd "$KCM_ROOT"

name=${1:-kcm}
[[ $name =~ ^[a-z0-9][a-z0-9.-]*$ ]] || kcm::fail "NAME \"$name\": allowed are lower-case letters, digits, \"-\" and \".\""
command -v docker >/dev/null || kcm::fail "there is no docker here, and kind needs a container engine: use make up, which needs none"
docker info >/dev/null 2>&1 || kcm::fail "docker does not reach its engine (docker info): start it, or use make up, which needs none"
command -v kind >/dev/null || kcm::fail "there is no kind here: install it (go install sigs.k8s.io/kind@latest), or use make up"

if kind get clusters 2>/dev/null | grep -qx "$name"; then
  echo "the cluster $name exists: its controller manager gets this checkout's image" >&2
else
  kind create cluster --name "$name" --wait 5m ${KCM_NODE_IMAGE:+--image "$KCM_NODE_IMAGE"}
fi

node=$(kind get nodes --name "$name" | grep -- '-control-plane$' | head -n 1)
architecture=$(docker exec "$node" uname -m)
case $architecture in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) kcm::fail "the node is of architecture $architecture, and images are for amd64 and arm64" ;;
esac

# NAME:TAG@DIGEST
image=$(KCM_ARCHITECTURES=$architecture hack/build-image.sh _output/kind)
image=${image%@*}
kind load image-archive --name "$name" "_output/kind/image-linux-$architecture.tar"
hack/lib/static-pod.sh "$image" | docker exec -i "$node" bash

echo "waiting for the controller manager …" >&2
kubectl=(docker exec "$node" kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system)
for _ in $(seq 120); do
  running=$("${kubectl[@]}" get pod "kube-controller-manager-$node" \
    --output 'jsonpath={.spec.containers[0].image} {.status.containerStatuses[0].ready}' 2>/dev/null || true)
  if [ "$running" = "$image true" ]; then
    kubeconfig=$KCM_ROOT/_output/kind/$name.kubeconfig
    kind get kubeconfig --name "$name" >"$kubeconfig"
    echo "kind's cluster $name runs $image"
    echo "  export KUBECONFIG=$kubeconfig"
    echo "  hack/e2e.sh --kubeconfig $kubeconfig"
    echo "  kind delete cluster --name $name"
    exit 0
  fi
  sleep 1
done
"${kubectl[@]}" describe pod "kube-controller-manager-$node" >&2 || true
kcm::fail "the controller manager is \"$running\" after two minutes, want \"$image true\": see above"
