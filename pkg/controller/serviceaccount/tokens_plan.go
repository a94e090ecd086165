// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"bytes"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// accountKey names one service account, not whichever has its name now.
type accountKey struct {
	namespace, name string
	uid             types.UID
}

// secretKey names one token secret, and the service account that it said it belongs to. accountUID
// is empty in a secret that is not filled yet: then any account of that name is meant.
type secretKey struct {
	namespace, name string
	uid             types.UID
	accountName     string
	accountUID      types.UID
}

func keyOfAccount(sa *v1.ServiceAccount) accountKey {
	return accountKey{namespace: sa.Namespace, name: sa.Name, uid: sa.UID}
}

// keyOfSecret returns the key of a token secret; ok is false for secrets that are none of ours: other
// types, and token secrets that name no service account.
func keyOfSecret(secret *v1.Secret) (key secretKey, ok bool) {
	account := secret.Annotations[v1.ServiceAccountNameKey]
	if secret.Type != v1.SecretTypeServiceAccountToken || account == "" {
		return secretKey{}, false
	}
	return secretKey{
		namespace:   secret.Namespace,
		name:        secret.Name,
		uid:         secret.UID,
		accountName: account,
		accountUID:  types.UID(secret.Annotations[v1.ServiceAccountUIDKey]),
	}, true
}

// belongs says whether sa is the service account that the key means.
func (k secretKey) belongs(sa *v1.ServiceAccount) bool {
	return k.accountUID == "" || k.accountUID == sa.UID
}

// gaps are the data that a token secret lacks.
type gaps struct{ ca, namespace, token bool }

func (g gaps) any() bool { return g.ca || g.namespace || g.token }

// findGaps compares a token secret with what should be in it. A namespace or token that is there is
// left as it is; the CA follows rootCA, if there is one.
func findGaps(secret *v1.Secret, rootCA []byte) gaps {
	return gaps{
		ca:        len(rootCA) > 0 && !bytes.Equal(secret.Data[v1.ServiceAccountRootCAKey], rootCA),
		namespace: len(secret.Data[v1.ServiceAccountNamespaceKey]) == 0,
		token:     len(secret.Data[v1.ServiceAccountTokenKey]) == 0,
	}
}

// fill returns a copy of secret without the gaps; token is used where it is missing.
func fill(secret *v1.Secret, sa *v1.ServiceAccount, missing gaps, rootCA []byte, token string) *v1.Secret {
	filled := secret.DeepCopy()
	if filled.Data == nil {
		filled.Data = map[string][]byte{}
	}
	if missing.ca {
		filled.Data[v1.ServiceAccountRootCAKey] = rootCA
	}
	if missing.namespace {
		filled.Data[v1.ServiceAccountNamespaceKey] = []byte(filled.Namespace)
	}
	if missing.token {
		filled.Data[v1.ServiceAccountTokenKey] = []byte(token)
	}
	metav1.SetMetaDataAnnotation(&filled.ObjectMeta, v1.ServiceAccountNameKey, sa.Name)
	metav1.SetMetaDataAnnotation(&filled.ObjectMeta, v1.ServiceAccountUIDKey, string(sa.UID))
	return filled
}

// withoutReference returns a copy of sa whose secrets list lacks the named secret; changed is false,
// and the copy nil, when it is not in the list.
func withoutReference(sa *v1.ServiceAccount, secretName string) (updated *v1.ServiceAccount, changed bool) {
	named := func(ref v1.ObjectReference) bool { return ref.Name == secretName }
	if !slices.ContainsFunc(sa.Secrets, named) {
		return nil, false
	}
	updated = sa.DeepCopy()
	updated.Secrets = slices.DeleteFunc(updated.Secrets, named)
	return updated, true
}
