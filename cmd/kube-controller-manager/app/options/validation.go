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
		s.validateGlobals(),
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

// SetGlobals sets versions and feature gates to what the flags say. Its error
// names the flag of each problem, which that of ComponentGlobalsRegistry.Set
// does not.
func (s *KubeControllerManagerOptions) SetGlobals() error {
	if err := s.ComponentGlobalsRegistry.Set(); err != nil {
		return utilerrors.NewAggregate(s.nameGlobals(err))
	}
	return nil
}

func (s *KubeControllerManagerOptions) validateGlobals() []error {
	errs := s.ComponentGlobalsRegistry.Validate()
	isOf := func(prefix string) func(error) bool {
		return func(err error) bool { return strings.HasPrefix(err.Error(), prefix) }
	}
	// The minimum follows the emulated version: what the user did not set is
	// wrong only because what they did set is.
	if slices.ContainsFunc(errs, isOf(emulationProblem)) && !s.given("min-compatibility-version") {
		errs = slices.DeleteFunc(errs, isOf(minCompatibilityProblem))
	}
	return s.nameGlobals(errs...)
}

// How the registry's problems with a version that is out of range begin.
const (
	emulationProblem        = "emulation version "
	minCompatibilityProblem = "minCompatibilityVersion version "
)

// nameGlobals puts flags before the registry's problems, which name none.
func (s *KubeControllerManagerOptions) nameGlobals(errs ...error) []error {
	flat := utilerrors.Flatten(utilerrors.NewAggregate(errs))
	if flat == nil {
		return nil
	}
	var named []error
	for _, err := range flat.Errors() {
		named = append(named, fmt.Errorf("%s: %w", s.globalsFlags(err.Error()), err))
	}
	return named
}

// globalsFlags returns the flag that a problem of the registry is about; where
// it could be several, those of them that were given.
func (s *KubeControllerManagerOptions) globalsFlags(problem string) string {
	versions := []string{"emulated-version", "min-compatibility-version"}
	for _, candidate := range []struct {
		prefix string
		flags  []string
	}{
		{emulationProblem, versions[:1]},
		{"EmulationVersion of ", versions[:1]},
		{minCompatibilityProblem, versions[1:]},
		{"MinCompatibilityVersion of ", versions[1:]},
		{"could not parse ", versions},
		{"malformed pair", versions},
		{"patch version not allowed", versions},
		{"duplicate version flag", versions},
		{"component not registered: ", append(versions, "feature-gates")},
	} {
		if !strings.HasPrefix(problem, candidate.prefix) {
			continue
		}
		flags := candidate.flags
		if given := slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !s.given(name) }); len(given) > 0 {
			flags = given
		}
		return "--" + strings.Join(flags, ", --")
	}
	return "--feature-gates"
}

// given tells whether a generic flag is on the command line.
func (s *KubeControllerManagerOptions) given(name string) bool {
	if s.ParsedFlags == nil || s.ParsedFlags.FlagSets["generic"] == nil {
		return false
	}
	return s.ParsedFlags.FlagSets["generic"].Changed(name)
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
		s.validateSecureServing(),
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

// validateSecureServing words the rule for --secure-port itself: the library
// tells users of a port that is too high that 0 is not allowed, which it is.
func (s *KubeControllerManagerOptions) validateSecureServing() []error {
	port := s.SecureServing.BindPort
	if port >= 0 && port <= 65535 {
		return s.SecureServing.Validate()
	}
	rest := *s.SecureServing
	rest.BindPort = defaultSecurePort
	return append(rest.Validate(), invalid("secure-port", port, "must be between 0 and 65535, 0 turns secure serving off"))
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
