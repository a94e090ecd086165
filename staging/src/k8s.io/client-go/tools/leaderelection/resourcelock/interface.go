// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// LeasesResourceLock is the only kind of lock there is.
const LeasesResourceLock = "leases"

// Kinds of locks that older releases accepted, kept to tell their users what to do.
const (
	endpointsResourceLock        = "endpoints"
	configMapsResourceLock       = "configmaps"
	endpointsLeasesResourceLock  = "endpointsleases"
	configMapsLeasesResourceLock = "configmapsleases"
)

// LeaderElectionRecord is what candidates read and write. Times in it come from the clock of whoever wrote it and
// are never compared with the local clock; that a record changed is all a candidate draws from them.
type LeaderElectionRecord struct {
	// HolderIdentity is the candidate that holds the lock; empty when the last holder gave it back.
	HolderIdentity string `json:"holderIdentity"`
	// LeaseDurationSeconds is how long others have to leave an unchanged record alone.
	LeaseDurationSeconds int `json:"leaseDurationSeconds"`
	// AcquireTime is when the holder won, by its own clock.
	AcquireTime metav1.MicroTime `json:"acquireTime"`
	// RenewTime is when the holder last renewed, by its own clock.
	RenewTime metav1.MicroTime `json:"renewTime"`
	// LeaderTransitions counts how often the lock went from one holder to another.
	LeaderTransitions int `json:"leaderTransitions"`
	// Strategy is how a coordinated election picks the holder (KEP-4355); empty in a plain election.
	Strategy coordinationv1.CoordinatedLeaseStrategy `json:"strategy,omitempty"`
	// PreferredHolder asks the holder of a coordinated election to give way to this candidate.
	PreferredHolder string `json:"preferredHolder,omitempty"`
}

// Equal reports whether nothing in the record differs, to the microsecond that a Lease stores.
func (r LeaderElectionRecord) Equal(o LeaderElectionRecord) bool {
	return r.HolderIdentity == o.HolderIdentity &&
		r.LeaseDurationSeconds == o.LeaseDurationSeconds &&
		sameMicrosecond(r.AcquireTime, o.AcquireTime) &&
		sameMicrosecond(r.RenewTime, o.RenewTime) &&
		r.LeaderTransitions == o.LeaderTransitions &&
		r.Strategy == o.Strategy &&
		r.PreferredHolder == o.PreferredHolder
}

func sameMicrosecond(a, b metav1.MicroTime) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

// Observation is the lock as the API server had it once. It is immutable.
type Observation struct {
	// Record is the election record.
	Record LeaderElectionRecord
	// UID and ResourceVersion tell which state of which object a write builds on.
	UID             types.UID
	ResourceVersion string

	lease *coordinationv1.Lease
}

// Interface is a lock that candidates compete for.
type Interface interface {
	// Get reads the lock. An apierrors.IsNotFound error means that nobody ever held it.
	Get(ctx context.Context) (*Observation, error)
	// Create makes the lock with record; apierrors.IsAlreadyExists means that another candidate was first.
	Create(ctx context.Context, record LeaderElectionRecord) (*Observation, error)
	// Update replaces the record that base shows. apierrors.IsConflict means that the lock has changed since base.
	Update(ctx context.Context, base *Observation, record LeaderElectionRecord) (*Observation, error)
	// Watch calls changed, on the caller's goroutine, with the present state of the lock and with each later one;
	// nil stands for a deleted lock. It returns when ctx is done (nil error) or when the stream ends.
	Watch(ctx context.Context, changed func(*Observation)) error
	// RecordEvent notes on the lock's object that the candidate did what, e.g. "became leader".
	RecordEvent(what string)
	// Identity names this candidate.
	Identity() string
	// Describe names the lock for logs and health checks: "namespace/name".
	Describe() string
}

// EventRecorder records what happens to a lock. A client-go record.EventRecorder is one.
type EventRecorder interface {
	Eventf(obj runtime.Object, eventType, reason, message string, args ...interface{})
}

// ResourceLockConfig is what every kind of lock needs to know of its candidate.
type ResourceLockConfig struct {
	// Identity is unique among the candidates. Required.
	Identity string
	// EventRecorder may be nil: no events.
	EventRecorder EventRecorder
}

// CheckType returns nil for "leases", and for anything else an error that says why not: the types that were retired in
// Kubernetes 1.28 are told from those that never were.
func CheckType(lockType string) error {
	switch lockType {
	case LeasesResourceLock:
		return nil
	case endpointsResourceLock, configMapsResourceLock:
		return fmt.Errorf("resourceLock value must be %q: %q was removed in Kubernetes 1.28, a cluster that still uses it migrates through %q first",
			LeasesResourceLock, lockType, lockType+"leases")
	case endpointsLeasesResourceLock, configMapsLeasesResourceLock:
		return fmt.Errorf("resourceLock value must be %q: %q was removed in Kubernetes 1.28", LeasesResourceLock, lockType)
	default:
		return fmt.Errorf("resourceLock value must be %q", LeasesResourceLock)
	}
}

// New makes a lock of the given type, which must be "leases".
func New(lockType, namespace, name string, client coordinationv1client.LeasesGetter, config ResourceLockConfig) (Interface, error) {
	return NewWithLabels(lockType, namespace, name, client, config, nil)
}

// NewWithLabels is New with labels that are put on the lock's object whenever this candidate becomes its holder.
func NewWithLabels(lockType, namespace, name string, client coordinationv1client.LeasesGetter, config ResourceLockConfig, labels map[string]string) (Interface, error) {
	if err := CheckType(lockType); err != nil {
		return nil, fmt.Errorf("creating lock %q of type %q: %w", namespace+"/"+name, lockType, err)
	}
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("lock %q: both a namespace and a name are required", namespace+"/"+name)
	}
	if config.Identity == "" {
		return nil, errors.New("lock identity is empty: each candidate needs a unique one")
	}
	return &LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client,
		LockConfig: config,
		Labels:     labels,
	}, nil
}

// NewFromKubeconfig is New with a client of its own, made from config under the user agent "leader-election". No
// request waits behind those of the controllers, and none outlives renewDeadline: the elector bounds each by
// max(1s, renewDeadline/2), which a client-wide timeout would also impose on the watch.
func NewFromKubeconfig(lockType, namespace, name string, lockConfig ResourceLockConfig, config *rest.Config) (Interface, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	own.Timeout = 0
	client, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("creating the client for leader election: %w", err)
	}
	return New(lockType, namespace, name, client, lockConfig)
}
