// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/pkg/features"
)

const (
	// componentName is the manager's name in user agents, events, its lease
	// and the files of --cert-dir.
	componentName = "kube-controller-manager"

	// defaultSecurePort is the well-known port of a kube-controller-manager.
	defaultSecurePort = 10257

	// defaultShutdownTimeout is how long controllers have to stop at exit.
	defaultShutdownTimeout = 10 * time.Second
)

// KubeControllerManagerOptions is the command line of the manager.
// NewKubeControllerManagerOptions makes one with all defaults; Flags binds it
// to flags; Config checks it and turns it into a configuration.
type KubeControllerManagerOptions struct {
	Generic         *GenericOptions
	KubeCloudShared *KubeCloudSharedOptions
	LeaderMigration *LeaderMigrationOptions

	SecureServing   *apiserveroptions.SecureServingOptions
	InsecureServing *InsecureServingOptions
	Authentication  *apiserveroptions.DelegatingAuthenticationOptions
	Authorization   *apiserveroptions.DelegatingAuthorizationOptions

	AttachDetachController                    *AttachDetachControllerOptions
	CSRSigningController                      *CSRSigningControllerOptions
	DaemonSetController                       *DaemonSetControllerOptions
	DeploymentController                      *DeploymentControllerOptions
	DeviceTaintEvictionController             *DeviceTaintEvictionControllerOptions
	DisruptionController                      *DisruptionControllerOptions
	StatefulSetController                     *StatefulSetControllerOptions
	EndpointController                        *EndpointControllerOptions
	EndpointSliceController                   *EndpointSliceControllerOptions
	EndpointSliceMirroringController          *EndpointSliceMirroringControllerOptions
	EphemeralVolumeController                 *EphemeralVolumeControllerOptions
	GarbageCollectorController                *GarbageCollectorControllerOptions
	HPAController                             *HPAControllerOptions
	JobController                             *JobControllerOptions
	CronJobController                         *CronJobControllerOptions
	LegacySATokenCleaner                      *LegacySATokenCleanerOptions
	NamespaceController                       *NamespaceControllerOptions
	NodeIPAMController                        *NodeIPAMControllerOptions
	NodeLifecycleController                   *NodeLifecycleControllerOptions
	PersistentVolumeBinderController          *PersistentVolumeBinderControllerOptions
	PodGCController                           *PodGCControllerOptions
	ReplicaSetController                      *ReplicaSetControllerOptions
	ReplicationController                     *ReplicationControllerOptions
	ResourceClaimController                   *ResourceClaimControllerOptions
	ResourceQuotaController                   *ResourceQuotaControllerOptions
	SAController                              *SAControllerOptions
	TTLAfterFinishedController                *TTLAfterFinishedControllerOptions
	ValidatingAdmissionPolicyStatusController *ValidatingAdmissionPolicyStatusControllerOptions

	Metrics *metrics.Options
	Logs    *logs.Options

	// Master is the API server's URL. It overrides the kubeconfig file's.
	Master string
	// ControllerShutdownTimeout is how long controllers have to stop at exit.
	// Zero waits without end.
	ControllerShutdownTimeout time.Duration

	// ComponentGlobalsRegistry holds feature gates and versions. Call its Set
	// between parsing and Config; Config calls it where that was forgotten.
	ComponentGlobalsRegistry basecompatibility.ComponentGlobalsRegistry

	// ParsedFlags is what /flagz shows. Flags sets it to the sets it returns.
	ParsedFlags *cliflag.NamedFlagSets
}

