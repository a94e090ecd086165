// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestGuard(t *testing.T) {
	full := ordinaryPod(1)
	cached := trimmedPod(full)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"i"}}}}}
	cachedNode := &corev1.Node{ObjectMeta: node.ObjectMeta}
	for _, mediaType := range []string{protobuf, jsonType} {
		var put []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				body, err := io.ReadAll(r.Body)
				if err != nil || len(body) == 0 {
					t.Errorf("the body of a request is gone: %v", err)
				}
				put = append(put, r.URL.Path)
			}
			w.Header().Set("Content-Type", protobuf)
			switch {
			case strings.Contains(r.URL.Path, "missing"):
				w.WriteHeader(http.StatusNotFound)
			case strings.Contains(r.URL.Path, "/pods/"):
				_, _ = w.Write(encodeAs(t, protobuf, full))
			case strings.Contains(r.URL.Path, "/nodes/"):
				_, _ = w.Write(encodeAs(t, protobuf, node))
			default:
				_, _ = w.Write(encodeAs(t, protobuf, &corev1.ConfigMap{}))
			}
		}))
		defer server.Close()
		var reported []error
		config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType}}
		config.Wrap(NewKinds().Guard(func(err error) { reported = append(reported, err) }))
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		pods := client.CoreV1().Pods("shop")
		changed := full.DeepCopy()
		changed.Labels["new"] = "label"
		missing := cached.DeepCopy()
		missing.Name = "missing"
		for _, write := range []struct {
			what    string
			do      func() error
			refused bool
		}{
			{"a cached pod", func() error { _, err := pods.Update(ctx, cached, metav1.UpdateOptions{}); return err }, true},
			{"the status of a cached pod", func() error { _, err := pods.UpdateStatus(ctx, cached, metav1.UpdateOptions{}); return err }, true},
			{"a pod read live", func() error { _, err := pods.Update(ctx, changed, metav1.UpdateOptions{}); return err }, false},
			{"a patch", func() error {
				_, err := pods.Patch(ctx, cached.Name, "application/merge-patch+json", []byte(`{}`), metav1.PatchOptions{})
				return err
			}, false},
			{"the status of a cached node", func() error {
				_, err := client.CoreV1().Nodes().UpdateStatus(ctx, cachedNode, metav1.UpdateOptions{})
				return err
			}, true},
			{"a node read live", func() error {
				_, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
				return err
			}, false},
			{"a kind that keeps all", func() error {
				_, err := client.CoreV1().ConfigMaps("shop").Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.UpdateOptions{})
				return err
			}, false},
		} {
			before, sent := len(reported), len(put)
			err := write.do()
			if refused := err != nil; refused != write.refused || refused != (len(reported) > before) {
				t.Errorf("%s: PUT of %s: error %v, reported %d", mediaType, write.what, err, len(reported)-before)
			}
			if write.refused && len(put) > sent {
				t.Errorf("%s: %s reached the server", mediaType, write.what)
			}
		}
		// The server's refusal, not the guard's.
		if _, err := pods.Update(ctx, missing, metav1.UpdateOptions{}); err == nil || len(put) == 0 || !strings.HasSuffix(put[len(put)-1], "missing") {
			t.Errorf("%s: PUT of a pod that is gone: %v", mediaType, err)
		}
	}
}
