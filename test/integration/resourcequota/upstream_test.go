// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/kcm-dev/kcm/test/integration/framework"
)

func priorityClass(t *testing.T, env *framework.Env) string {
	t.Helper()
	name := "high-" + rand.String(5)
	pc := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000}
	if _, err := env.Client.SchedulingV1().PriorityClasses().Create(t.Context(), pc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// world is one of everything that quotas count in a way of its own.
type world struct {
	t            *testing.T
	env          *framework.Env
	ns           string
	high         string
	runtimeClass string
	devices      string // a DeviceClass
	extended     string // its extended resource
}

func must[T any](t *testing.T) func(T, error) T {
	return func(made T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

func newWorld(t *testing.T, env *framework.Env) *world {
	t.Helper()
	w := &world{t: t, env: env, ns: env.Namespace(t, "world"), high: priorityClass(t, env)}
	suffix := rand.String(5)
	w.runtimeClass, w.devices, w.extended = "heavy-"+suffix, "gpu-"+suffix+".example.com", "example.com/gpu-"+suffix
	must[*nodev1.RuntimeClass](t)(env.Client.NodeV1().RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.runtimeClass}, Handler: "heavy",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("10Mi")}},
	}, metav1.CreateOptions{}))
	must[*resourceapi.DeviceClass](t)(env.Client.ResourceV1().DeviceClasses().Create(t.Context(), &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.devices}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &w.extended},
	}, metav1.CreateOptions{}))
	return w
}

// quotas creates quotas with each name and each scope; those of compute resources apart, since they
// refuse pods that do not say what they need.
func (w *world) quotas(compute bool) []string {
	w.t.Helper()
	pods := []string{"pods=1000", "count/pods=1000"}
	resources := append(slices.Clone(pods), "cpu=1000", "memory=1000Gi", "ephemeral-storage=1000Gi", "requests.cpu=1000", "requests.memory=1000Gi",
		"requests.ephemeral-storage=1000Gi", "limits.cpu=1000", "limits.memory=1000Gi", "limits.ephemeral-storage=1000Gi")
	// Quotas with a scope allow no other names.
	scoped := []string{"pods=1000", "cpu=1000", "memory=1000Gi", "requests.cpu=1000", "requests.memory=1000Gi", "limits.cpu=1000", "limits.memory=1000Gi"}
	type change = func(*corev1.ResourceQuota)
	for name, q := range map[string]struct {
		limits []string
		change change
	}{
		"objects": {[]string{"services=100", "count/services=100", "services.nodeports=100", "services.loadbalancers=100", "configmaps=100", "count/configmaps=100",
			"secrets=100", "count/secrets=100", "resourcequotas=100", "count/resourcequotas=100", "replicationcontrollers=100", "count/deployments.apps=100",
			"count/jobs.batch=100", "count/serviceaccounts=100", "count/leases.coordination.k8s.io=100", "count/no.such.group=100"}, func(*corev1.ResourceQuota) {}},
		"claims": {[]string{"persistentvolumeclaims=100", "count/persistentvolumeclaims=100", "requests.storage=1000Gi", "gold.storageclass.storage.k8s.io/requests.storage=1000Gi",
			"gold.storageclass.storage.k8s.io/persistentvolumeclaims=100", "none.storageclass.storage.k8s.io/persistentvolumeclaims=100"}, func(*corev1.ResourceQuota) {}},
		"devices": {[]string{"count/resourceclaims.resource.k8s.io=100", w.devices + ".deviceclass.resource.k8s.io/devices=1000", "other.deviceclass.resource.k8s.io/devices=1000",
			"requests." + w.extended + "=1000", "requests.deviceclass.resource.kubernetes.io/" + w.devices + "=1000", "requests.example.com/other=1000"}, func(*corev1.ResourceQuota) {}},
		"compute":         {append(slices.Clone(resources), "hugepages-2Mi=1Gi", "requests.hugepages-2Mi=1Gi"), func(*corev1.ResourceQuota) {}},
		"ending":          {scoped, scopes(corev1.ResourceQuotaScopeTerminating)},
		"lasting":         {scoped, scopes(corev1.ResourceQuotaScopeNotTerminating)},
		"best-effort":     {pods[:1], scopes(corev1.ResourceQuotaScopeBestEffort)},
		"worst-effort":    {scoped, scopes(corev1.ResourceQuotaScopeNotBestEffort)},
		"both":            {scoped, scopes(corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating)},
		"affinity":        {pods[:1], scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)},
		"high":            {scoped, priority(corev1.ScopeSelectorOpIn, w.high, "else")},
		"not-high":        {scoped, priority(corev1.ScopeSelectorOpNotIn, w.high)},
		"some-class":      {scoped, priority(corev1.ScopeSelectorOpExists)},
		"no-class":        {scoped, priority(corev1.ScopeSelectorOpDoesNotExist)},
		"any-class":       {scoped, scopes(corev1.ResourceQuotaScopePriorityClass)},
		"fast":            {[]string{"persistentvolumeclaims=100", "requests.storage=1000Gi"}, attributes(corev1.ScopeSelectorOpIn, "fast")},
		"not-fast":        {[]string{"persistentvolumeclaims=100", "requests.storage=1000Gi"}, attributes(corev1.ScopeSelectorOpNotIn, "fast")},
		"some-attributes": {[]string{"persistentvolumeclaims=100"}, attributes(corev1.ScopeSelectorOpExists)},
		"no-attributes":   {[]string{"persistentvolumeclaims=100"}, attributes(corev1.ScopeSelectorOpDoesNotExist)},
	} {
		if slices.Contains(q.limits, "cpu=1000") == compute {
			createQuota(w.t, w.env.Client, w.ns, name, hard(q.limits...), q.change)
		}
	}
	list := must[*corev1.ResourceQuotaList](w.t)(w.env.Client.CoreV1().ResourceQuotas(w.ns).List(w.t.Context(), metav1.ListOptions{}))
	var names []string
	for _, q := range list.Items {
		names = append(names, q.Name)
	}
	return names
}

