#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints a script that puts an image into the static pod of a kubeadm control plane; to be run on the node, as root:
#
#   hack/lib/static-pod.sh IMAGE | docker exec -i NODE bash
#
# On the node: MANIFESTS is the folder of the static pods, default /etc/kubernetes/manifests.

set -euo pipefail

image=$1
# kubeadm's files are root's alone, and the image's own user is not root. The image is loaded, and in no registry.
patch='{"spec": {"containers": [{
  "name": "kube-controller-manager",
  "image": "'$image'",
  "imagePullPolicy": "Never",
  "securityContext": {"runAsUser": 0, "runAsGroup": 0, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}
}]}}'

printf 'patch=%q\n' "$patch"
cat <<'SCRIPT'
set -euo pipefail
manifest=${MANIFESTS:-/etc/kubernetes/manifests}/kube-controller-manager.yaml
# Not beside the manifest: the kubelet reads every file there.
new=$(mktemp)
trap 'rm -f "$new"' EXIT
kubectl patch --local --filename "$manifest" --type strategic --patch "$patch" --output yaml >"$new"
chmod --reference="$manifest" "$new"
mv "$new" "$manifest"
SCRIPT
