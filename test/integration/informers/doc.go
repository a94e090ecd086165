// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers tests our informers against a real API server: they converge whatever happens to
// watches, to the API server and to etcd.
package informers
