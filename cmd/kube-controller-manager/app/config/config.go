// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config holds what the manager runs on, once flags have been parsed,
// validated and turned into clients and listeners.
//
// Options → Config → CompletedConfig is a one-way street: package options
// builds a Config, Complete seals it, and app.Run takes only a sealed one.
package config

import (
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	basecompatibility "k8s.io/component-base/compatibility"
	kubectrlmgrconfigv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"
)

// Config is the manager's configuration before Complete.
type Config struct {
	// Flagz shows the parsed command line on /flagz. Nil leaves the page out.
	Flagz flagz.Reader

	// ComponentConfig is what /configz shows and what controllers are built
	// from. Generic.Controllers holds canonical names only.
	ComponentConfig kubectrlmgrconfigv1alpha1.KubeControllerManagerConfiguration

	// SecureServing is nil when --secure-port=0: the manager then serves no
	// HTTPS.
	SecureServing *apiserver.SecureServingInfo
	// InsecureServing serves the same pages in plain HTTP on a loopback
	// address. Nil unless --insecure-port is set. Deprecated.
	InsecureServing *apiserver.DeprecatedInsecureServingInfo
	// Authentication and Authorization guard SecureServing. They are empty
	// when it is nil.
	Authentication apiserver.AuthenticationInfo
	Authorization  apiserver.AuthorizationInfo

	// Client is the manager's own client, for leader election and events. Its
	// requests do not pass the gate for writes.
	Client *clientset.Clientset

	// Kubeconfig is how to reach the API server as the manager's own user.
	// QPS is negative, which means no fixed limit, unless ClientLimitsGiven.
	Kubeconfig *rest.Config
	// ClientLimitsGiven says that --kube-api-qps or --kube-api-burst was on
	// the command line: the client-side limit is then what upstream's is.
	ClientLimitsGiven bool

	// EventBroadcaster sends nothing until it is given a sink. Who runs the
	// manager shuts it down.
	EventBroadcaster record.EventBroadcaster
	// EventRecorder records as component kube-controller-manager.
	EventRecorder record.EventRecorder

	// Standby is what the manager does while another one leads. Empty is StandbyWarm.
	Standby StandbyMode

	// ControllerShutdownTimeout is how long to wait for controllers at exit.
	// Zero waits without end.
	ControllerShutdownTimeout time.Duration

	// ComponentGlobalsRegistry holds the feature gate and the effective
	// (binary, emulated, minimum compatible) version.
	ComponentGlobalsRegistry basecompatibility.ComponentGlobalsRegistry
}

// StandbyMode is a value of --leader-elect-standby.
type StandbyMode string

const (
	// StandbyWarm fills the caches while another manager leads, so that winning the lease is enough
	// to work.
	StandbyWarm StandbyMode = "warm"
	// StandbyCold watches nothing but the lease while another manager leads. It fills its caches
	// when it has won.
	StandbyCold StandbyMode = "cold"
)

// StandbyModes returns all that --leader-elect-standby may be.
func StandbyModes() []StandbyMode { return []StandbyMode{StandbyWarm, StandbyCold} }

type completedConfig struct {
	*Config
}

// CompletedConfig is a Config that Complete has sealed; only Complete makes one.
type CompletedConfig struct {
	// The embedded pointer is to a private type, so that no other package can
	// make a CompletedConfig that skipped Complete.
	*completedConfig
}

// Complete seals the configuration for app.Run.
func (c *Config) Complete() *CompletedConfig {
	return &CompletedConfig{&completedConfig{c}}
}