// NewKubeControllerManagerOptions returns the options of a manager without
// flags. It registers the feature gates, and gates and versions under the
// component "kube", unless the process has done so before.
func NewKubeControllerManagerOptions() (*KubeControllerManagerOptions, error) {
	if err := features.Register(); err != nil {
		return nil, fmt.Errorf("registering feature gates: %w", err)
	}
	registry := compatibility.DefaultComponentGlobalsRegistry
	registry.ComponentGlobalsOrRegister(basecompatibility.DefaultKubeComponent,
		compatibility.DefaultBuildEffectiveVersion(), utilfeature.DefaultMutableFeatureGate)

	c := NewDefaultComponentConfig()
	s := &KubeControllerManagerOptions{
		Generic:         &GenericOptions{GenericControllerManagerConfiguration: &c.Generic, Standby: config.StandbyWarm},
		KubeCloudShared: &KubeCloudSharedOptions{KubeCloudSharedConfiguration: &c.KubeCloudShared},
		LeaderMigration: &LeaderMigrationOptions{},

		SecureServing:   apiserveroptions.NewSecureServingOptions(),
		InsecureServing: NewInsecureServingOptions(),
		Authentication:  apiserveroptions.NewDelegatingAuthenticationOptions(),
		Authorization:   apiserveroptions.NewDelegatingAuthorizationOptions(),

		AttachDetachController:                    &AttachDetachControllerOptions{&c.AttachDetachController},
		CSRSigningController:                      &CSRSigningControllerOptions{&c.CSRSigningController},
		DaemonSetController:                       &DaemonSetControllerOptions{&c.DaemonSetController},
		DeploymentController:                      &DeploymentControllerOptions{&c.DeploymentController},
		DeviceTaintEvictionController:             &DeviceTaintEvictionControllerOptions{&c.DeviceTaintEvictionController},
		DisruptionController:                      &DisruptionControllerOptions{&c.DisruptionController},
		StatefulSetController:                     &StatefulSetControllerOptions{&c.StatefulSetController},
		EndpointController:                        &EndpointControllerOptions{&c.EndpointController},
		EndpointSliceController:                   &EndpointSliceControllerOptions{&c.EndpointSliceController},
		EndpointSliceMirroringController:          &EndpointSliceMirroringControllerOptions{&c.EndpointSliceMirroringController},
		EphemeralVolumeController:                 &EphemeralVolumeControllerOptions{&c.EphemeralVolumeController},
		GarbageCollectorController:                &GarbageCollectorControllerOptions{&c.GarbageCollectorController},
		HPAController:                             &HPAControllerOptions{&c.HPAController},
		JobController:                             &JobControllerOptions{&c.JobController},
		CronJobController:                         &CronJobControllerOptions{&c.CronJobController},
		LegacySATokenCleaner:                      &LegacySATokenCleanerOptions{&c.LegacySATokenCleaner},
		NamespaceController:                       &NamespaceControllerOptions{&c.NamespaceController},
		NodeIPAMController:                        &NodeIPAMControllerOptions{NodeIPAMControllerConfiguration: &c.NodeIPAMController},
		NodeLifecycleController:                   &NodeLifecycleControllerOptions{&c.NodeLifecycleController},
		PersistentVolumeBinderController:          &PersistentVolumeBinderControllerOptions{&c.PersistentVolumeBinderController},
		PodGCController:                           &PodGCControllerOptions{&c.PodGCController},
		ReplicaSetController:                      &ReplicaSetControllerOptions{&c.ReplicaSetController},
		ReplicationController:                     &ReplicationControllerOptions{&c.ReplicationController},
		ResourceClaimController:                   &ResourceClaimControllerOptions{&c.ResourceClaimController},
		ResourceQuotaController:                   &ResourceQuotaControllerOptions{&c.ResourceQuotaController},
		SAController:                              &SAControllerOptions{&c.SAController},
		TTLAfterFinishedController:                &TTLAfterFinishedControllerOptions{&c.TTLAfterFinishedController},
		ValidatingAdmissionPolicyStatusController: &ValidatingAdmissionPolicyStatusControllerOptions{&c.ValidatingAdmissionPolicyStatusController},

		Metrics: metrics.NewOptions(),
		Logs:    logs.NewOptions(),

		ControllerShutdownTimeout: defaultShutdownTimeout,
		ComponentGlobalsRegistry:  registry,
	}
	s.setServingDefaults()
	return s, nil
}

func (s *KubeControllerManagerOptions) setServingDefaults() {
	s.SecureServing.BindAddress = net.IPv4zero
	s.SecureServing.BindPort = defaultSecurePort
	// Without --cert-dir a self-signed certificate is kept in memory.
	s.SecureServing.ServerCert.CertDirectory = ""
	s.SecureServing.ServerCert.PairName = componentName
	// Without these kubeconfig files the manager still serves: to client
	// certificates, and to all on the paths that are always allowed.
	s.Authentication.RemoteKubeConfigFileOptional = true
	s.Authorization.RemoteKubeConfigFileOptional = true
}

// Flags returns the flags in the sections and the order of --help, bound to s.
// allControllers are the canonical names; disabledByDefaultControllers those
// that "*" does not turn on.
func (s *KubeControllerManagerOptions) Flags(allControllers, disabledByDefaultControllers []string, controllerAliases map[string]string) cliflag.NamedFlagSets {
	fss := cliflag.NamedFlagSets{}
	debugging := fss.FlagSet("debugging")
	s.LeaderMigration.AddFlags(fss.FlagSet("leader-migration"))
	generic := fss.FlagSet("generic")
	s.KubeCloudShared.AddFlags(generic)
	generic.DurationVar(&s.ControllerShutdownTimeout, "controller-shutdown-timeout", s.ControllerShutdownTimeout,
		"How long to wait for the controllers to stop before the process exits. 0 waits without end.")
	s.ComponentGlobalsRegistry.AddFlags(generic)

	s.SecureServing.AddFlags(fss.FlagSet("secure serving"))
	s.InsecureServing.AddFlags(fss.FlagSet("insecure serving"))
	s.Authentication.AddFlags(fss.FlagSet("authentication"))
	s.Authorization.AddFlags(fss.FlagSet("authorization"))
	for _, section := range s.sections() {
		section.options.AddFlags(fss.FlagSet(section.controller))
	}
	s.Metrics.AddFlags(fss.FlagSet("metrics"))
	logsapi.AddFlags(s.Logs, fss.FlagSet("logs"))

	misc := fss.FlagSet("misc")
	misc.StringVar(&s.Master, "master", s.Master,
		"URL of the API server. Overrides the one in the kubeconfig file.")
	s.Generic.AddFlags(debugging, generic, misc, controllersUsage(allControllers, disabledByDefaultControllers))
	s.ParsedFlags = &fss
	return fss
}

// controllersUsage describes --controllers.
func controllersUsage(all, disabledByDefault []string) string {
	var usage strings.Builder
	usage.WriteString("Which controllers run. '*' turns on all that are on by default, 'foo' turns on controller foo, '-foo' turns it off; the first entry that names a controller wins.")
	line := func(title string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&usage, "\n%s: %s", title, strings.Join(slices.Sorted(slices.Values(names)), ", "))
		}
	}
	line("All controllers", all)
	line("Disabled-by-default controllers", disabledByDefault)
	return usage.String()
}

// controllerOptions are the flags of one section that belongs to a controller.
type controllerOptions interface {
	AddFlags(fs *pflag.FlagSet)
	ApplyTo(c *componentConfig)
	Validate() []error
}
