#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks an image with the program that built it: //build:image_test.

set -euo pipefail
# The library follows no symbolic links, of which Bazel's sandbox is made.
cp -rL "$2" "$TEST_TMPDIR/layout"
exec "$1" check "$TEST_TMPDIR/layout"
