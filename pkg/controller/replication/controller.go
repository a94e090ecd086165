// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"context"

	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/kcm-dev/kcm/pkg/controller/replicaset"
	"github.com/kcm-dev/kcm/pkg/features"
)

// BurstReplicas is how many Pods the controller manager lets one sync create, and how
// many delete.
const BurstReplicas = replicaset.BurstReplicas

// ReplicationManager keeps the number of Pods of each ReplicationController.
type ReplicationManager struct {
	*replicaset.ReplicaSetController
}

// NewReplicationManager returns the controller of ReplicationControllers. The feature gate
// PodDeletionCost is read here, once. It must be run, with a cancelled context if nothing
// else, to end its queues' goroutines.
func NewReplicationManager(ctx context.Context, podInformer coreinformers.PodInformer, rcInformer coreinformers.ReplicationControllerInformer, kubeClient clientset.Interface, burstReplicas int) *ReplicationManager {
	return &ReplicationManager{replicaset.NewBaseController(ctx, replicaset.Config{
		Name:           "replicationcontroller-controller",
		QueueName:      "replicationmanager",
		EventComponent: "replication-controller",
		Kind:           newReplicationControllers(rcInformer, kubeClient),
		Pods:           podInformer,
		KubeClient:     kubeClient,
		BurstReplicas:  burstReplicas,
		Features:       replicaset.Features{DeletionCost: features.Enabled(features.PodDeletionCost)},
	})}
}
