// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

const (
	// pageSize bounds the objects in memory per listing.
	pageSize = 1000
	// parallelTargets bounds the targets of one namespace that are worked on at a time.
	parallelTargets = 8
)

var errNamespaceReplaced = errors.New("namespace was deleted and created anew, its content is left alone")

// deleteContent carries a round out: pods, and when none are left all other targets.
func (d *namespacedResourcesDeleter) deleteContent(ctx context.Context, ns *v1.Namespace, roundStart time.Time) (*outcome, error) {
	known, err := d.discovery.recent(ctx)
	if err != nil {
		return nil, err
	}
	o, done := d.deleteTargets(ctx, ns, known, nil)
	if !o.empty() || !known.began.Before(roundStart) {
		return o, nil
	}
	// All that an earlier discovery knew is gone; kinds may have come since.
	if known, err = d.discovery.since(ctx, roundStart); err != nil {
		return nil, err
	}
	o, _ = d.deleteTargets(ctx, ns, known, done)
	return o, nil
}

// deleteTargets deletes what a discovery names, except the targets in skip. It also returns the
// targets that are dealt with, to be skipped next time.
func (d *namespacedResourcesDeleter) deleteTargets(ctx context.Context, ns *v1.Namespace, known *snapshot, skip map[target]bool) (*outcome, map[target]bool) {
	o := &outcome{discoveryErr: known.discoveryErr, parseErr: known.parseErr}
	pods, others := splitPods(known.targets, known.complete())
	done := map[target]bool{}
	work := func(targets []target) {
		todo := make([]target, 0, len(targets))
		for _, t := range targets {
			if !skip[t] {
				todo = append(todo, t)
			}
			done[t] = true
		}
		d.deleteGroup(ctx, ns, todo, o)
	}

	work(pods)
	if len(o.remaining) == 0 && len(o.contentErrs) == 0 {
		work(others)
		return o, done
	}
	logger := klog.FromContext(ctx)
	logger.V(4).Info("Other content waits for the pods to go", "pods", o.remaining[podsResource], "estimateSeconds", o.estimate)
	if o.onlyJobsHoldPods(d.clock.Since(ns.DeletionTimestamp.Time)) {
		logger.V(2).Info("Deleting the jobs before the pods are gone, since only the job controller holds these", "pods", o.remaining[podsResource])
		work(slices.DeleteFunc(others, func(t target) bool { return t.gvr != jobsResource }))
	}
	return o, done
}

// deleteGroup deletes the objects of several targets, a few targets at a time, and adds to o what
// it learns. One target's failure does not keep the others.
func (d *namespacedResourcesDeleter) deleteGroup(ctx context.Context, ns *v1.Namespace, targets []target, o *outcome) {
	type result struct {
		survey   survey
		estimate int64
		err      error
	}
	results := make([]result, len(targets))
	var group errgroup.Group
	group.SetLimit(parallelTargets)
	for i, t := range targets {
		group.Go(func() error {
			r := &results[i]
			r.survey, r.err = d.deleteTarget(ctx, ns, t)
			if r.err == nil {
				r.estimate, r.err = r.survey.wait(t.gvr, ns.Name, d.clock.Now())
			}
			if r.err != nil && t.gvr == podsResource {
				r.err = fmt.Errorf("failed to delete pods for namespace: %s, err: %w", ns.Name, r.err)
			}
			return nil
		})
	}
	_ = group.Wait() // its functions return no error: each result has its own
	for i, t := range targets {
		o.include(t.gvr, results[i].survey, results[i].estimate, results[i].err)
	}
}

// deleteTarget deletes the objects of one target and returns what is left of them.
func (d *namespacedResourcesDeleter) deleteTarget(ctx context.Context, ns *v1.Namespace, t target) (survey, error) {
	client := d.metadata.Resource(t.gvr).Namespace(ns.Name)
	if !t.list {
		// What cannot be listed cannot be looked at either: upstream, too, trusts the delete request.
		if !t.deleteCollection {
			return survey{}, nil
		}
		return survey{}, d.deleteUnseen(ctx, client, t)
	}

	before, err := listTarget(ctx, client, t, !t.deleteCollection)
	if err != nil || !before.actionable {
		return before, err
	}
	if err := d.checkNotReplaced(ctx, ns, before.youngest); err != nil {
		return before, err
	}
	if t.deleteCollection {
		err = client.DeleteCollection(ctx, backgroundDelete(), metav1.ListOptions{})
		if unsupported(err) {
			if before, err = listTarget(ctx, client, t, true); err == nil {
				err = deleteEach(ctx, client, before.deletable)
			}
		}
	} else {
		err = deleteEach(ctx, client, before.deletable)
	}
	if err != nil {
		return before, fmt.Errorf("deleting %s: %w", t.gvr.GroupResource(), err)
	}
	return listTarget(ctx, client, t, false)
}

func (d *namespacedResourcesDeleter) deleteUnseen(ctx context.Context, client metadata.ResourceInterface, t target) error {
	err := client.DeleteCollection(ctx, backgroundDelete(), metav1.ListOptions{})
	if err == nil || unsupported(err) {
		return nil
	}
	return fmt.Errorf("deleting %s: %w", t.gvr.GroupResource(), err)
}

// checkNotReplaced guards against deleting the content of a namespace that was created anew while
// the round ran (somebody forced the old one's finalization): nothing is created in a terminating
// namespace, so objects younger than the deletion are a reason to read the namespace again.
func (d *namespacedResourcesDeleter) checkNotReplaced(ctx context.Context, ns *v1.Namespace, youngest time.Time) error {
	if !youngest.After(ns.DeletionTimestamp.Time) {
		return nil
	}
	live, err := d.namespaces.Get(ctx, ns.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && live.UID != ns.UID) {
		return errNamespaceReplaced
	}
	return err
}

// deleteEach deletes objects one by one. An object that is gone, or was replaced by another of the
// same name, is not an error: the next listing tells what is left.
func deleteEach(ctx context.Context, client metadata.ResourceInterface, ids []objectID) error {
	for _, id := range ids {
		options := backgroundDelete()
		options.Preconditions = metav1.NewUIDPreconditions(string(id.uid))
		err := client.Delete(ctx, id.name, options)
		if err == nil || unsupported(err) || apierrors.IsConflict(err) {
			continue
		}
		return fmt.Errorf("%s: %w", id.name, err)
	}
	return nil
}

// backgroundDelete leaves dependents to the garbage collector: orphaned or waiting for each other
// they would keep the namespace.
func backgroundDelete() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}

// unsupported is true for answers that say that there is nothing to send such a request to: a verb
// or a resource that the API does not have, whatever discovery said.
func unsupported(err error) bool {
	return apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

// listTarget surveys a target's objects page by page. With collect it remembers the ones to delete.
// Without, it stops at the first page that shows that a delete is needed: that one is followed by
// another listing; the count then includes what the API server says that is on later pages.
func listTarget(ctx context.Context, client metadata.ResourceInterface, t target, collect bool) (survey, error) {
	var s survey
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := client.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// The pages took too long to read: begin anew, in one page.
			s, options = survey{}, metav1.ListOptions{}
			continue
		}
		if unsupported(err) {
			return survey{}, nil
		}
		if err != nil {
			return s, fmt.Errorf("listing %s: %w", t.gvr.GroupResource(), err)
		}
		for i := range list.Items {
			s.add(&list.Items[i], collect)
		}
		if s.actionable && !collect {
			if list.RemainingItemCount != nil {
				s.count += int(*list.RemainingItemCount)
			}
			return s, nil
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return s, nil
		}
	}
}