func attributes(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: operator, Values: values},
		}}
	}
}

func list(pairs ...string) corev1.ResourceList { return hard(pairs...) }

// populate creates the objects.
func (w *world) populate() {
	w.t.Helper()
	always := corev1.ContainerRestartPolicyAlways
	changes := map[string]func(*corev1.Pod){
		"plain": func(*corev1.Pod) {},
		"asks": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list("cpu=100m", "memory=64Mi", "ephemeral-storage=1Gi")
		},
		"limited": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = list("cpu=1", "memory=128Mi", "ephemeral-storage=2Gi", "hugepages-2Mi=4Mi")
		},
		"extended": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = list(w.extended+"=2", "example.com/other=3")
		},
		"implicit": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = list("deviceclass.resource.kubernetes.io/" + w.devices + "=5")
		},
		"zero":    func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("cpu=0") },
		"storage": func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("ephemeral-storage=1Gi") },
		"init": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list("cpu=100m")
			p.Spec.InitContainers = []corev1.Container{
				{Name: "big", Image: "i", Resources: corev1.ResourceRequirements{Requests: list("cpu=700m"), Limits: list("memory=1Gi")}},
				{Name: "sidecar", Image: "i", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: list("cpu=30m")}},
			}
		},
		"overhead": func(p *corev1.Pod) {
			p.Spec.RuntimeClassName = &w.runtimeClass
			p.Spec.Containers[0].Resources.Requests = list("cpu=10m")
		},
		"overhead-limited": func(p *corev1.Pod) {
			p.Spec.RuntimeClassName = &w.runtimeClass
			p.Spec.Containers[0].Resources.Limits = list("cpu=10m")
		},
		"overhead-only": func(p *corev1.Pod) { p.Spec.RuntimeClassName = &w.runtimeClass },
		"pod-level": func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=300m", "memory=200Mi"), Limits: list("cpu=600m")}
			p.Spec.Containers[0].Resources.Requests = list("cpu=100m")
		},
		"ends": func(p *corev1.Pod) {
			p.Spec.ActiveDeadlineSeconds = new(int64(600))
			p.Spec.Containers[0].Resources.Requests = list("cpu=7m")
		},
		"high": func(p *corev1.Pod) {
			p.Spec.PriorityClassName = w.high
			p.Spec.Containers[0].Resources.Requests = list("cpu=9m")
		},
		"near": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "k", Namespaces: []string{"x"}}}}}
		},
		"far": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "k", NamespaceSelector: &metav1.LabelSelector{}}}}}}
		},
		"own": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "k"}}}}
		},
	}
	for name, change := range changes {
		mustPod(w.t, w.env, w.ns, pod(name, change))
	}
	w.services()
	w.claims()
	w.devicesClaimed()
	must[*corev1.Secret](w.t)(w.env.Client.CoreV1().Secrets(w.ns).Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}))
	must[*corev1.ConfigMap](w.t)(w.env.Client.CoreV1().ConfigMaps(w.ns).Create(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}))
	must[*corev1.ServiceAccount](w.t)(w.env.Client.CoreV1().ServiceAccounts(w.ns).Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}))
}

