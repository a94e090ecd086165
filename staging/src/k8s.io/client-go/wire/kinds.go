// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// droppedOfContainers is dropped of the containers of a pod. What stays is read: names, images,
// ports (endpoints), resources (quota, autoscaling), restart policies (sidecars, jobs), security
// contexts. The templates of workloads keep everything: they are hashed and written.
var droppedOfContainers = []string{
	"command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices",
	"livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
	"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy",
	"stdin", "stdinOnce", "tty",
}

// droppedOfStatuses is dropped of the statuses of a pod's containers: what differs from pod to pod
// although the pods are equally well, and nobody reads. Of a container's end all that job failure
// policies and back-off look at stays, and how long it ran (replicaset).
var droppedOfStatuses = []string{
	"image", "imageID", "containerID", "volumeMounts", "user", "allocatedResourcesStatus", "stopSignal",
	"state.running.startedAt", "state.terminated.containerID",
	"lastState.running.startedAt", "lastState.terminated.startedAt", "lastState.terminated.finishedAt",
	"lastState.terminated.containerID", "lastState.terminated.message",
}

// droppedVolumes are the sources of a pod's volumes that concern the kubelet alone. No controller
// attaches, claims or protects them.
var droppedVolumes = []string{
	"hostPath", "emptyDir", "gitRepo", "secret", "downwardAPI", "configMap", "projected", "image",
}

func droppedOfPods() []string {
	var paths []string
	for _, list := range []string{"spec.initContainers.", "spec.containers.", "spec.ephemeralContainers.ephemeralContainerCommon."} {
		for _, field := range droppedOfContainers {
			paths = append(paths, list+field)
		}
	}
	for _, list := range []string{"status.initContainerStatuses.", "status.containerStatuses.", "status.ephemeralContainerStatuses."} {
		for _, field := range droppedOfStatuses {
			paths = append(paths, list+field)
		}
	}
	for _, source := range droppedVolumes {
		paths = append(paths, "spec.volumes[volumeSource."+source+"]")
	}
	return append(paths, "spec.hostAliases", "spec.dnsConfig", "spec.imagePullSecrets")
}

// newPodKind is the Kind of pods.
func newPodKind(dropped ...string) *Kind {
	k := newKind[corev1.Pod](dropped...)
	k.decode = decodePod
	return k
}

// newMetadataKind is the Kind of objects of which only the metadata is asked for.
func newMetadataKind() *Kind {
	k := newKind[metav1.PartialObjectMetadata]()
	k.typeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	return k
}

// tableOfKinds declares, for each type that controllers have informers for, what is dropped beside
// managedFields. A kind of which more is dropped must not be written back as it was read: see Guard.
func tableOfKinds() []*Kind {
	return []*Kind{
		newPodKind(droppedOfPods()...),
		// The images of a node are long and many, and only the scheduler reads them.
		newKind[corev1.Node]("status.images"),

		newKind[corev1.ConfigMap](),
		//lint:ignore SA1019 Endpoints are deprecated, and served all the same.
		newKind[corev1.Endpoints](),
		newKind[corev1.LimitRange](),
		newKind[corev1.Namespace](),
		newKind[corev1.PersistentVolume](),
		newKind[corev1.PersistentVolumeClaim](),
		newTemplateKind(func(o *corev1.PodTemplate) *corev1.PodTemplateSpec { return &o.Template }, 2),
		newTemplateKind(func(o *corev1.ReplicationController) *corev1.PodTemplateSpec {
			o.Spec.Template = &corev1.PodTemplateSpec{}
			return o.Spec.Template
		}, 2, 3),
		newKind[corev1.ResourceQuota](),
		newKind[corev1.Secret](),
		newKind[corev1.Service](),
		newKind[corev1.ServiceAccount](),
		newKind[admissionv1.ValidatingAdmissionPolicy](),
		newKind[appsv1.ControllerRevision](),
		newTemplateKind(func(o *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &o.Spec.Template }, 2, 2),
		newTemplateKind(func(o *appsv1.Deployment) *corev1.PodTemplateSpec { return &o.Spec.Template }, 2, 3),
		newTemplateKind(func(o *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &o.Spec.Template }, 2, 3),
		newTemplateKind(func(o *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &o.Spec.Template }, 2, 3),
		newKind[autoscalingv2.HorizontalPodAutoscaler](),
		newTemplateKind(func(o *batchv1.CronJob) *corev1.PodTemplateSpec { return &o.Spec.JobTemplate.Spec.Template }, 2, 5, 2, 6),
		newTemplateKind(func(o *batchv1.Job) *corev1.PodTemplateSpec { return &o.Spec.Template }, 2, 6),
		newKind[certificatesv1.CertificateSigningRequest](),
		newKind[coordinationv1.Lease](),
		newKind[discoveryv1.EndpointSlice](),
		newKind[networkingv1.IPAddress](),
		newKind[networkingv1.ServiceCIDR](),
		newKind[policyv1.PodDisruptionBudget](),
		newKind[rbacv1.ClusterRole](),
		newKind[resourcev1.ResourceClaim](),
		newKind[resourcev1.ResourceClaimTemplate](),
		newKind[resourcev1.ResourceSlice](),
		newKind[storagev1.CSIDriver](),
		newKind[storagev1.CSINode](),
		newKind[storagev1.StorageClass](),
		newKind[storagev1.VolumeAttachment](),
		newKind[storagev1.VolumeAttributesClass](),

		newMetadataKind(),
	}
}

