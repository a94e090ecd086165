#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks an image, and runs its binary, with the program that built it: //build:image_test.

set -euo pipefail
# The library follows no symbolic links, of which Bazel's sandbox is made.
cp -rL "$2" "$TEST_TMPDIR/layout"
"$1" check "$TEST_TMPDIR/layout"
exec "$1" run "$TEST_TMPDIR/layout"