func (w *world) services() {
	ports := []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81}}
	for name, spec := range map[string]corev1.ServiceSpec{
		"cluster":     {Ports: ports},
		"node":        {Type: corev1.ServiceTypeNodePort, Ports: ports},
		"lb":          {Type: corev1.ServiceTypeLoadBalancer, Ports: ports},
		"lb-no-ports": {Type: corev1.ServiceTypeLoadBalancer, Ports: ports, AllocateLoadBalancerNodePorts: new(false)},
		"lb-one-port": {Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30000 + int32(rand.IntnRange(1, 2700))}, {Name: "b", Port: 81}}, AllocateLoadBalancerNodePorts: new(false)},
		"name":        {Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	} {
		must[*corev1.Service](w.t)(w.env.Client.CoreV1().Services(w.ns).Create(w.t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	}
}

func (w *world) claims() {
	claim := func(name, size string, change func(*corev1.PersistentVolumeClaim)) {
		w.t.Helper()
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: list("storage=" + size)},
		}}
		change(c)
		must[*corev1.PersistentVolumeClaim](w.t)(w.env.Client.CoreV1().PersistentVolumeClaims(w.ns).Create(w.t.Context(), c, metav1.CreateOptions{}))
	}
	claim("plain", "1Gi", func(*corev1.PersistentVolumeClaim) {})
	claim("gold", "2Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("gold") })
	claim("beta", "4Gi", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold"}
	})
	claim("fast", "8Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") })
	claim("slow", "16Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("slow") })
}

