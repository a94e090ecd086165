// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// A watch is renewed after this many seconds, and up to as many again, so that candidates do not do so in step.
const watchSeconds = 300

// LeaseLock is a lock in a coordination.k8s.io/v1 Lease.
type LeaseLock struct {
	// LeaseMeta carries the namespace and name of the Lease.
	LeaseMeta metav1.ObjectMeta
	// Client reads and writes the Lease.
	Client coordinationv1client.LeasesGetter
	// LockConfig tells who the candidate is.
	LockConfig ResourceLockConfig
	// Labels are put on the Lease whenever this candidate becomes its holder; others stay.
	Labels map[string]string
}

var _ Interface = (*LeaseLock)(nil)

// Get implements Interface.
func (l *LeaseLock) Get(ctx context.Context) (*Observation, error) {
	lease, err := l.leases().Get(ctx, l.LeaseMeta.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading lease %s: %w", l.Describe(), err)
	}
	return observe(lease), nil
}

// Create implements Interface.
func (l *LeaseLock) Create(ctx context.Context, record LeaderElectionRecord) (*Observation, error) {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.LeaseMeta.Namespace, Name: l.LeaseMeta.Name, Labels: maps.Clone(l.Labels)},
		Spec:       LeaderElectionRecordToLeaseSpec(&record),
	}
	created, err := l.leases().Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating lease %s: %w", l.Describe(), err)
	}
	return observe(created), nil
}

// Update implements Interface.
func (l *LeaseLock) Update(ctx context.Context, base *Observation, record LeaderElectionRecord) (*Observation, error) {
	if base == nil || base.lease == nil || base.ResourceVersion == "" {
		return nil, fmt.Errorf("updating lease %s: it was not read before", l.Describe())
	}
	lease := base.lease.DeepCopy()
	lease.Spec = LeaderElectionRecordToLeaseSpec(&record)
	if len(l.Labels) > 0 && record.HolderIdentity == l.Identity() {
		if lease.Labels == nil {
			lease.Labels = make(map[string]string, len(l.Labels))
		}
		maps.Copy(lease.Labels, l.Labels)
	}
	updated, err := l.leases().Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("updating lease %s: %w", l.Describe(), err)
	}
	return observe(updated), nil
}

// Watch implements Interface. The Lease is watched without a resource version, so that the stream opens with its
// present state and no change between a read and the watch is lost.
func (l *LeaseLock) Watch(ctx context.Context, changed func(*Observation)) error {
	stream, err := l.leases().Watch(ctx, metav1.ListOptions{
		FieldSelector:  fields.OneTermEqualSelector(metav1.ObjectNameField, l.LeaseMeta.Name).String(),
		TimeoutSeconds: ptr.To(watchSeconds + rand.Int64N(watchSeconds)),
	})
	if err != nil {
		return fmt.Errorf("watching lease %s: %w", l.Describe(), err)
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-stream.ResultChan():
			if !open {
				return nil
			}
			if err := l.deliver(event, changed); err != nil {
				return err
			}
		}
	}
}

func (l *LeaseLock) deliver(event watch.Event, changed func(*Observation)) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watching lease %s: %w", l.Describe(), apierrors.FromObject(event.Object))
	}
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("watching lease %s: %w", l.Describe(), errors.New("the API server sent something else"))
	}
	// A server, or a fake of one, that ignores the field selector must not mix up two elections.
	if lease.Name != l.LeaseMeta.Name {
		return nil
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		changed(observe(lease))
	case watch.Deleted:
		changed(nil)
	}
	return nil
}

// RecordEvent implements Interface.
func (l *LeaseLock) RecordEvent(what string) {
	if l.LockConfig.EventRecorder == nil {
		return
	}
	subject := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{Kind: "Lease", APIVersion: coordinationv1.SchemeGroupVersion.String()},
		ObjectMeta: *l.LeaseMeta.DeepCopy(),
	}
	l.LockConfig.EventRecorder.Eventf(subject, corev1.EventTypeNormal, "LeaderElection", "%s %s", l.Identity(), what)
}

// Identity implements Interface.
func (l *LeaseLock) Identity() string { return l.LockConfig.Identity }

// Describe implements Interface.
func (l *LeaseLock) Describe() string { return l.LeaseMeta.Namespace + "/" + l.LeaseMeta.Name }

func (l *LeaseLock) leases() coordinationv1client.LeaseInterface {
	return l.Client.Leases(l.LeaseMeta.Namespace)
}

func observe(lease *coordinationv1.Lease) *Observation {
	return &Observation{
		Record:          *LeaseSpecToLeaderElectionRecord(&lease.Spec),
		UID:             lease.UID,
		ResourceVersion: lease.ResourceVersion,
		lease:           lease,
	}
}

// LeaseSpecToLeaderElectionRecord reads a record; what the spec leaves out is zero in the record.
func LeaseSpecToLeaderElectionRecord(spec *coordinationv1.LeaseSpec) *LeaderElectionRecord {
	return &LeaderElectionRecord{
		HolderIdentity:       ptr.Deref(spec.HolderIdentity, ""),
		LeaseDurationSeconds: int(ptr.Deref(spec.LeaseDurationSeconds, 0)),
		AcquireTime:          ptr.Deref(spec.AcquireTime, metav1.MicroTime{}),
		RenewTime:            ptr.Deref(spec.RenewTime, metav1.MicroTime{}),
		LeaderTransitions:    int(ptr.Deref(spec.LeaseTransitions, 0)),
		Strategy:             ptr.Deref(spec.Strategy, ""),
		PreferredHolder:      ptr.Deref(spec.PreferredHolder, ""),
	}
}

// LeaderElectionRecordToLeaseSpec writes a record the way upstream's candidates do: everything but the fields of a
// coordinated election is always there, an empty holder included.
func LeaderElectionRecordToLeaseSpec(record *LeaderElectionRecord) coordinationv1.LeaseSpec {
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To(record.HolderIdentity),
		LeaseDurationSeconds: ptr.To(int32(record.LeaseDurationSeconds)),
		AcquireTime:          ptr.To(record.AcquireTime),
		RenewTime:            ptr.To(record.RenewTime),
		LeaseTransitions:     ptr.To(int32(record.LeaderTransitions)),
	}
	if record.Strategy != "" {
		spec.Strategy = ptr.To(record.Strategy)
	}
	if record.PreferredHolder != "" {
		spec.PreferredHolder = ptr.To(record.PreferredHolder)
	}
	return spec
}
