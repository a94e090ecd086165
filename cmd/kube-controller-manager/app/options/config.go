// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"net"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/flagz"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	metricsfeatures "k8s.io/component-base/metrics/features"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/features"
	cmapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
)

// Config checks the options and turns them into a configuration: with clients,
// with an event recorder, and with the serving ports open. The error is an
// Aggregate of all problems that the flags and the files they name have, one
// line each. On error no port is left open.
//
// The caller owns the result's listeners and event broadcaster.
func (s KubeControllerManagerOptions) Config(ctx context.Context, allControllers, disabledByDefaultControllers []string, controllerAliases map[string]string) (*config.Config, error) {
	var problems []error
	if err := s.ComponentGlobalsRegistry.SetFallback(); err != nil {
		problems = append(problems, err)
	}
	c := &config.Config{
		ControllerShutdownTimeout: s.ControllerShutdownTimeout,
		ComponentGlobalsRegistry:  s.ComponentGlobalsRegistry,
		ClientLimitsGiven:         s.Generic.ClientLimitsGiven(),
	}
	if s.ParsedFlags != nil {
		c.Flagz = flagz.NamedFlagSetsReader{FlagSets: *s.ParsedFlags}
	}
	problems = append(problems, s.validate(allControllers, disabledByDefaultControllers, controllerAliases)...)
	problems = append(problems, s.applyTo(&c.ComponentConfig, controllerAliases)...)
	kubeconfig, err := s.restConfig()
	if err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, aggregate(problems)
	}

	c.Kubeconfig = kubeconfig
	c.Client, err = clientset.NewForConfig(rest.AddUserAgent(rest.CopyConfig(kubeconfig), componentName))
	if err != nil {
		return nil, fmt.Errorf("creating the client for the API server: %w", err)
	}
	s.applyMetrics()
	if err := s.applyServing(c); err != nil {
		return nil, err
	}
	c.EventBroadcaster = record.NewBroadcaster(record.WithContext(ctx))
	c.EventRecorder = c.EventBroadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: componentName})
	return c, nil
}

// Validate returns all that is wrong with the flags, as an Aggregate. It opens
// no file.
func (s *KubeControllerManagerOptions) Validate(allControllers, disabledByDefaultControllers []string, controllerAliases map[string]string) error {
	return aggregate(s.validate(allControllers, disabledByDefaultControllers, controllerAliases))
}

// aggregate makes one error of many, each of them once: a registry that could
// not be set reports the same problem again when it is validated.
func aggregate(errs []error) error {
	flat := utilerrors.Flatten(utilerrors.NewAggregate(errs))
	if flat == nil {
		return nil
	}
	seen := sets.New[string]()
	return utilerrors.NewAggregate(slices.DeleteFunc(flat.Errors(), func(err error) bool {
		if seen.Has(err.Error()) {
			return true
		}
		seen.Insert(err.Error())
		return false
	}))
}

func (s *KubeControllerManagerOptions) validate(all, disabledByDefault []string, aliases map[string]string) []error {
	errs := join(
		s.ComponentGlobalsRegistry.Validate(),
		s.Generic.Validate(all, aliases),
		s.KubeCloudShared.Validate(),
		s.validateCoordinatedLeaderElection(),
	)
	if s.ControllerShutdownTimeout < 0 {
		errs = append(errs, invalid("controller-shutdown-timeout", s.ControllerShutdownTimeout, "must not be negative"))
	}
	for _, section := range s.sections() {
		errs = append(errs, section.options.Validate()...)
	}
	return join(errs,
		s.validateNodeCIDRs(disabledByDefault, aliases),
		s.validateServing(),
		s.Metrics.Validate(),
		s.validateLogs(),
	)
}

// validateCoordinatedLeaderElection refuses what is not built: to go on with
// plain leases would let this manager and coordinated ones lead together.
func (s *KubeControllerManagerOptions) validateCoordinatedLeaderElection() []error {
	gate := s.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if !*s.Generic.LeaderElection.LeaderElect || gate == nil || !features.EnabledIn(gate, features.CoordinatedLeaderElection) {
		return nil
	}
	return []error{fmt.Errorf("--feature-gates: %s=true is not supported by this build, set it to false or set --leader-elect=false", features.CoordinatedLeaderElection)}
}

// validateNodeCIDRs refuses ranges that the node IPAM controller could not
// start with: found out only when this manager leads, they would end it.
func (s *KubeControllerManagerOptions) validateNodeCIDRs(disabledByDefault []string, aliases map[string]string) []error {
	if !s.KubeCloudShared.AllocateNodeCIDRs {
		return nil
	}
	enabled := cmapp.IsControllerEnabled(names.NodeIpamController, sets.New(disabledByDefault...), canonicalNames(s.Generic.Controllers, aliases))
	if !enabled {
		return nil
	}
	_, _, err := NodeCIDRs(s.KubeCloudShared.ClusterCIDR, *s.NodeIPAMController.NodeIPAMControllerConfiguration)
	if err != nil {
		return []error{err}
	}
	return nil
}

