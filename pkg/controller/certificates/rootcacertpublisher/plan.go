// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcacertpublisher

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RootCACertConfigMapName is the ConfigMap that pods mount.
	RootCACertConfigMapName = "kube-root-ca.crt"
	// DescriptionAnnotation tells a reader what the ConfigMap is for.
	DescriptionAnnotation = "kubernetes.io/description"
	// Description is the annotation's value.
	Description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

func wantedData(rootCA []byte) map[string]string {
	return map[string]string{"ca.crt": string(rootCA)}
}

// newConfigMap returns the ConfigMap for a namespace that has none.
func newConfigMap(namespace string, rootCA []byte) *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        RootCACertConfigMapName,
			Annotations: map[string]string{DescriptionAnnotation: Description},
		},
		Data: wantedData(rootCA),
	}
}

// repair returns a copy of current as it should be, or nil when it is as it should be. A description
// that differs from ours is a user's, or of another release, and stays: two managers of different
// releases would otherwise fight over it.
func repair(current *v1.ConfigMap, rootCA []byte) *v1.ConfigMap {
	data := wantedData(rootCA)
	described := current.Annotations[DescriptionAnnotation] != ""
	if described && maps.Equal(current.Data, data) {
		return nil
	}
	repaired := current.DeepCopy()
	repaired.Data = data
	if !described {
		metav1.SetMetaDataAnnotation(&repaired.ObjectMeta, DescriptionAnnotation, Description)
	}
	return repaired
}
