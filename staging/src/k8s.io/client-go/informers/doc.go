// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers makes informers of this module's tools/cache for the types of the Kubernetes
// API, one per type. Its Factory implements client-go's informers.SharedInformerFactory, so it can be
// passed wherever that is asked for, and the typed accessors and listers of client-go work on it:
//
//	factory := informers.NewSharedInformerFactory(client, 12*time.Hour)
//	pods := factory.Core().V1().Pods() // client-go's PodInformer
//
// Where objects come from can be chosen per resource (WithSources); without that they come from the
// client, which may be a fake one.
package informers
