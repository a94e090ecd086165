// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options is the manager's command line: what flags there are, what
// they default to, which values are allowed, and how they become a
// config.Config.
//
// Each controller has a file with a type that adds its flags, checks them and
// copies them into the v1alpha1 configuration, the one configuration struct of
// the manager. sections.go lists these types in the order of --help; a section
// carries the canonical name of its controller.
//
// Flag names, types, defaults and sections are upstream's, so that an existing
// manifest starts unchanged. Values that upstream accepts are accepted, except
// where they make the manager useless or crash later: those are refused at the
// start. Every problem of a command line is reported at once, each on a line
// that names the flag, the value and what is allowed.
//
// One default differs on purpose: without --kube-api-qps and --kube-api-burst
// there is no fixed client-side limit (see clientLimits).
package options
