// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads, defaults and validates the configuration of a leader migration (KEP-2436). Files may be of
// controllermanager.config.k8s.io v1alpha1, v1beta1 and v1; everything after reading is v1alpha1, as in the manager's
// own configuration.
package config

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	internal "k8s.io/controller-manager/config"
	configv1 "k8s.io/controller-manager/config/v1"
	"k8s.io/controller-manager/config/v1alpha1"
	"k8s.io/controller-manager/config/v1beta1"
)

const (
	// ResourceLockLeases locks by a Lease.
	ResourceLockLeases = "leases"
	// ResourceLockEndpoints is accepted in old files; leader election itself refuses it.
	ResourceLockEndpoints = "endpoints"
)

// migrationName is the lock of the only migration that Kubernetes ever had, of the cloud controllers.
const migrationName = "cloud-provider-extraction-migration"

// DefaultLeaderMigrationConfiguration is what --enable-leader-migration means without a file.
func DefaultLeaderMigrationConfiguration() *v1alpha1.LeaderMigrationConfiguration {
	return &v1alpha1.LeaderMigrationConfiguration{
		LeaderName:   migrationName,
		ResourceLock: ResourceLockLeases,
		ControllerLeaders: []v1alpha1.ControllerLeaderConfiguration{
			{Name: "route-controller", Component: "*"},
			{Name: "service-controller", Component: "*"},
			{Name: "cloud-node-lifecycle-controller", Component: "*"},
		},
	}
}

// ReadLeaderMigrationConfiguration reads a YAML or JSON file. Unknown and repeated fields are errors. A file of
// version v1, which has no resourceLock, locks by a Lease. The result still has to be validated.
func ReadLeaderMigrationConfiguration(path string) (*v1alpha1.LeaderMigrationConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("unable to read leader migration configuration from %q: %w", path, err)
	}
	c, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("unable to parse leader migration configuration from %q: %w", path, err)
	}
	return c, nil
}

func decode(data []byte) (*v1alpha1.LeaderMigrationConfiguration, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(internal.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(configv1.AddToScheme(scheme))
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)

	obj, gvk, err := codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	hub := &internal.LeaderMigrationConfiguration{}
	if _, ok := obj.(*internal.LeaderMigrationConfiguration); ok || gvk.Kind != "LeaderMigrationConfiguration" {
		return nil, fmt.Errorf("%s: expected kind LeaderMigrationConfiguration of %s v1alpha1, v1beta1 or v1", gvk, internal.GroupName)
	}
	if err := scheme.Convert(obj, hub, nil); err != nil {
		return nil, err
	}
	if gvk.Version == configv1.SchemeGroupVersion.Version {
		hub.ResourceLock = ResourceLockLeases
	}
	out := &v1alpha1.LeaderMigrationConfiguration{}
	if err := scheme.Convert(hub, out, nil); err != nil {
		return nil, err
	}
	return out, nil
}

// ValidateLeaderMigrationConfiguration reports everything that is wrong with a configuration.
func ValidateLeaderMigrationConfiguration(c *v1alpha1.LeaderMigrationConfiguration) (problems field.ErrorList) {
	if c.LeaderName == "" {
		problems = append(problems, field.Required(field.NewPath("leaderName"), "leaderName must be set for LeaderMigrationConfiguration"))
	}
	if c.ResourceLock != ResourceLockLeases && c.ResourceLock != ResourceLockEndpoints {
		problems = append(problems, field.Invalid(field.NewPath("resourceLock"), c.ResourceLock, "resource Lock must be one of 'leases' or 'endpoints'"))
	}
	leaders := field.NewPath("controllerLeaders")
	for i, leader := range c.ControllerLeaders {
		if leader.Component == "" {
			problems = append(problems, field.Required(leaders.Index(i).Child("component"), "component must be set"))
		}
		if leader.Name == "" {
			problems = append(problems, field.Required(leaders.Index(i).Child("name"), "name must be set"))
		}
	}
	return problems
}
