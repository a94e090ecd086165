// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const kindUp = "../../hack/kind-up.sh"

// kubeadmPod is what kubeadm leaves on the node, in short.
const kubeadmPod = `apiVersion: v1
kind: Pod
metadata:
  labels: {component: kube-controller-manager, tier: control-plane}
  name: kube-controller-manager
  namespace: kube-system
spec:
  containers:
  - command: [kube-controller-manager, --kubeconfig=/etc/kubernetes/controller-manager.conf, --leader-elect=true]
    image: registry.k8s.io/kube-controller-manager:v1.37.2
    imagePullPolicy: IfNotPresent
    livenessProbe: {httpGet: {host: 127.0.0.1, path: /healthz, port: 10257, scheme: HTTPS}}
    name: kube-controller-manager
    volumeMounts: [{mountPath: /etc/kubernetes/pki, name: k8s-certs, readOnly: true}]
  hostNetwork: true
  volumes: [{hostPath: {path: /etc/kubernetes/pki, type: DirectoryOrCreate}, name: k8s-certs}]
`

// fakeDocker plays the engine and the node: what is run on the node is run here, and the kubelet runs what the manifest
// says. fakeKind plays kind. Both write down what they are asked for.
const fakeDocker = `#!/bin/bash
echo "docker $*" >>"$FAKE/calls"
case "$*" in
  info) ;;
  "exec kcm-test-control-plane uname -m") uname -m ;;
  "exec -i kcm-test-control-plane bash") PATH=$KUBECTL:$PATH MANIFESTS=$FAKE/manifests bash ;;
  *" get pod "*) echo "$(awk '$1 == "image:" { print $2 }' "$FAKE/manifests/kube-controller-manager.yaml") true" ;;
  *) exit 1 ;;
esac
`

const fakeKind = `#!/bin/bash
echo "kind $*" >>"$FAKE/calls"
case "$*" in
  "get clusters") echo other ;;
  "get nodes --name kcm-test") echo kcm-test-worker; echo kcm-test-control-plane ;;
  "get kubeconfig --name kcm-test") echo "a kubeconfig" ;;
esac
`

// There is no Docker where this runs: what the script asks for, and what it does on the node.
func TestKindUp(t *testing.T) {
	if _, err := os.Stat(kindUp); err != nil {
		t.Skipf("no checkout around this test (Bazel's sandbox): %v", err)
	}
	kubectl, err := exec.CommandContext(t.Context(), "../../hack/tools/build.sh", "kubectl").Output()
	if err != nil {
		t.Fatal(err)
	}
	fake := t.TempDir()
	for name, content := range map[string]string{
		"bin/docker": fakeDocker, "bin/kind": fakeKind, "manifests/kube-controller-manager.yaml": kubeadmPod,
	} {
		path := filepath.Join(fake, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	manifest := filepath.Join(fake, "manifests/kube-controller-manager.yaml")
	want := podOf(t, manifest)

	cmd := exec.CommandContext(t.Context(), kindUp, "kcm-test")
	cmd.Env = append(os.Environ(), "FAKE="+fake, "KUBECTL="+strings.TrimSpace(string(kubectl)),
		"PATH="+filepath.Join(fake, "bin")+":"+os.Getenv("PATH"), "KCM_IMAGE=registry.example/team/kcm", "KCM_NODE_IMAGE=kindest/node:v1.37.2")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}

	got := podOf(t, manifest)
	image := got.Spec.Containers[0].Image
	if !strings.HasPrefix(image, "registry.example/team/kcm:v1.") {
		t.Errorf("the node's pod has the image %q", image)
	}
	// All else stays as kubeadm has it.
	container := &want.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = image, corev1.PullNever
	container.SecurityContext = &corev1.SecurityContext{
		RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0), AllowPrivilegeEscalation: ptr.To(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the node's pod (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(manifest); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the manifest's mode is %v, %v; want it unchanged", info.Mode(), err)
	}

	calls, err := os.ReadFile(filepath.Join(fake, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"kind create cluster --name kcm-test --wait 5m --image kindest/node:v1.37.2\n",
		"kind load image-archive --name kcm-test _output/kind/image-linux-",
	} {
		if !strings.Contains(string(calls), call) {
			t.Errorf("%q was not called:\n%s", call, calls)
		}
	}
	if want := "kind's cluster kcm-test runs " + image + "\n"; !strings.Contains(string(output), want) {
		t.Errorf("it said %s\nwant %q", output, want)
	}
}

// What cannot work is one line, and nothing is started.
func TestKindUpMistakes(t *testing.T) {
	if _, err := os.Stat(kindUp); err != nil {
		t.Skipf("no checkout around this test (Bazel's sandbox): %v", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "docker"), []byte("#!/bin/bash\necho no engine >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":        "docker does not reach its engine (docker info): start it, or use make up, which needs none",
		"one two": `"two" is one argument too many: usage is hack/kind-up.sh [NAME]`,
		"Upper":   `NAME "Upper": allowed are lower-case letters, digits, "-" and "."`,
		"--nodes": `unknown flag "--nodes": usage is hack/kind-up.sh [NAME]`,
	} {
		cmd := exec.CommandContext(t.Context(), kindUp, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "PATH="+broken+":"+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		if err == nil || string(output) != "error: hack/kind-up.sh: "+want+"\n" {
			t.Errorf("%q: %v, %q; want an error and the line %q", args, err, output, want)
		}
	}
}
