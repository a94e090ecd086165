// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/features"
	cmapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
)

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
		nameFlags(s.Metrics.Validate()),
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
	if s.SecureServing.BindPort == 0 && s.SecureServing.Listener == nil {
		return errs
	}
	pair := s.SecureServing.ServerCert.CertKey
	if pair.CertFile != "" && pair.KeyFile == "" {
		errs = append(errs, invalid("tls-cert-file", pair.CertFile, "needs --tls-private-key-file"))
	}
	if pair.KeyFile != "" && pair.CertFile == "" {
		errs = append(errs, invalid("tls-private-key-file", pair.KeyFile, "needs --tls-cert-file"))
	}
	return append(errs, s.validateTLS()...)
}

// validateTLS checks what the library would find out only when the port is
// open.
func (s *KubeControllerManagerOptions) validateTLS() []error {
	var errs []error
	if _, err := cliflag.TLSVersion(s.SecureServing.MinTLSVersion); err != nil {
		errs = append(errs, invalid("tls-min-version", s.SecureServing.MinTLSVersion,
			"must be one of "+strings.Join(cliflag.TLSPossibleVersions(), ", ")))
	}
	if _, err := cliflag.TLSCipherSuites(s.SecureServing.CipherSuites); err != nil {
		errs = append(errs, invalid("tls-cipher-suites", s.SecureServing.CipherSuites, err.Error()))
	}
	if _, err := cliflag.TLSCurvePreferences(s.SecureServing.CurvePreferences); err != nil {
		errs = append(errs, invalid("tls-curve-preferences", s.SecureServing.CurvePreferences, err.Error()))
	}
	return errs
}

func (s *KubeControllerManagerOptions) validateLogs() []error {
	gate := s.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	var errs []error
	for _, err := range logsapi.Validate(s.Logs, gate, nil) {
		errs = append(errs, err)
	}
	return nameFlags(errs)
}

// fieldFlags says which flag sets a field that a library's validation names.
var fieldFlags = map[string]string{
	"format":                              "logging-format",
	"flushFrequency":                      "log-flush-frequency",
	"verbosity":                           "v",
	"vmodule":                             "vmodule",
	"options.json.infoBufferSize":         "log-json-info-buffer-size",
	"options.json.splitStream":            "log-json-split-stream",
	"options.text.infoBufferSize":         "log-text-info-buffer-size",
	"options.text.splitStream":            "log-text-split-stream",
	"metrics.showHiddenMetricsForVersion": "show-hidden-metrics-for-version",
	"metrics.disabledMetrics":             "disabled-metrics",
	"metrics.allowListMapping":            "allow-metric-labels",
}

// nameFlags puts flags in the place of the fields that errors name: users know
// no others.
func nameFlags(errs []error) []error {
	for i, err := range errs {
		var fieldError *field.Error
		if !errors.As(err, &fieldError) {
			continue
		}
		if flag, ok := fieldFlags[fieldError.Field]; ok {
			errs[i] = fmt.Errorf("--%s: %s", flag, fieldError.ErrorBody())
		}
	}
	return errs
}
