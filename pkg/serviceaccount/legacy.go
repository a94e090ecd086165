// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"github.com/go-jose/go-jose/v4/jwt"
	v1 "k8s.io/api/core/v1"
	apiserverserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// LegacyIssuer is the issuer of tokens that are kept in secrets.
const LegacyIssuer = "kubernetes/serviceaccount"

// legacyPrivateClaims bind a token to its service account and its secret. The names are part of the
// API server's contract.
type legacyPrivateClaims struct {
	ServiceAccountName string `json:"kubernetes.io/serviceaccount/service-account.name"`
	ServiceAccountUID  string `json:"kubernetes.io/serviceaccount/service-account.uid"`
	SecretName         string `json:"kubernetes.io/serviceaccount/secret.name"`
	Namespace          string `json:"kubernetes.io/serviceaccount/namespace"`
}

// LegacyClaims returns the public and private claims of the token in secret, for GenerateToken.
func LegacyClaims(serviceAccount v1.ServiceAccount, secret v1.Secret) (*jwt.Claims, interface{}) {
	return &jwt.Claims{
			Subject: apiserverserviceaccount.MakeUsername(serviceAccount.Namespace, serviceAccount.Name),
		}, &legacyPrivateClaims{
			Namespace:          serviceAccount.Namespace,
			ServiceAccountName: serviceAccount.Name,
			ServiceAccountUID:  string(serviceAccount.UID),
			SecretName:         secret.Name,
		}
}
