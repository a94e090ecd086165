// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults that the API reference gives for the fields of a pod template. They are
// used for comparing only: what is written goes through the API server, which sets its
// own. A default that is missing here costs at most what every missing default costs
// upstream, a roll-out when the API server begins to set it; so fields of volume types
// that no longer exist in 1.37 are left out.

// setDefault gives an unset field its default.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

// setDefaultPtr gives an unset pointer field its default.
func setDefaultPtr[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setTemplateDefaults(template *v1.PodTemplateSpec) {
	// An older encoder wrote a creationTimestamp of null, and a name there means nothing.
	template.CreationTimestamp = metav1.Time{}
	spec := &template.Spec
	setDefault(&spec.RestartPolicy, v1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, v1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, v1.DefaultSchedulerName)
	setDefaultPtr(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	setDefaultPtr(&spec.SecurityContext, v1.PodSecurityContext{})
	// serviceAccount is the old name of serviceAccountName, and follows it.
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	setDefault(&spec.DeprecatedServiceAccount, spec.ServiceAccountName)
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i].VolumeSource)
	}
	for i := range spec.InitContainers {
		setContainerDefaults(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		setContainerDefaults(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		setContainerDefaults((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), spec.HostNetwork)
	}
}

func setContainerDefaults(c *v1.Container, hostNetwork bool) {
	setDefault(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	if isLatest(c.Image) {
		setDefault(&c.ImagePullPolicy, v1.PullAlways)
	}
	setDefault(&c.ImagePullPolicy, v1.PullIfNotPresent)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, v1.ProtocolTCP)
		if hostNetwork {
			setDefault(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		setEnvDefaults(c.Env[i].ValueFrom)
	}
	// A limit without a request is a request of as much.
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; ok {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = v1.ResourceList{}
		}
		c.Resources.Requests[name] = limit
	}
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		setProbeDefaults(probe)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, handler := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if handler != nil {
			setHTTPGetDefaults(handler.HTTPGet)
		}
	}
}

func setEnvDefaults(source *v1.EnvVarSource) {
	if source == nil {
		return
	}
	if source.FieldRef != nil {
		setDefault(&source.FieldRef.APIVersion, "v1")
	}
	if source.FileKeyRef != nil {
		setDefaultPtr(&source.FileKeyRef.Optional, false)
	}
}

func setProbeDefaults(probe *v1.Probe) {
	if probe == nil {
		return
	}
	setDefault(&probe.TimeoutSeconds, 1)
	setDefault(&probe.PeriodSeconds, 10)
	setDefault(&probe.SuccessThreshold, 1)
	setDefault(&probe.FailureThreshold, 3)
	setHTTPGetDefaults(probe.HTTPGet)
	if probe.GRPC != nil {
		setDefaultPtr(&probe.GRPC.Service, "")
	}
}

func setHTTPGetDefaults(action *v1.HTTPGetAction) {
	if action == nil {
		return
	}
	setDefault(&action.Path, "/")
	setDefault(&action.Scheme, v1.URISchemeHTTP)
}

func setVolumeDefaults(source *v1.VolumeSource) {
	switch {
	case *source == v1.VolumeSource{}:
		source.EmptyDir = &v1.EmptyDirVolumeSource{}
	case source.HostPath != nil:
		setDefaultPtr(&source.HostPath.Type, v1.HostPathUnset)
	case source.Secret != nil:
		setDefaultPtr(&source.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	case source.ConfigMap != nil:
		setDefaultPtr(&source.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	case source.DownwardAPI != nil:
		setDefaultPtr(&source.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		setDownwardDefaults(source.DownwardAPI.Items)
	case source.Projected != nil:
		setProjectedDefaults(source.Projected)
	case source.ISCSI != nil:
		setDefault(&source.ISCSI.ISCSIInterface, "default")
	case source.RBD != nil:
		setDefault(&source.RBD.RBDPool, "rbd")
		setDefault(&source.RBD.RadosUser, "admin")
		setDefault(&source.RBD.Keyring, "/etc/ceph/keyring")
	case source.AzureDisk != nil:
		setDefaultPtr(&source.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		setDefaultPtr(&source.AzureDisk.Kind, v1.AzureSharedBlobDisk)
		setDefaultPtr(&source.AzureDisk.FSType, "ext4")
		setDefaultPtr(&source.AzureDisk.ReadOnly, false)
	case source.ScaleIO != nil:
		setDefault(&source.ScaleIO.StorageMode, "ThinProvisioned")
		setDefault(&source.ScaleIO.FSType, "xfs")
	case source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil:
		claim := source.Ephemeral.VolumeClaimTemplate
		claim.CreationTimestamp = metav1.Time{}
		setDefaultPtr(&claim.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	case source.Image != nil:
		if isLatest(source.Image.Reference) {
			setDefault(&source.Image.PullPolicy, v1.PullAlways)
		}
		setDefault(&source.Image.PullPolicy, v1.PullIfNotPresent)
	}
}

func setProjectedDefaults(projected *v1.ProjectedVolumeSource) {
	setDefaultPtr(&projected.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for i := range projected.Sources {
		source := &projected.Sources[i]
		if source.DownwardAPI != nil {
			setDownwardDefaults(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			setDefaultPtr(&source.ServiceAccountToken.ExpirationSeconds, 60*60)
		}
	}
}

func setDownwardDefaults(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			setDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

// isLatest says whether an image has the tag latest, named or not.
func isLatest(image string) bool {
	if strings.Contains(image, "@") {
		return false // by digest
	}
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}
