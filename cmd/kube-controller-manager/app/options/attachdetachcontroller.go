// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/kube-controller-manager/config/v1alpha1"
)

// AttachDetachControllerOptions holds the flags of the attach/detach controller.
type AttachDetachControllerOptions struct {
	*v1alpha1.AttachDetachControllerConfiguration
}

// AddFlags adds the controller's flags to its section.
func (o *AttachDetachControllerOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.DisableAttachDetachReconcilerSync, "disable-attach-detach-reconcile-sync", o.DisableAttachDetachReconcilerSync,
		"Never compare what is attached, as the controller remembers it, with what is really attached. A volume that was detached behind the controller's back then stays missing in its pod.")
	fs.DurationVar(&o.ReconcilerSyncLoopPeriod.Duration, "attach-detach-reconcile-sync-period", o.ReconcilerSyncLoopPeriod.Duration,
		"How often to compare what is attached, as the controller remembers it, with what is really attached. At least one second; a longer period leaves a volume that was detached behind the controller's back missing for longer.")
	fs.BoolVar(&o.DisableForceDetachOnTimeout, "disable-force-detach-on-timeout", o.DisableForceDetachOnTimeout,
		"Never detach a volume by force because unmounting takes too long on an unhealthy node. Nodes marked out of service then keep their volumes until VolumeAttachments are deleted by hand.")
}

// ApplyTo copies the flags into the configuration.
func (o *AttachDetachControllerOptions) ApplyTo(c *v1alpha1.KubeControllerManagerConfiguration) {
	c.AttachDetachController = *o.AttachDetachControllerConfiguration
}

// Validate returns what is wrong with the flags.
func (o *AttachDetachControllerOptions) Validate() []error {
	return checkAtLeast("attach-detach-reconcile-sync-period", o.ReconcilerSyncLoopPeriod, time.Second)
}
