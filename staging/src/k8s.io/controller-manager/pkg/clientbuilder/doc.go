// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientbuilder hands out the clients of a controller manager's controllers.
//
// Every client goes through the manager's gate (package gate) under the controller's name. The simple builder gives
// all controllers the manager's own identity; the dynamic one gives each its own ServiceAccount in kube-system, with
// tokens that are requested when first needed and renewed before they expire, so that a controller can do no more
// than the RBAC rules of its role say.
package clientbuilder
