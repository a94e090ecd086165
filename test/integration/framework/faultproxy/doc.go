// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy puts faults between a client and a real API server.
//
// A Proxy is an HTTPS reverse proxy on loopback. Point a client at it with
// Proxy.Config and add rules while it runs: a Rule matches requests (verb,
// path, user agent, user) and delays, holds, drops or answers them, or delays
// and withholds the events of a watch. Every rule counts what it matched.
//
// Identity: the proxy ends the client's TLS session, so it cannot pass the
// client's certificate on. It asks Options.ConfigFor for credentials of the
// same user and groups and uses those, so that authorization and the audit log
// see the real user, with no impersonation in between. Bearer tokens and
// requests without credentials are passed on as they are.
//
// Concurrency: all methods may be called at any time from any goroutine. Close
// cuts what is in flight and returns when no goroutine of the proxy is left.
package faultproxy
