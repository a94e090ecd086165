// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Certificates live long: a local cluster that was left alone for a year must come up again.
const certificateLife = 10 * 365 * 24 * time.Hour

// authority is a certificate authority of the control plane.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     *ecdsa.PrivateKey
	path    string // of the certificate
	keyPath string
}

// pair is where a certificate and its key are.
type pair struct{ cert, key string }

// pki is everything under Dir/pki, named as kubeadm names it.
type pki struct {
	dir string

	ca, frontProxyCA, etcdCA authority

	apiServer, frontProxyClient               pair
	etcdServer, etcdPeer, apiServerEtcdClient pair
	scheduler                                 pair
	serviceAccountKey, serviceAccountPub      string
}

// loadPKI makes what is missing in dir and reads the rest. What exists is kept: kubeconfigs in users' hands and tokens
// in the store were signed by it.
func loadPKI(dir, serviceCIDR string) (*pki, error) {
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for certificates: %w", err)
	}
	p := &pki{
		dir:               dir,
		serviceAccountKey: filepath.Join(dir, "sa.key"),
		serviceAccountPub: filepath.Join(dir, "sa.pub"),
	}
	for name, ca := range map[string]*authority{"ca": &p.ca, "front-proxy-ca": &p.frontProxyCA, "etcd/ca": &p.etcdCA} {
		if err := p.loadAuthority(name, ca); err != nil {
			return nil, err
		}
	}

	serviceIP, err := firstIP(serviceCIDR)
	if err != nil {
		return nil, err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	serving := func(name string, dns ...string) *x509.Certificate {
		return &x509.Certificate{
			Subject:     pkix.Name{CommonName: name},
			DNSNames:    append([]string{"localhost"}, dns...),
			IPAddresses: loopback,
			// etcd also dials its own gateway with the serving certificate, hence the client use.
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
	}
	apiServer := serving("kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	apiServer.IPAddresses = append(apiServer.IPAddresses, serviceIP)

	for _, leaf := range []struct {
		name     string
		ca       *authority
		template *x509.Certificate
		at       *pair
	}{
		{"apiserver", &p.ca, apiServer, &p.apiServer},
		{"scheduler", &p.ca, serving("kube-scheduler"), &p.scheduler},
		{"front-proxy-client", &p.frontProxyCA, clientTemplate("front-proxy-client"), &p.frontProxyClient},
		{"etcd/server", &p.etcdCA, serving("etcd"), &p.etcdServer},
		{"etcd/peer", &p.etcdCA, serving("etcd"), &p.etcdPeer},
		{"apiserver-etcd-client", &p.etcdCA, clientTemplate("kube-apiserver-etcd-client"), &p.apiServerEtcdClient},
	} {
		*leaf.at = pair{cert: filepath.Join(dir, leaf.name+".crt"), key: filepath.Join(dir, leaf.name+".key")}
		if err := leaf.ca.issueFiles(leaf.template, *leaf.at); err != nil {
			return nil, err
		}
	}
	return p, p.loadServiceAccountKey()
}

// firstIP is the address of the Service "kubernetes": the first after the network's own.
func firstIP(cidr string) (net.IP, error) {
	_, network, err := net.ParseCIDR(cidr)
	if err != nil {
		return nil, fmt.Errorf("service CIDR: %w", err)
	}
	ip := append(net.IP(nil), network.IP...)
	ip[len(ip)-1]++
	return ip, nil
}

func clientTemplate(user string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (p *pki) loadAuthority(name string, ca *authority) error {
	ca.path = filepath.Join(p.dir, name+".crt")
	ca.keyPath = filepath.Join(p.dir, name+".key")
	certPEM, err := os.ReadFile(ca.path)
	if errors.Is(err, os.ErrNotExist) {
		return ca.create("kcm-" + strings.ReplaceAll(name, "/", "-"))
	}
	if err != nil {
		return fmt.Errorf("reading a certificate authority: %w", err)
	}
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return fmt.Errorf("reading %s: %w", ca.path, err)
	}
	key, err := readKey(ca.keyPath)
	if err != nil {
		return err
	}
	ca.cert, ca.certPEM, ca.key = cert, certPEM, key
	return nil
}

// create makes a self-signed authority and writes it.
func (a *authority) create(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a.key, a.cert = key, template
	der, err := a.sign(template, key)
	if err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	a.certPEM = encodeCertificate(der)
	if err := writeKey(a.keyPath, key); err != nil {
		return err
	}
	return writeFile(a.path, a.certPEM, 0o644)
}

// sign returns the template as a certificate for key, in DER.
func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// An hour back: clocks of a virtual machine and its host may differ.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(certificateLife)
	if template.KeyUsage == 0 {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	return x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
}

// issue returns a new certificate and key in PEM.
func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key of %s: %w", name, err)
	}
	der, err := a.sign(template, key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	keyPEM, err = encodeKey(key)
	return encodeCertificate(der), keyPEM, err
}

// issueFiles writes a certificate and its key, unless a good one is there.
func (a *authority) issueFiles(template *x509.Certificate, at pair) error {
	if a.isGood(template, at) {
		return nil
	}
	certPEM, keyPEM, err := a.issue(template)
	if err != nil {
		return err
	}
	if err := writeFile(at.key, keyPEM, 0o600); err != nil {
		return err
	}
	return writeFile(at.cert, certPEM, 0o644)
}

// isGood reports whether the files hold a certificate of this authority with the template's addresses, for a month yet.
func (a *authority) isGood(template *x509.Certificate, at pair) bool {
	certPEM, err := os.ReadFile(at.cert)
	if err != nil {
		return false
	}
	cert, err := parseCertificate(certPEM)
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil || time.Until(cert.NotAfter) < 30*24*time.Hour {
		return false
	}
	for _, ip := range template.IPAddresses {
		if cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	key, err := readKey(at.key)
	return err == nil && key.PublicKey.Equal(cert.PublicKey)
}

// loadServiceAccountKey makes the key pair that signs the tokens of service accounts, unless it is there.
func (p *pki) loadServiceAccountKey() error {
	key, err := readKey(p.serviceAccountKey)
	if errors.Is(err, os.ErrNotExist) {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return fmt.Errorf("creating the service account key: %w", err)
		}
		err = writeKey(p.serviceAccountKey, key)
	}
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the service account key: %w", err)
	}
	return writeFile(p.serviceAccountPub, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM block in it")
	}
	return x509.ParseCertificate(block.Bytes)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	data, err := encodeKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, data, 0o600)
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("reading %s: no PEM block in it", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return key, nil
}

// writeFile replaces the file at once: a reader, and a start after a crash, sees the old or the new content.
func writeFile(path string, data []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
