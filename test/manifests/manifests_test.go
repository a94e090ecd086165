// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests tests the manifests of a release against the types that read them and the program that they run.
package manifests

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
)

const folder = "../../build/manifests"

// decode reads all objects of one of the release's manifests.
func decode(t *testing.T, name string) []runtime.Object {
	t.Helper()
	return decodeFile(t, filepath.Join(folder, name))
}

// decodeFile reads all objects of a manifest, and fails on fields that they do not have.
func decodeFile(t *testing.T, path string) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data))); ; {
		document := make([]byte, len(data))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := strict.Decode(document[:n], nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, document[:n])
		}
		objects = append(objects, object)
	}
}

func staticPod(t *testing.T) *corev1.Pod {
	t.Helper()
	return podOf(t, filepath.Join(folder, "kube-controller-manager.yaml"))
}

// podOf reads a manifest of one Pod.
func podOf(t *testing.T, path string) *corev1.Pod {
	t.Helper()
	objects := decodeFile(t, path)
	if len(objects) != 1 {
		t.Fatalf("%s has %d objects, want one", path, len(objects))
	}
	pod, ok := objects[0].(*corev1.Pod)
	if !ok {
		t.Fatalf("%s is of a %T, want a Pod", path, objects[0])
	}
	return pod
}

// The program takes the flags of the static pod.
func TestStaticPodFlags(t *testing.T) {
	command := staticPod(t).Spec.Containers[0].Command
	if command[0] != "kube-controller-manager" {
		t.Errorf("the program is %q", command[0])
	}
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range o.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()).FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(command[1:]); err != nil {
		t.Error(err)
	}
	if flags.NArg() > 0 {
		t.Errorf("arguments that are no flags: %v", flags.Args())
	}
}

func TestStaticPodProbes(t *testing.T) {
	c := staticPod(t).Spec.Containers[0]
	for name, probe := range map[string]struct {
		*corev1.Probe
		path string
	}{
		"startup": {c.StartupProbe, "/livez"}, "liveness": {c.LivenessProbe, "/livez"}, "readiness": {c.ReadinessProbe, "/readyz"},
	} {
		switch {
		case probe.Probe == nil:
			t.Errorf("there is no %s probe", name)
		case probe.HTTPGet.Path != probe.path || probe.HTTPGet.Port.IntValue() != 10257 || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS:
			t.Errorf("the %s probe asks %+v, want %s by HTTPS on port 10257", name, probe.HTTPGet, probe.path)
		}
	}
}

// Every file that a flag names is in a volume.
func TestStaticPodMountsWhatItReads(t *testing.T) {
	pod := staticPod(t)
	c := pod.Spec.Containers[0]
	for _, argument := range c.Command {
		_, path, ok := strings.Cut(argument, "=/")
		if !ok {
			continue
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return "/"+path == m.MountPath || strings.HasPrefix("/"+path, m.MountPath+"/")
		}) {
			t.Errorf("%s: no volume is mounted there", argument)
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == m.Name && v.HostPath != nil && v.HostPath.Path == m.MountPath
		}) {
			t.Errorf("the mount %s has no volume of that name and path", m.Name)
		}
	}
}

func TestStaticPodRights(t *testing.T) {
	s := staticPod(t).Spec.Containers[0].SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("the security context is %+v, want no capability, no escalation, a read-only root", s)
	}
}

// A role without a subject, or a binding that reaches further than its name says, is found here and not in a cluster.
func TestRBAC(t *testing.T) {
	var accounts []string
	for _, object := range decode(t, "rbac.yaml") {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			accounts = append(accounts, o.Namespace+"/"+o.Name)
		case *rbacv1.ClusterRole:
			for _, rule := range o.Rules {
				if len(rule.Resources) > 0 || !slices.Equal(rule.Verbs, []string{"get"}) || len(rule.NonResourceURLs) == 0 {
					t.Errorf("%s: %+v, want to read pages and nothing else", o.Name, rule)
				}
			}
		case *rbacv1.ClusterRoleBinding:
			checkBinding(t, o.Name, o.RoleRef, o.Subjects, accounts)
		case *rbacv1.RoleBinding:
			if o.Namespace != "kube-system" {
				t.Errorf("%s is in namespace %q", o.Name, o.Namespace)
			}
			checkBinding(t, o.Name, o.RoleRef, o.Subjects, accounts)
		default:
			t.Errorf("an object of type %T", object)
		}
	}
	if len(accounts) == 0 {
		t.Error("no service account")
	}
}

func checkBinding(t *testing.T, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject, accounts []string) {
	t.Helper()
	// Those that the API server makes.
	if !strings.HasPrefix(role.Name, "system:") && role.Name != "extension-apiserver-authentication-reader" {
		t.Errorf("%s binds %s, which no API server has", name, role.Name)
	}
	for _, s := range subjects {
		if s.Kind != rbacv1.ServiceAccountKind || !slices.Contains(accounts, s.Namespace+"/"+s.Name) {
			t.Errorf("%s is for %+v, which the manifest does not have", name, s)
		}
	}
}
