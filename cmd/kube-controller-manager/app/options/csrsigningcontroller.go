// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// CSRSigningControllerOptions holds the flags of the certificate signing
// controller.
type CSRSigningControllerOptions struct {
	*v1alpha1.CSRSigningControllerConfiguration
}

// signerFlags is a signer with key files of its own: its flags are
// --cluster-signing-<infix>-cert-file and --cluster-signing-<infix>-key-file.
type signerFlags struct {
	infix  string
	signer string
	files  *v1alpha1.CSRSigningConfiguration
}

func (o *CSRSigningControllerOptions) signers() []signerFlags {
	return []signerFlags{
		{"kubelet-serving", "kubernetes.io/kubelet-serving", &o.KubeletServingSignerConfiguration},
		{"kubelet-client", "kubernetes.io/kube-apiserver-client-kubelet", &o.KubeletClientSignerConfiguration},
		{"kube-apiserver-client", "kubernetes.io/kube-apiserver-client", &o.KubeAPIServerClientSignerConfiguration},
		{"legacy-unknown", "kubernetes.io/legacy-unknown", &o.LegacyUnknownSignerConfiguration},
	}
}

// AddFlags adds the controller's flags to its section.
func (o *CSRSigningControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ClusterSigningCertFile, "cluster-signing-cert-file", o.ClusterSigningCertFile,
		"PEM file with the X.509 CA certificate that all signers issue with. Excludes the other --cluster-signing-*-file flags.")
	fs.StringVar(&o.ClusterSigningKeyFile, "cluster-signing-key-file", o.ClusterSigningKeyFile,
		"PEM file with the RSA or ECDSA private key that belongs to --cluster-signing-cert-file. Excludes the other --cluster-signing-*-file flags.")
	for _, s := range o.signers() {
		prefix := "cluster-signing-" + s.infix
		fs.StringVar(&s.files.CertFile, prefix+"-cert-file", s.files.CertFile,
			fmt.Sprintf("PEM file with the X.509 CA certificate that signer %s issues with. Excludes --cluster-signing-cert-file and --cluster-signing-key-file.", s.signer))
		fs.StringVar(&s.files.KeyFile, prefix+"-key-file", s.files.KeyFile,
			fmt.Sprintf("PEM file with the RSA or ECDSA private key that belongs to --%s-cert-file. Excludes --cluster-signing-cert-file and --cluster-signing-key-file.", prefix))
	}
	fs.DurationVar(&o.ClusterSigningDuration.Duration, "cluster-signing-duration", o.ClusterSigningDuration.Duration,
		"How long a signed certificate is valid at most. A request may ask for less in spec.expirationSeconds.")
}

// ApplyTo copies the flags into the configuration.
func (o *CSRSigningControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.CSRSigningController = *o.CSRSigningControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *CSRSigningControllerOptions) Validate() []error {
	var errs []error
	anyOwn := false
	for _, s := range o.signers() {
		cert, key := s.files.CertFile != "", s.files.KeyFile != ""
		flag := "cluster-signing-" + s.infix
		if cert && !key {
			errs = append(errs, invalid(flag+"-cert-file", s.files.CertFile, fmt.Sprintf("cannot specify cert without key, set --%s-key-file too", flag)))
		}
		if key && !cert {
			errs = append(errs, invalid(flag+"-key-file", s.files.KeyFile, fmt.Sprintf("cannot specify key without cert, set --%s-cert-file too", flag)))
		}
		anyOwn = anyOwn || cert || key
	}
	// --cluster-signing-cert-file without its key is let through: kubeadm
	// clusters with an external CA run so, and then nothing is signed.
	if anyOwn && (o.ClusterSigningCertFile != "" || o.ClusterSigningKeyFile != "") {
		errs = append(errs, errors.New("cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"))
	}
	return append(errs, checkPositive("cluster-signing-duration", o.ClusterSigningDuration)...)
}
