// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/names"
	"github.com/kcm-dev/kcm/pkg/controller/daemon/util"
	"github.com/kcm-dev/kcm/test/benchmark"
	"github.com/kcm-dev/kcm/test/integration/framework/fakekubelet"
)

// daemonSet: one DaemonSet comes to very many nodes, and gets a new image there.
func daemonSet() benchmark.Scenario {
	const app = "agent"
	return benchmark.Scenario{
		Name:        "daemonset",
		Title:       "a DaemonSet over 500 nodes: from nothing to all available, and a new image for all, 50 at a time",
		Controllers: []string{names.DaemonSetController},
		Nodes:       500,
		// It plays the scheduler, too: each pod says by its affinity where it belongs.
		Kubelet: fakekubelet.Options{Place: func(pod *corev1.Pod) string {
			node, err := util.GetTargetNodeName(pod)
			if err != nil {
				return "" // it stays pending, and the run ends with that
			}
			return node
		}},
		Seed: func(ctx context.Context, e *benchmark.Env) error {
			if err := e.Namespace(ctx, namespace); err != nil {
				return err
			}
			e.Informers.Apps().V1().DaemonSets().Informer()
			return e.Sync(ctx)
		},
		Run: func(ctx context.Context, e *benchmark.Env) error {
			sets := e.Client.AppsV1().DaemonSets(namespace)
			err := e.Measure(ctx, "create", func(ctx context.Context) error {
				set, err := sets.Create(ctx, newDaemonSet(app), metav1.CreateOptions{})
				if err != nil {
					return err
				}
				return e.Wait(ctx, "the DaemonSet to be complete", daemonSetSettled(e, app, set.Generation))
			})
			if err != nil {
				return err
			}
			return e.Measure(ctx, "roll-out", func(ctx context.Context) error {
				patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:2"}]}}}}`)
				set, err := sets.Patch(ctx, app, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
				if err != nil {
					return err
				}
				return e.Wait(ctx, "the DaemonSet to be complete", daemonSetSettled(e, app, set.Generation))
			})
		},
	}
}

// newDaemonSet is a DaemonSet with the label app on its pods, of which a tenth may be away in a roll-out.
func newDaemonSet(name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("10%"))},
			},
		},
	}
}

// daemonSetSettled says whether the DaemonSet is complete on all nodes, at that generation or a later one.
func daemonSetSettled(e *benchmark.Env, name string, generation int64) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		set, err := e.Informers.Apps().V1().DaemonSets().Lister().DaemonSets(namespace).Get(name)
		if err != nil || set.Generation < generation {
			return false, nil // the harness does not see its own write yet
		}
		want, s := int32(len(e.NodeNames())), set.Status
		return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == want && s.UpdatedNumberScheduled == want && s.NumberAvailable == want, nil
	}
}
