// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount makes the tokens that stand in secrets of type
// kubernetes.io/service-account-token ("legacy" tokens: without expiry and audience, valid as long
// as their secret exists).
//
// The API server accepts a token whose issuer is LegacyIssuer, whose signature one of its
// --service-account-key-file keys verifies (picked by the kid header), and whose private claims name
// a service account and a secret that exist, with the token in the secret.
package serviceaccount
