// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	apiserver "k8s.io/apiserver/pkg/server"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
)

// InsecureServingOptions holds the flags that serve the manager's pages in
// plain HTTP, without authentication. Upstream removed such flags in 1.24; here
// they are a help for debugging, off unless asked for, on loopback addresses
// only, and deprecated from the start.
type InsecureServingOptions struct {
	// BindAddress is a loopback address.
	BindAddress net.IP
	// BindPort is the port. 0 turns the server off.
	BindPort int
	// Listener, if set, is served on in place of BindAddress and BindPort.
	Listener net.Listener
}

// NewInsecureServingOptions returns options with the server off.
func NewInsecureServingOptions() *InsecureServingOptions {
	return &InsecureServingOptions{BindAddress: net.IPv4(127, 0, 0, 1)}
}

// AddFlags adds the flags to their section.
func (o *InsecureServingOptions) AddFlags(fs *pflag.FlagSet) {
	fs.IPVar(&o.BindAddress, "insecure-bind-address", o.BindAddress,
		"Loopback address to listen on for --insecure-port.")
	fs.IntVar(&o.BindPort, "insecure-port", o.BindPort,
		"Port to serve plain HTTP on, without authentication and authorization. 0 turns it off.")
	// Visible in --help, unlike other deprecated flags: whoever has read of
	// the port must be able to find out what it is.
	fs.Lookup("insecure-bind-address").Deprecated = "use --bind-address"
	fs.Lookup("insecure-port").Deprecated = "use --secure-port"
}

// Validate returns what is wrong with the flags.
func (o *InsecureServingOptions) Validate() []error {
	var errs []error
	if o.BindPort < 0 || o.BindPort > 65535 {
		errs = append(errs, invalid("insecure-port", o.BindPort, "must be between 0 and 65535, 0 turns it off"))
	}
	if !o.BindAddress.IsLoopback() {
		errs = append(errs, invalid("insecure-bind-address", o.BindAddress, "must be a loopback address, in 127.0.0.0/8 or ::1"))
	}
	return errs
}

// ApplyTo opens the port, unless it is off.
func (o *InsecureServingOptions) ApplyTo(info **apiserver.DeprecatedInsecureServingInfo) error {
	listener := o.Listener
	if listener == nil {
		if o.BindPort == 0 {
			return nil
		}
		address := net.JoinHostPort(o.BindAddress.String(), strconv.Itoa(o.BindPort))
		var err error
		listener, _, err = apiserveroptions.CreateListener("tcp", address, net.ListenConfig{})
		if err != nil {
			return fmt.Errorf("opening --insecure-port: %w", err)
		}
	}
	*info = &apiserver.DeprecatedInsecureServingInfo{Listener: listener, Name: componentName}
	return nil
}
