#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes a release from the commit that is checked out, the same bytes every time: docs/release.md says what is in it.
#
#   hack/release.sh VERSION      for instance v1.37.2-kcm.1; into _output/release/VERSION
#
# KCM_IMAGE         the image's name, without tag; default ghcr.io/kcm-dev/kube-controller-manager
# KCM_ALLOW_DIRTY   set to try it on a checkout with changes

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/golang.sh"
source "$KCM_ROOT/hack/lib/version.sh"
source "$KCM_ROOT/hack/lib/image.sh"
kcm::arguments 1 1 VERSION "$@"
kcm::require_go
cd "$KCM_ROOT"

kcm::version
minor="v$KCM_GIT_MAJOR.$KCM_GIT_MINOR"
number='(0|[1-9][0-9]*)'
identifiers='[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*'
[[ $1 =~ ^v$number\.$number\.$number(-$identifiers)?(\+$identifiers)?$ ]] || kcm::fail "VERSION \"$1\" is no semantic version such as $minor.0-kcm.1"
# Kubernetes' own tools compare it with the API server's.
[[ $1 == "$minor."* ]] || kcm::fail "VERSION \"$1\": the libraries are those of Kubernetes $minor, want $minor.x"
[ -n "$KCM_GIT_COMMIT" ] || kcm::fail "this is no git checkout"
if [ "$KCM_GIT_TREE_STATE" != clean ] && [ -z "${KCM_ALLOW_DIRTY:-}" ]; then
  kcm::fail "the checkout has changes (git status): commit them, or set KCM_ALLOW_DIRTY=1"
fi

export KCM_VERSION=$1
image=${KCM_IMAGE:-ghcr.io/kcm-dev/kube-controller-manager}
folder=_output/release/$KCM_VERSION
started=$SECONDS
rm -rf "$folder"
mkdir -p "$folder"

hack/build-image.sh "$folder" >"$folder/image.txt"
hack/check-image.sh "$folder/image.oci" >&2
# The tars hold the same.
rm -r "$folder/image.oci"

tag=${KCM_VERSION//+/_}
for manifest in build/manifests/*.yaml; do
  sed "s|\bIMAGE\$|$image:$tag|" "$manifest" >"$folder/$(basename "$manifest")"
done

echo "writing the SBOM …" >&2
go mod graph | go run -C build ./cmd/sbom --version "$KCM_VERSION" --commit "$KCM_GIT_COMMIT" --date "$KCM_BUILD_DATE" \
  "$KCM_ROOT/$folder"/kube-controller-manager-linux-* >"$folder/sbom.spdx.json"

(cd "$folder" && LC_ALL=C sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
echo "… release $KCM_VERSION done in $((SECONDS - started))s" >&2
echo "$folder"
