// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// SAControllerOptions holds the flags of the controllers that give service
// accounts their tokens and namespaces their root CA bundle.
type SAControllerOptions struct {
	*v1alpha1.SAControllerConfiguration
}

// AddFlags adds the controllers' flags to their section.
func (o *SAControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ServiceAccountKeyFile, "service-account-private-key-file", o.ServiceAccountKeyFile,
		"PEM file with the RSA or ECDSA private key that signs secret-based service account tokens. Empty turns such tokens off.")
	fs.Int32Var(&o.ConcurrentSATokenSyncs, "concurrent-serviceaccount-token-syncs", o.ConcurrentSATokenSyncs,
		"How many service accounts, and how many token secrets, are worked on at the same time.")
	fs.StringVar(&o.RootCAFile, "root-ca-file", o.RootCAFile,
		"PEM file with the CA bundle that pods verify the API server with. It goes into token secrets and into every namespace's ConfigMap kube-root-ca.crt.")
}

// ApplyTo copies the flags into the configuration.
func (o *SAControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.SAController = *o.SAControllerConfiguration
}

// Validate returns what is wrong with the flags. The files are not read: a
// standby may start before they are there.
func (o *SAControllerOptions) Validate() []error {
	return checkWorkers("concurrent-serviceaccount-token-syncs", o.ConcurrentSATokenSyncs)
}
