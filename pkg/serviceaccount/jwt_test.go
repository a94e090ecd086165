// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fixedPublicKey's ID was computed with openssl, so that the test does not repeat the code:
// openssl ec -in key.pem -pubout -outform DER | openssl dgst -sha256 -binary | basenc --base64url
const fixedPublicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEolm2UVv8i/xxReBBFmNLhl2l0Lnz
gG/e39w/2PyGtl9r5jop4wPWpz8HLig0iwX8NFE2vwegPfzq13DuISXaNw==
-----END PUBLIC KEY-----
`

const fixedPublicKeyID = "3F8vQMeQKWy6lQ0_lfmy2AL-070zQo-IsjhhFvDZvVU"

func newECKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSAKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func testAccount() (v1.ServiceAccount, v1.Secret) {
	return v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "builder", UID: "1234"}},
		v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "builder-token", UID: "5678"}}
}

func TestGenerateToken(t *testing.T) {
	rsaKey := newRSAKey(t)
	p256, p384, p521 := newECKey(t, elliptic.P256()), newECKey(t, elliptic.P384()), newECKey(t, elliptic.P521())
	tests := map[string]struct {
		private, public any
		algorithm       jose.SignatureAlgorithm
	}{
		"RSA":         {rsaKey, rsaKey.Public(), jose.RS256},
		"ECDSA P-256": {p256, p256.Public(), jose.ES256},
		"ECDSA P-384": {p384, p384.Public(), jose.ES384},
		"ECDSA P-521": {p521, p521.Public(), jose.ES512},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			generator, err := JWTTokenGenerator(LegacyIssuer, tc.private)
			if err != nil {
				t.Fatal(err)
			}
			claims, private := LegacyClaims(testAccount())
			token, err := generator.GenerateToken(t.Context(), claims, private)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{tc.algorithm})
			if err != nil {
				t.Fatalf("token is not signed with %s: %v", tc.algorithm, err)
			}
			var got map[string]any
			if err := parsed.Claims(tc.public, &got); err != nil {
				t.Fatalf("signature does not verify: %v", err)
			}
			want := map[string]any{
				"iss":                                    "kubernetes/serviceaccount",
				"sub":                                    "system:serviceaccount:prod:builder",
				"kubernetes.io/serviceaccount/namespace": "prod",
				"kubernetes.io/serviceaccount/secret.name":          "builder-token",
				"kubernetes.io/serviceaccount/service-account.name": "builder",
				"kubernetes.io/serviceaccount/service-account.uid":  "1234",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			der, err := x509.MarshalPKIXPublicKey(tc.public)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(der)
			if want, got := base64.RawURLEncoding.EncodeToString(sum[:]), parsed.Headers[0].KeyID; got != want {
				t.Errorf("kid %q, want %q", got, want)
			}
		})
	}
}

func TestKeyIDAgreesWithOpenSSL(t *testing.T) {
	block, _ := pem.Decode([]byte(fixedPublicKey))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keyIDFromPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if got != fixedPublicKeyID {
		t.Errorf("key ID %q, want %q", got, fixedPublicKeyID)
	}
}

func TestIssuerAndPublicClaimsWin(t *testing.T) {
	key := newECKey(t, elliptic.P256())
	generator, err := JWTTokenGenerator("right", key)
	if err != nil {
		t.Fatal(err)
	}
	token, err := generator.GenerateToken(t.Context(),
		&jwt.Claims{Issuer: "wrong", Subject: "public"},
		map[string]any{"iss": "wrong too", "sub": "private", "extra": "kept"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := parsed.Claims(key.Public(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"iss": "right", "sub": "public", "extra": "kept"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// opaque signs with a key in the process as a signer outside would: the private key is not exposed.
type opaque struct {
	key    *ecdsa.PrivateKey
	public *jose.JSONWebKey
}

func (o opaque) Public() *jose.JSONWebKey        { return o.public }
func (o opaque) Algs() []jose.SignatureAlgorithm { return []jose.SignatureAlgorithm{jose.ES256} }
func (o opaque) SignPayload(payload []byte, _ jose.SignatureAlgorithm) ([]byte, error) {
	sum := sha256.Sum256(payload)
	r, s, err := ecdsa.Sign(rand.Reader, o.key, sum[:])
	if err != nil {
		return nil, err
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
}

func TestOpaqueSigner(t *testing.T) {
	key := newECKey(t, elliptic.P256())
	generator, err := JWTTokenGenerator("me", opaque{key: key, public: &jose.JSONWebKey{
		Key: key.Public(), KeyID: "outside", Algorithm: string(jose.ES256), Use: "sig",
	}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := generator.GenerateToken(t.Context(), &jwt.Claims{Subject: "s"}, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Claims(key.Public(), &jwt.Claims{}); err != nil {
		t.Errorf("signature does not verify: %v", err)
	}
	if got := parsed.Headers[0].KeyID; got != "outside" {
		t.Errorf("kid %q, want the signer's own", got)
	}
}

func TestUnusableKeys(t *testing.T) {
	tests := map[string]struct {
		key  any
		want string
	}{
		"no key":                         {nil, "unknown private key type <nil>"},
		"a public key":                   {newRSAKey(t).Public(), "unknown private key type *rsa.PublicKey"},
		"bytes":                          {[]byte("x"), "must be *rsa.PrivateKey, *ecdsa.PrivateKey, or jose.OpaqueSigner"},
		"a curve that JWTs do not have":  {newECKey(t, elliptic.P224()), "unknown private key curve of 224 bits, must be 256, 384, or 521"},
		"an opaque signer without a key": {opaque{}, "the opaque signer has no public key"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := JWTTokenGenerator(LegacyIssuer, tc.key)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
