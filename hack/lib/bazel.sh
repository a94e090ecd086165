#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# To be sourced, after golang.sh. What scripts need to know about Gazelle, which writes the BUILD files.

# kcm::gazelle prints the path of Gazelle, built when it is missing. Its version is pinned in hack/tools/gazelle/go.mod.
kcm::gazelle() {
  local version gazelle
  version=$(awk '$2 == "github.com/bazelbuild/bazel-gazelle" { print $3; exit }' "$KCM_ROOT/hack/tools/gazelle/go.mod")
  gazelle=${KCM_CACHE:-$HOME/.cache/kcm}/gazelle-$version-$(go env GOVERSION)/gazelle
  if [ ! -x "$gazelle" ]; then
    echo "building Gazelle $version …" >&2
    mkdir -p "$(dirname "$gazelle")"
    (cd "$KCM_ROOT/hack/tools/gazelle" && GOWORK=off go build -o "$gazelle.$$" github.com/bazelbuild/bazel-gazelle/cmd/gazelle) >&2
    mv "$gazelle.$$" "$gazelle"
  fi
  echo "$gazelle"
}

# kcm::bazel_copy FOLDER copies what git knows of the checkout, or would: no build output, nothing that is ignored.
kcm::bazel_copy() {
  mkdir -p "$1"
  (cd "$KCM_ROOT" && git ls-files -z --cached --others --exclude-standard --deduplicate | while IFS= read -r -d '' file; do
    # What is deleted and not yet committed is still listed.
    [ ! -e "$file" ] || printf '%s\0' "$file"
  done | tar --create --null --files-from=- --file=-) | tar --extract --file=- --directory="$1"
}

# kcm::bazel_generate FOLDER writes the BUILD files and the macro of third-party modules in a copy of the checkout.
kcm::bazel_generate() (
  gazelle=$(kcm::gazelle)
  cd "$1"
  # Gazelle's list of standard packages is older than Go: of those that it does not know it says that they are in no
  # module, and writes no dependency, which is right.
  quiet() { grep -v '^gazelle: finding module path for import ' >&2 || true; }
  "$gazelle" update-repos -from_file=go.work -to_macro=build/bazel/go_deps.bzl%go_dependencies -prune \
    -build_file_generation=clean -build_file_proto_mode=disable_global 2> >(quiet)
  "$gazelle" update 2> >(quiet)
)

# kcm::bazel_files FOLDER prints the files that kcm::bazel_generate writes.
kcm::bazel_files() {
  (cd "$1" && find . \( -name .git -o -name _output -o -path ./hack/tools \) -prune -o -name BUILD.bazel -print | sed 's|^\./||' && echo build/bazel/go_deps.bzl) | sort
}
