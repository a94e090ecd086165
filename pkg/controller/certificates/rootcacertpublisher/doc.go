// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootcacertpublisher runs the root-ca-certificate-publisher-controller.
//
// It watches namespaces and config maps, and keeps a ConfigMap kube-root-ca.crt in every namespace:
// ca.crt, the CA bundle with which pods verify the kube-apiserver, and nothing else in its data. The
// key is a namespace. Other labels and annotations that users add stay.
//
// A ConfigMap that was deleted, changed or emptied of its description annotation is restored, in any
// namespace that is not terminating. An update carries the resourceVersion of what the cache showed;
// a conflict is retried like any failure.
//
// Differences from upstream: a namespace that the cache knows to be terminating is left alone;
// upstream sends a request that the API server refuses.
package rootcacertpublisher
