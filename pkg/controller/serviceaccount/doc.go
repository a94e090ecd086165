// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount holds the controllers of service accounts.
//
// # serviceaccount-controller
//
// Watches namespaces and service accounts; creates, in each active namespace, the service accounts
// that every namespace must have ("default"). It never changes or deletes one. Deleting a managed
// service account brings back a new one with a new UID.
//
// # serviceaccount-token-controller
//
// Watches service accounts and secrets of type kubernetes.io/service-account-token ("token
// secrets"). A token secret names its service account, and once it is filled also that account's
// UID, in annotations. The controller
//
//   - fills a token secret: ca.crt (kept equal to the root CA), namespace and token, where missing;
//   - deletes a token secret whose service account is gone or is another one by now (other UID);
//   - takes a deleted token secret out of its service account's secrets list.
//
// It never creates a secret: since 1.24 tokens of pods come from the TokenRequest API, and a user who
// wants a lasting token creates the secret.
//
// Invariants: a secret is deleted with a UID precondition, and only after the API server, not just
// the cache, said that the service account is gone. A secret is filled only when the live object is
// the one that the cache showed. A failing key is given up after ten retries, until its next event.
//
// # Upstream quirks
//
//   - Both queues of the token controller are named serviceaccount_tokens_service, so that they
//     share the workqueue metrics; kept.
//   - Upstream syncs a service account for each of its events, though only a deletion has
//     consequences. Here only deletions are enqueued, and updates that are a deletion and a creation
//     in one.
//   - Upstream takes a deleted secret out of the service account's list even when a new secret of the
//     same name exists already. Here the reference then stays.
package serviceaccount