// Kinds knows every type. Its methods may be called concurrently, but for Keep.
type Kinds struct {
	byType map[reflect.Type]*Kind
}

// NewKinds returns the kinds as they are declared in this package.
func NewKinds() *Kinds {
	ks := &Kinds{byType: map[reflect.Type]*Kind{}}
	for _, k := range tableOfKinds() {
		ks.byType[reflect.TypeOf(k.fresh())] = k
	}
	return ks
}

// For returns the Kind of an object's type; the object is not looked at. A type that is not declared
// loses its managedFields and shares nothing. It fails for a type that is no API object or does
// not know protobuf.
func (ks *Kinds) For(obj runtime.Object) (*Kind, error) {
	typ := reflect.TypeOf(obj)
	if k := ks.byType[typ]; k != nil {
		return k, nil
	}
	if _, ok := obj.(object); !ok || typ.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%T is not an API object that protobuf can encode", obj)
	}
	k := &Kind{
		dropped: []string{managedFields},
		fresh:   func() object { return reflect.New(typ.Elem()).Interface().(object) },
		decode:  decodeUnshared,
	}
	t, err := compileTrim(typ.Elem(), k.dropped)
	if err != nil {
		return nil, err
	}
	k.trim = t
	return k, nil
}

// Metadata is the Kind of objects of any type of which only the metadata is asked for.
func (ks *Kinds) Metadata() *Kind { return ks.byType[reflect.TypeFor[*metav1.PartialObjectMetadata]()] }

// Keep makes objects of a declared type keep fields that the table drops, for a controller that
// reads them; without paths, all of them. It is called before the first source is made.
func (ks *Kinds) Keep(obj runtime.Object, paths ...string) error {
	k := ks.byType[reflect.TypeOf(obj)]
	if k == nil {
		return fmt.Errorf("nothing is dropped of %T but its managed fields", obj)
	}
	kept := *k
	kept.dropped = slices.DeleteFunc(slices.Clone(k.dropped), func(p string) bool {
		return p != managedFields && (len(paths) == 0 || slices.Contains(paths, p))
	})
	for _, p := range paths {
		if !slices.Contains(k.dropped, p) {
			return fmt.Errorf("%q of %T is not dropped", p, obj)
		}
	}
	kept.compile()
	ks.byType[reflect.TypeOf(obj)] = &kept
	return nil
}

// decodeUnshared leaves all that is not dropped to the generated code.
func decodeUnshared(d *decoder, k *Kind, raw []byte) (runtime.Object, int, error) {
	var ok bool
	if d.rest, ok = k.trim.append(d.rest[:0], raw); !ok {
		return nil, 0, errUnusual
	}
	obj := k.fresh()
	if err := obj.Unmarshal(d.rest); err != nil {
		return nil, 0, err
	}
	return obj, bytesPerEncodedByte * len(d.rest), nil
}