func (w *world) devicesClaimed() {
	exactly := func(class string, mode resourceapi.DeviceAllocationMode, n int64) resourceapi.DeviceRequest {
		return resourceapi.DeviceRequest{Name: "r-" + rand.String(4), Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: n}}
	}
	first := func(requests ...resourceapi.DeviceSubRequest) resourceapi.DeviceRequest {
		for i := range requests {
			requests[i].Name = fmt.Sprint("s", i)
			requests[i].AllocationMode = resourceapi.DeviceAllocationModeExactCount
		}
		return resourceapi.DeviceRequest{Name: "r-" + rand.String(4), FirstAvailable: requests}
	}
	for name, requests := range map[string][]resourceapi.DeviceRequest{
		"two":   {exactly(w.devices, resourceapi.DeviceAllocationModeExactCount, 2)},
		"all":   {exactly(w.devices, resourceapi.DeviceAllocationModeAll, 0)},
		"mixed": {exactly(w.devices, resourceapi.DeviceAllocationModeExactCount, 1), exactly("other", resourceapi.DeviceAllocationModeExactCount, 3)},
		"first": {first(resourceapi.DeviceSubRequest{DeviceClassName: w.devices, Count: 5}, resourceapi.DeviceSubRequest{DeviceClassName: w.devices, Count: 7}, resourceapi.DeviceSubRequest{DeviceClassName: "other", Count: 2})},
	} {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}}}
		must[*resourceapi.ResourceClaim](w.t)(w.env.Client.ResourceV1().ResourceClaims(w.ns).Create(w.t.Context(), claim, metav1.CreateOptions{}))
	}
	// Claims that stand for extended resources of pods, and one that only says so.
	ofPod := func(name, owner string, devices int64) {
		w.t.Helper()
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}},
			Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{exactly(w.devices, resourceapi.DeviceAllocationModeExactCount, devices)}}},
		}
		if owner != "" {
			p := must[*corev1.Pod](w.t)(w.env.Client.CoreV1().Pods(w.ns).Get(w.t.Context(), owner, metav1.GetOptions{}))
			claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod"))}
		}
		must[*resourceapi.ResourceClaim](w.t)(w.env.Client.ResourceV1().ResourceClaims(w.ns).Create(w.t.Context(), claim, metav1.CreateOptions{}))
	}
	ofPod("of-extended", "extended", 10)
	ofPod("of-implicit", "implicit", 3)
	ofPod("of-plain", "plain", 100)
	ofPod("of-none", "", 200)
}

