// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios holds what a cluster goes through, as text: the files *.yaml beside this one. The same file is
// played against upstream's manager and ours (test/differential) and against ours under faults (test/chaos); a bug
// report becomes a scenario first.
//
// A file is named as its scenario and has:
//
//	about: one line
//	controllers: [deployment-controller]   those that it needs beyond the ones that everything needs
//	flags: [--x=y]                          of the manager; such scenarios get control planes of their own
//	writes: [replicasets.apps]              resources (pods, deployments.apps/status, …) whose writes must come in the same order
//	chaos: true                             test/chaos plays it, too
//	steps: …
//
// A scenario has a namespace of its own, with a default service account; ${NS} stands for its name anywhere in the file,
// and cluster-scoped objects must have names that begin with it. All pods are bound to node-0, or to the one of node-0,
// node-1, node-2 that their affinity names, and become Ready, until a step says otherwise.
//
// Steps, one key each:
//
//	create: [objects]                       or one object
//	patch: {kind, name, patch: {…}}         merge patch; type: strategic or json, subresource: status
//	scale: {kind, name, replicas}
//	delete: {kind, name}                    or selector; propagation: Foreground, Background, Orphan; now: true for grace period 0
//	pods: {become: failed}                  ready, notready, waiting, succeeded, failed: the pods, now and later, that
//	                                        selector, image, count (the first so many there are now) choose
//	hold: {selector}                        terminating pods do not end; hold: {} with release: true lets go
//	wait: {kind, name, is: {status.x: 3}}   until the fields are so; "" is absent. Or gone: true. Or selector and count.
//	                                        within: 2m, where a minute is not enough
//	advance: 3s                             that much time passes
//	checkpoint: name                        the objects are compared, once both sides rest
package scenarios
