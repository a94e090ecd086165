#!/usr/bin/env bash
# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks an image with the program that built it: //build:image_test.

set -euo pipefail
exec "$1" check "$2"