// change ends, deletes and resizes some of the objects.
func (w *world) change() {
	w.t.Helper()
	status := func(name string, change func(*corev1.Pod)) {
		w.t.Helper()
		p := must[*corev1.Pod](w.t)(w.env.Client.CoreV1().Pods(w.ns).Get(w.t.Context(), name, metav1.GetOptions{}))
		change(p)
		must[*corev1.Pod](w.t)(w.env.Client.CoreV1().Pods(w.ns).UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{}))
	}
	status("limited", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	status("high", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	// Allocated is more than asked for: a resize downward that is under way.
	status("asks", func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "i", AllocatedResources: list("cpu=400m", "memory=64Mi"),
			Resources: &corev1.ResourceRequirements{Requests: list("cpu=500m", "memory=64Mi")}}}
	})
	deletePod(w.t, w.env, w.ns, "near")
	c := must[*corev1.PersistentVolumeClaim](w.t)(w.env.Client.CoreV1().PersistentVolumeClaims(w.ns).Get(w.t.Context(), "slow", metav1.GetOptions{}))
	c.Status.CurrentVolumeAttributesClassName = new("fast")
	c.Status.AllocatedResources = list("storage=20Gi")
	must[*corev1.PersistentVolumeClaim](w.t)(w.env.Client.CoreV1().PersistentVolumeClaims(w.ns).UpdateStatus(w.t.Context(), c, metav1.UpdateOptions{}))
	if err := w.env.Client.CoreV1().Services(w.ns).Delete(w.t.Context(), "node", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.env.Client.ResourceV1().ResourceClaims(w.ns).Delete(w.t.Context(), "mixed", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// snapshot returns what all quotas say is used.
func (w *world) snapshot(names []string) string {
	w.t.Helper()
	var all []string
	for _, name := range names {
		q := must[*corev1.ResourceQuota](w.t)(w.env.Client.CoreV1().ResourceQuotas(w.ns).Get(w.t.Context(), name, metav1.GetOptions{}))
		for _, u := range used(q) {
			all = append(all, name+": "+u)
		}
	}
	return strings.Join(all, "\n")
}

// settled is the snapshot once it has not changed for three seconds: a lower count is not believed
// right after a charge.
func (w *world) settled(names []string) string {
	w.t.Helper()
	last, since := "", time.Now()
	w.env.WaitFor(w.t, "the counts to settle", timeout, func(context.Context) (bool, error) {
		if now := w.snapshot(names); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second, nil
	})
	return last
}

// recount has all quotas counted anew, by changing what may be used.
func (w *world) recount(names []string, marker int) {
	w.t.Helper()
	key := corev1.ResourceName("count/recount.example.com")
	for _, name := range names {
		patch := fmt.Sprintf(`{"spec":{"hard":{%q:"%d"}}}`, key, marker)
		if name == "best-effort" || len(quotaScopes(w, name)) > 0 {
			patch = fmt.Sprintf(`{"spec":{"hard":{%q:"%d"}}}`, firstName(w, name), 1000+marker)
		}
		must[*corev1.ResourceQuota](w.t)(w.env.Client.CoreV1().ResourceQuotas(w.ns).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
	}
	for _, name := range names {
		w.env.WaitFor(w.t, "quota "+name+" to be counted", timeout, func(ctx context.Context) (bool, error) {
			q, err := w.env.Client.CoreV1().ResourceQuotas(w.ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for limit, quantity := range q.Spec.Hard {
				if shown, ok := q.Status.Hard[limit]; !ok || shown.Cmp(quantity) != 0 {
					return false, nil
				}
			}
			return true, nil
		})
	}
}

func quotaScopes(w *world, name string) []string {
	q := must[*corev1.ResourceQuota](w.t)(w.env.Client.CoreV1().ResourceQuotas(w.ns).Get(w.t.Context(), name, metav1.GetOptions{}))
	var all []string
	for _, s := range q.Spec.Scopes {
		all = append(all, string(s))
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, "selector")
	}
	return all
}

// firstName is a name of a quota that can be changed to any number.
func firstName(w *world, name string) string {
	q := must[*corev1.ResourceQuota](w.t)(w.env.Client.CoreV1().ResourceQuotas(w.ns).Get(w.t.Context(), name, metav1.GetOptions{}))
	for _, limit := range []corev1.ResourceName{"pods", "persistentvolumeclaims"} {
		if _, ok := q.Spec.Hard[limit]; ok {
			return string(limit)
		}
	}
	w.t.Fatalf("quota %s has no number", name)
	return ""
}

// What admission charges, object by object, is what a count of them all finds; and a count after
// changes finds what upstream's controller finds.
func TestCountsAsUpstream(t *testing.T) {
	env := framework.New(t)
	ours := start(t, env, framework.ControllersOptions{}, 0)
	w := newWorld(t, env)
	names := w.quotas(false)
	w.recount(names, 1)
	w.populate()
	charged := w.snapshot(names)
	w.recount(names, 2)
	if counted := w.settled(names); counted != charged {
		t.Errorf("counted after admission had charged:\n%s", difference(charged, counted))
	}
	names = w.quotas(true)
	w.change()
	w.recount(names, 3)
	counted := w.settled(names)
	ours.Stop()
	// Other controllers would change what is counted. (Lists of flags add up.)
	args := slices.DeleteFunc(env.ControlPlane.ManagerArgs(), func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") })
	env.StartManager(t, framework.ManagerOptions{
		Name: "upstream-manager", Binary: env.UpstreamManager(t), BareArgs: true, Args: append(args, "--controllers=resourcequota-controller"),
	})
	w.recount(names, 4)
	if theirs := w.settled(names); theirs != counted {
		t.Errorf("upstream (+) counts else than we (-):\n%s", difference(counted, theirs))
	}
}

// difference lists the lines that only one of two texts has.
func difference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	var all []string
	for _, line := range left {
		if !slices.Contains(right, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range right {
		if !slices.Contains(left, line) {
			all = append(all, "+ "+line)
		}
	}
	slices.SortFunc(all, func(x, y string) int { return strings.Compare(x[2:], y[2:]) })
	return strings.Join(all, "\n")
}
