// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TokenGenerator signs service account tokens.
type TokenGenerator interface {
	// GenerateToken returns a signed, compact JWT with the claims of both arguments. Where they
	// name the same claim, claims wins over privateClaims, and the generator's issuer over both.
	GenerateToken(ctx context.Context, claims *jwt.Claims, privateClaims interface{}) (string, error)
}

// JWTTokenGenerator returns a generator of tokens issued by iss and signed with privateKey: an
// *rsa.PrivateKey (RS256), an *ecdsa.PrivateKey on P-256, P-384 or P-521 (ES256, ES384, ES512), or a
// jose.OpaqueSigner, which brings its own algorithm and key ID.
func JWTTokenGenerator(iss string, privateKey interface{}) (TokenGenerator, error) {
	signer, err := signerFor(privateKey)
	if err != nil {
		return nil, err
	}
	return &jwtTokenGenerator{iss: iss, signer: signer}, nil
}

type jwtTokenGenerator struct {
	iss    string
	signer jose.Signer
}

// GenerateToken implements TokenGenerator. Signing is local: the context is not used.
func (g *jwtTokenGenerator) GenerateToken(_ context.Context, claims *jwt.Claims, privateClaims interface{}) (string, error) {
	token, err := jwt.Signed(g.signer).
		Claims(privateClaims).
		Claims(claims).
		Claims(&jwt.Claims{Issuer: g.iss}).
		Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a token of issuer %s: %w", g.iss, err)
	}
	return token, nil
}

func signerFor(privateKey interface{}) (jose.Signer, error) {
	switch pk := privateKey.(type) {
	case *rsa.PrivateKey:
		return joseSigner(jose.RS256, pk, pk.Public())
	case *ecdsa.PrivateKey:
		algorithm, err := ecdsaAlgorithm(pk)
		if err != nil {
			return nil, err
		}
		return joseSigner(algorithm, pk, pk.Public())
	case jose.OpaqueSigner:
		public := pk.Public()
		if public == nil {
			return nil, errors.New("the opaque signer has no public key")
		}
		return newSigner(jose.SigningKey{
			Algorithm: jose.SignatureAlgorithm(public.Algorithm),
			Key:       jose.JSONWebKey{Algorithm: public.Algorithm, Key: pk, KeyID: public.KeyID, Use: "sig"},
		})
	default:
		return nil, fmt.Errorf("unknown private key type %T, must be *rsa.PrivateKey, *ecdsa.PrivateKey, or jose.OpaqueSigner", privateKey)
	}
}

// ecdsaAlgorithm picks the one algorithm that RFC 7518 section 3.4 allows for the key's curve.
func ecdsaAlgorithm(pk *ecdsa.PrivateKey) (jose.SignatureAlgorithm, error) {
	switch bits := pk.Params().BitSize; bits {
	case 256:
		return jose.ES256, nil
	case 384:
		return jose.ES384, nil
	case 521:
		return jose.ES512, nil
	default:
		return "", fmt.Errorf("unknown private key curve of %d bits, must be 256, 384, or 521", bits)
	}
}

func joseSigner(algorithm jose.SignatureAlgorithm, private, public any) (jose.Signer, error) {
	kid, err := keyIDFromPublicKey(public)
	if err != nil {
		return nil, err
	}
	return newSigner(jose.SigningKey{
		Algorithm: algorithm,
		Key:       jose.JSONWebKey{Algorithm: string(algorithm), Key: private, KeyID: kid, Use: "sig"},
	})
}

func newSigner(key jose.SigningKey) (jose.Signer, error) {
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing to sign with %s: %w", key.Algorithm, err)
	}
	return signer, nil
}

// keyIDFromPublicKey derives the kid header: the API server derives it in the same way from the
// public keys that it trusts, so that a verifier finds the key without trying all.
func keyIDFromPublicKey(public any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("serializing the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
