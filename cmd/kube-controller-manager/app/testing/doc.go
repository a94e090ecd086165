// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testing starts the whole controller manager inside a test: with the flags of the command
// line, on a free port, until the test ends it. Several can run at a time.
package testing
