// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Component names a program of the control plane. It is also the name of its binary and of its log.
type Component string

// The programs that a ControlPlane runs.
const (
	ComponentEtcd      Component = "etcd"
	ComponentAPIServer Component = "kube-apiserver"
	ComponentScheduler Component = "kube-scheduler"
	ComponentKwok      Component = "kwok"
	ComponentManager   Component = "kube-controller-manager"
)

// Defaults of Options.
const (
	DefaultServiceCIDR  = "10.96.0.0/16"
	DefaultPodCIDR      = "10.244.0.0/16"
	DefaultStartTimeout = 2 * time.Minute
	DefaultStopTimeout  = 10 * time.Second
)

// Options say what Start starts. The zero value is etcd and kube-apiserver for a test.
type Options struct {
	// Dir holds everything: data, certificates, kubeconfigs, logs. A Dir that was used before is continued, with the
	// same data and certificates. Empty: a temporary folder, which Stop removes.
	Dir string
	// Binaries are the programs. Empty paths: hack/tools/build.sh builds them or finds them in its cache.
	Binaries Binaries
	// Ports to listen on. A zero port is picked: free, and not handed to another control plane until Stop.
	Ports Ports

	// APIServerArgs are appended to kube-apiserver's flags: they win, and lists add up.
	APIServerArgs []string
	// FeatureGates of kube-apiserver, kube-scheduler not included. The manager's are the caller's business.
	FeatureGates map[string]bool

	// Scheduler also runs kube-scheduler.
	Scheduler bool
	// Kwok also runs kwok, which plays the kubelet of every Node that carries KwokNodeAnnotation. It also disables the
	// admission plugin TaintNodesByCondition, whose taint only a manager with node-lifecycle-controller would lift.
	Kwok bool
	// Nodes is the number of fake Nodes that are created when missing: node-0, node-1, … They need Kwok to be Ready.
	Nodes int

	// ServiceCIDR (default 10.96.0.0/16) and PodCIDR (default 10.244.0.0/16).
	ServiceCIDR, PodCIDR string

	// Durable makes etcd sync to disk. Default: it does not, which is several times faster and loses data only when
	// the machine itself stops.
	Durable bool
	// Detached leaves the programs running when this process ends: each is a session of its own with a pid file under
	// Dir/run, and one that is found running is taken over instead of started. Dir must be set.
	// Default: the programs die with this process, even when it is killed (on Linux).
	Detached bool

	// StartTimeout bounds each component's way to readiness; 0 is 2 minutes.
	StartTimeout time.Duration
	// StopTimeout is how long a component has after SIGTERM before it is killed; 0 is 10 seconds.
	StopTimeout time.Duration
	// Log receives one line per step. Nil: none.
	Log io.Writer
}

// Ports on 127.0.0.1. Manager is only reserved, for ManagerArgs.
type Ports struct {
	Etcd      int `json:"etcd"`
	EtcdPeer  int `json:"etcdPeer"`
	Kwok      int `json:"kwok"`
	APIServer int `json:"apiServer"`
	Scheduler int `json:"scheduler"`
	Manager   int `json:"manager"`
}

// PortsFrom returns six ports in a row from first on, in the order of the fields of Ports.
func PortsFrom(first int) Ports {
	return Ports{Etcd: first, EtcdPeer: first + 1, Kwok: first + 2, APIServer: first + 3, Scheduler: first + 4, Manager: first + 5}
}

// withDefaults returns o completed, or what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Detached && o.Dir == "" {
		errs = append(errs, errors.New("option Detached needs option Dir: it is how a later command finds the programs"))
	}
	if o.Nodes < 0 {
		errs = append(errs, fmt.Errorf("option Nodes is %d, must be 0 or more", o.Nodes))
	}
	o.ServiceCIDR = cmp.Or(o.ServiceCIDR, DefaultServiceCIDR)
	o.PodCIDR = cmp.Or(o.PodCIDR, DefaultPodCIDR)
	for field, cidr := range map[string]string{"ServiceCIDR": o.ServiceCIDR, "PodCIDR": o.PodCIDR} {
		if _, _, err := net.ParseCIDR(cidr); err != nil {
			errs = append(errs, fmt.Errorf("option %s: %w", field, err))
		}
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	o.StopTimeout = cmp.Or(o.StopTimeout, DefaultStopTimeout)
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o, errors.Join(errs...)
}

// prepareDir makes o.Dir an absolute path to an existing folder, and says whether it is ours to remove.
func (o *Options) prepareDir() (temporary bool, err error) {
	if o.Dir == "" {
		o.Dir, err = os.MkdirTemp("", "kcm-controlplane-")
		if err != nil {
			return false, fmt.Errorf("creating the control plane's folder: %w", err)
		}
		return true, nil
	}
	o.Dir, err = filepath.Abs(o.Dir)
	if err != nil {
		return false, fmt.Errorf("control plane's folder %q: %w", o.Dir, err)
	}
	// Private keys and every Secret of the cluster are beneath it.
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return false, fmt.Errorf("creating the control plane's folder: %w", err)
	}
	return false, nil
}
