// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate is the one way by which a controller manager's requests leave the process.
//
// Every client that the manager hands out sends its requests through the transport of one [Gate], which
//
//   - refuses writes with [ErrFenced] while its [Fence] is closed: before the lease is won, once its deadline has
//     passed, and after it is lost. Reads pass, and so do writes that store nothing (token requests, token and access
//     reviews);
//   - counts and times requests per controller, and per key through the [Scope] that a worker puts in the context;
//   - limits how many requests of one controller are under way at a time, unless the user has set a fixed rate: the
//     limit rises while the API server is quick and falls when it answers 429 or slows down. Watches are not counted.
//
// The gate never sends a request again and never keeps a body: client-go does the retrying.
package gate
