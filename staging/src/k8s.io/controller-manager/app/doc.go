// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the part of a controller manager's command that does not depend on which controllers it runs: its
// HTTP surface, and what is asked before controllers start.
package app
