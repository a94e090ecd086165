// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/flagz"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics"
	metricsfeatures "k8s.io/component-base/metrics/features"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/pkg/features"
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
		problems = append(problems, s.nameGlobals(err)...)
	}
	c := &config.Config{
		ControllerShutdownTimeout: s.ControllerShutdownTimeout,
		Standby:                   s.Generic.Standby,
		ComponentGlobalsRegistry:  s.ComponentGlobalsRegistry,
		ClientLimitsGiven:         s.Generic.ClientLimitsGiven(),
	}
	if s.ParsedFlags != nil {
		c.Flagz = flagz.NamedFlagSetsReader{FlagSets: *s.ParsedFlags}
	}
	problems = append(problems, s.validate(allControllers, disabledByDefaultControllers, controllerAliases)...)
	problems = append(problems, s.applyTo(&c.ComponentConfig, controllerAliases)...)
	problems = append(problems, s.checkServingFiles()...)
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
	c, err := s.findAPIServer()
	if err != nil {
		return nil, err
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

// findAPIServer reads --kubeconfig and --master. Without both it uses the
// service account of the pod that this runs in, or else KUBERNETES_MASTER.
func (s *KubeControllerManagerOptions) findAPIServer() (*rest.Config, error) {
	path, master := s.Generic.ClientConnection.Kubeconfig, s.Master
	if path == "" && master == "" {
		c, err := rest.InClusterConfig()
		if err == nil {
			return c, nil
		}
		master = os.Getenv("KUBERNETES_MASTER")
		if master == "" {
			return nil, fmt.Errorf("no way to the API server: set --kubeconfig or --master, or run in a pod with a service account (%w)", err)
		}
	}
	c, err := clientcmd.BuildConfigFromFlags(master, path)
	switch {
	case err == nil:
		return c, nil
	case path != "":
		return nil, fmt.Errorf("--kubeconfig=%q: %w", path, err)
	default:
		return nil, fmt.Errorf("--master=%q: %w", master, err)
	}
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

// checkServingFiles returns what is wrong with the files that the secure port
// needs: the library would name the first, and not the flag that it is of.
func (s *KubeControllerManagerOptions) checkServingFiles() []error {
	if s.SecureServing.BindPort == 0 && s.SecureServing.Listener == nil {
		return nil
	}
	errs := join(
		checkFile("tls-cert-file", s.SecureServing.ServerCert.CertKey.CertFile),
		checkFile("tls-private-key-file", s.SecureServing.ServerCert.CertKey.KeyFile),
		checkFile("client-ca-file", s.Authentication.ClientCert.ClientCA),
		checkFile("requestheader-client-ca-file", s.Authentication.RequestHeader.ClientCAFile),
		checkFile("authentication-kubeconfig", s.Authentication.RemoteKubeConfigFile),
		checkFile("authorization-kubeconfig", s.Authorization.RemoteKubeConfigFile),
	)
	for _, pair := range s.SecureServing.SNICertKeys {
		errs = append(errs, checkFile("tls-sni-cert-key", pair.CertFile)...)
		errs = append(errs, checkFile("tls-sni-cert-key", pair.KeyFile)...)
	}
	return errs
}

// checkFile refuses files that cannot be opened. No file is fine. What is not
// a regular file is left to whoever reads it: a pipe can be opened only once.
func checkFile(flag, path string) []error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		var file *os.File
		if file, err = os.Open(path); err == nil {
			_ = file.Close() // nothing was written: nothing to lose
		}
	}
	if err == nil {
		return nil
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err // the line names the path already
	}
	return []error{invalid(flag, path, err.Error())}
}

// applyServing opens the ports and sets up who may use them.
func (s *KubeControllerManagerOptions) applyServing(c *config.Config) (err error) {
	given := s.SecureServing.Listener
	defer func() {
		if err != nil {
			closeListeners(c)
			// The library keeps the listener that it opened in the options;
			// another attempt must open a new one.
			s.SecureServing.Listener = given
		}
	}()
	err = s.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		if dir := s.SecureServing.ServerCert.CertDirectory; dir != "" {
			return fmt.Errorf("creating self-signed certificates in --cert-dir=%q: %w", dir, err)
		}
		return fmt.Errorf("creating self-signed certificates: %w", err)
	}
	if err := s.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		return fmt.Errorf("setting up --secure-port and its certificates: %w", err)
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
