// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// Reasons of events. Users and tools match them, so they are upstream's to the letter.
const (
	scalingReason           = "ScalingReplicaSet"
	selectingAllReason      = "SelectingAll"
	rollbackDone            = "DeploymentRollback"
	rollbackNotFound        = "DeploymentRollbackRevisionNotFound"
	rollbackTemplateSame    = "DeploymentRollbackTemplateUnchanged"
	replicaSetCreateFailure = util.FailedRSCreateReason
)

// message is an event on the Deployment.
type message struct{ eventType, reason, text string }

func (dc *DeploymentController) emit(d *apps.Deployment, m message) {
	dc.recorder.Event(d, m.eventType, m.reason, m.text)
}

// scaled describes a ReplicaSet's change of size.
func scaled(name string, from, to int32) message {
	direction := "up"
	if to < from {
		direction = "down"
	}
	return message{v1.EventTypeNormal, scalingReason, fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, name, from, to)}
}

// createFailed describes a ReplicaSet that could not be created; its text is the condition's too.
func createFailed(name string, err error) message {
	return message{v1.EventTypeWarning, replicaSetCreateFailure, fmt.Sprintf("Failed to create new replica set %q: %v", name, err)}
}

func selectingAll() *message {
	return &message{v1.EventTypeWarning, selectingAllReason, "This deployment is selecting all pods. A non-empty selector is required."}
}

func noLastRevision() message {
	return message{v1.EventTypeWarning, rollbackNotFound, "Unable to find last revision."}
}

func noSuchRevision() message {
	return message{v1.EventTypeWarning, rollbackNotFound, "Unable to find the revision to rollback to."}
}

func sameTemplate(name string) message {
	return message{v1.EventTypeWarning, rollbackTemplateSame,
		fmt.Sprintf("The rollback revision contains the same template as current deployment %q", name)}
}

func rolledBack(name string, revision int64) message {
	return message{v1.EventTypeNormal, rollbackDone, fmt.Sprintf("Rolled back deployment %q to revision %d", name, revision)}
}
