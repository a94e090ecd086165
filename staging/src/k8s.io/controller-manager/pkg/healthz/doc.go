// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthz serves health checks of which some are known only later: those of controllers, which are built
// after the lease is won, while the endpoints answer from the start.
package healthz