func (s *KubeControllerManagerOptions) validateServing() []error {
	errs := join(
		s.SecureServing.Validate(),
		s.InsecureServing.Validate(),
		s.Authentication.Validate(),
		s.Authorization.Validate(),
	)
	pair := s.SecureServing.ServerCert.CertKey
	if pair.CertFile != "" && pair.KeyFile == "" {
		errs = append(errs, invalid("tls-cert-file", pair.CertFile, "needs --tls-private-key-file"))
	}
	if pair.KeyFile != "" && pair.CertFile == "" {
		errs = append(errs, invalid("tls-private-key-file", pair.KeyFile, "needs --tls-cert-file"))
	}
	return errs
}

func (s *KubeControllerManagerOptions) validateLogs() []error {
	gate := s.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	var errs []error
	for _, err := range logsapi.Validate(s.Logs, gate, nil) {
		errs = append(errs, err)
	}
	return errs
}

// applyTo fills the component configuration and returns what is wrong with
// files that it has to read.
func (s *KubeControllerManagerOptions) applyTo(c *componentConfig, aliases map[string]string) []error {
	s.Generic.ApplyTo(c, aliases)
	s.KubeCloudShared.ApplyTo(c)
	for _, section := range s.sections() {
		section.options.ApplyTo(c)
	}
	return s.LeaderMigration.ApplyTo(&c.Generic)
}

// restConfig says how to reach the API server.
func (s *KubeControllerManagerOptions) restConfig() (*rest.Config, error) {
	path := s.Generic.ClientConnection.Kubeconfig
	c, err := clientcmd.BuildConfigFromFlags(s.Master, path)
	if err != nil {
		if path == "" && s.Master == "" {
			return nil, fmt.Errorf("no way to the API server: set --kubeconfig or --master, or run in a pod with a service account: %w", err)
		}
		return nil, fmt.Errorf("--kubeconfig=%q --master=%q: %w", path, s.Master, err)
	}
	client := &s.Generic.ClientConnection
	c.AcceptContentTypes = client.AcceptContentTypes
	c.ContentType = client.ContentType
	c.QPS, c.Burst = s.Generic.clientLimits()
	// Compressing answers costs the API server more than the bytes on a
	// control plane's network are worth.
	c.DisableCompression = true
	return c, nil
}

// applyMetrics sets which metrics are shown: like the registry, the setting is
// of the process.
func (s *KubeControllerManagerOptions) applyMetrics() {
	gate := s.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if gate != nil && features.Knows(gate, metricsfeatures.NativeHistograms) {
		metricsfeatures.ApplyFeatureGates(gate)
	}
	m := &s.Metrics.MetricsConfiguration
	if m.ShowHiddenMetricsForVersion != "" {
		metrics.SetShowHidden()
	}
	metrics.SetDisabledMetrics(m.DisabledMetrics)
	if m.AllowListMapping != nil {
		metrics.SetLabelAllowList(m.AllowListMapping)
	} else if m.AllowListMappingManifest != "" {
		metrics.SetLabelAllowListFromManifest(m.AllowListMappingManifest)
	}
}

// applyServing opens the ports and sets up who may use them.
func (s *KubeControllerManagerOptions) applyServing(c *config.Config) (err error) {
	defer func() {
		if err != nil {
			closeListeners(c)
		}
	}()
	err = s.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("creating self-signed certificates: %w", err)
	}
	if err := s.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		return err
	}
	if err := s.InsecureServing.ApplyTo(&c.InsecureServing); err != nil {
		return err
	}
	if s.SecureServing.BindPort == 0 && s.SecureServing.Listener == nil {
		return nil
	}
	if err := s.Authentication.ApplyTo(&c.Authentication, c.SecureServing, nil); err != nil {
		return fmt.Errorf("setting up authentication of requests to --secure-port: %w", err)
	}
	if err := s.Authorization.ApplyTo(&c.Authorization); err != nil {
		return fmt.Errorf("setting up authorization of requests to --secure-port: %w", err)
	}
	return nil
}

func closeListeners(c *config.Config) {
	if c.SecureServing != nil && c.SecureServing.Listener != nil {
		_ = c.SecureServing.Listener.Close() // nothing was served: nothing to lose
	}
	if c.InsecureServing != nil {
		_ = c.InsecureServing.Listener.Close()
	}
}
