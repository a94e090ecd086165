// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	scaleclient "k8s.io/client-go/scale"

	"github.com/kcm-dev/kcm/pkg/controller"
)

// scaleFinder finds how many Pods a Pod's controller wants: in caches, or else by its scale
// sub-resource.
type scaleFinder struct {
	rcs          corelisters.ReplicationControllerLister
	replicaSets  appslisters.ReplicaSetLister
	deployments  appslisters.DeploymentLister
	statefulSets appslisters.StatefulSetLister

	mapper    apimeta.RESTMapper
	scales    scaleclient.ScalesGetter
	discovery discovery.DiscoveryInterface
}

// target is what scales Pods.
type target struct {
	uid      types.UID
	replicas int32
}

// scalesOf returns the scale of each controller of the Pods. A controller that cannot be found is an
// error: its Pods' number is not known.
func (f *scaleFinder) scalesOf(ctx context.Context, pods []*v1.Pod) (scales, error) {
	found := scales{byController: map[types.UID]int32{}}
	asked := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOf(pod)
		if ref == nil {
			found.unmanaged = append(found.unmanaged, pod.Name)
			continue
		}
		if asked[ref.UID] {
			continue
		}
		asked[ref.UID] = true
		t, err := f.find(ctx, pod.Namespace, ref)
		if err != nil {
			return scales{}, err
		}
		if t == nil {
			return scales{}, fmt.Errorf("found no controllers for pod %q", pod.Name)
		}
		found.byController[t.uid] = t.replicas
	}
	return found, nil
}

// find returns what scales the Pods of a controller; nil when there is no such thing (any more).
func (f *scaleFinder) find(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*target, error) {
	for _, cached := range []func(string, *metav1.OwnerReference) *target{f.replicationController, f.replicaSet, f.statefulSet} {
		if t := cached(namespace, ref); t != nil {
			return t, nil
		}
	}
	return f.scaleSubresource(ctx, namespace, ref)
}

// refersTo says whether ref is to a kind in one of the groups; versions do not matter.
func refersTo(ref *metav1.OwnerReference, kind string, groups ...string) bool {
	return slices.ContainsFunc(groups, func(group string) bool {
		return controller.RefersTo(ref, schema.GroupKind{Group: group, Kind: kind})
	})
}

// replicasOf is the default that the API server sets, too, where an object has none.
func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// A lister's only error is that it does not hold the object: nil then, and the API server is asked.

func (f *scaleFinder) replicationController(namespace string, ref *metav1.OwnerReference) *target {
	if !refersTo(ref, "ReplicationController", "") {
		return nil
	}
	rc, err := f.rcs.ReplicationControllers(namespace).Get(ref.Name)
	if err != nil || rc.UID != ref.UID {
		return nil
	}
	return &target{uid: rc.UID, replicas: replicasOf(rc.Spec.Replicas)}
}

// replicaSet returns the Deployment of a ReplicaSet that has one, since during a roll-out the scale
// of each of its ReplicaSets says little.
func (f *scaleFinder) replicaSet(namespace string, ref *metav1.OwnerReference) *target {
	if !refersTo(ref, "ReplicaSet", "apps", "extensions") {
		return nil
	}
	rs, err := f.replicaSets.ReplicaSets(namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID {
		return nil
	}
	owner := metav1.GetControllerOf(rs)
	if owner == nil || !refersTo(owner, "Deployment", "apps", "extensions") {
		return &target{uid: rs.UID, replicas: replicasOf(rs.Spec.Replicas)}
	}
	return f.deployment(namespace, owner)
}

func (f *scaleFinder) deployment(namespace string, ref *metav1.OwnerReference) *target {
	d, err := f.deployments.Deployments(namespace).Get(ref.Name)
	if err != nil || d.UID != ref.UID {
		return nil
	}
	return &target{uid: d.UID, replicas: replicasOf(d.Spec.Replicas)}
}

func (f *scaleFinder) statefulSet(namespace string, ref *metav1.OwnerReference) *target {
	if !refersTo(ref, "StatefulSet", apps.GroupName) {
		return nil
	}
	set, err := f.statefulSets.StatefulSets(namespace).Get(ref.Name)
	if err != nil || set.UID != ref.UID {
		return nil
	}
	return &target{uid: set.UID, replicas: replicasOf(set.Spec.Replicas)}
}

func (f *scaleFinder) scaleSubresource(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*target, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing the apiVersion of owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	gk := schema.GroupKind{Group: gv.Group, Kind: ref.Kind}
	mapping, err := f.mapper.RESTMapping(gk, gv.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", gk, err)
	}
	resource := mapping.Resource.GroupResource()
	scale, err := f.scales.Scales(namespace).Get(ctx, resource, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// Either the owner is gone or its kind cannot be scaled, which no later event would change.
		return nil, f.checkScalable(mapping.Resource)
	}
	if err != nil {
		return nil, fmt.Errorf("getting the scale of %s %s/%s: %w", resource, namespace, ref.Name, err)
	}
	if scale.UID != ref.UID {
		return nil, nil
	}
	return &target{uid: scale.UID, replicas: scale.Spec.Replicas}, nil
}

// checkScalable returns an error when the resource has no scale sub-resource.
func (f *scaleFinder) checkScalable(resource schema.GroupVersionResource) error {
	list, err := f.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("discovering the resources of %s: %w", resource.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Name == resource.Resource+"/scale" && r.Kind == "Scale" && (r.Group == "" || r.Group == autoscaling.GroupName) {
			return nil
		}
	}
	return fmt.Errorf("%s does not implement the scale subresource", resource.GroupResource())
}
