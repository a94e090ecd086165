// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// WaitForAPIServer waits until the API server's /healthz answers 200, asking once a second, for timeout at the most.
func WaitForAPIServer(ctx context.Context, client clientset.Interface, timeout time.Duration) error {
	var last error
	err := utilwait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		status := 0
		result := client.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).StatusCode(&status)
		if err := result.Error(); err != nil {
			last = fmt.Errorf("failed to get apiserver /healthz status: %w", err)
			return false, nil
		}
		if status != http.StatusOK {
			content, _ := result.Raw() // an answer without an error has its body
			last = fmt.Errorf("APIServer isn't healthy: %s", content)
			klog.FromContext(ctx).Info("API server is not healthy yet. Waiting a little while", "response", string(content))
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// IsControllerEnabled reports whether a list like that of --controllers asks for the controller called name. The
// first entry that speaks of it decides: "name" or "-name". Otherwise "*" stands for all that are not disabled by
// default.
func IsControllerEnabled(name string, disabledByDefault sets.Set[string], controllers []string) bool {
	star := false
	for _, entry := range controllers {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		case "*":
			star = true
		}
	}
	return star && !disabledByDefault.Has(name)
}
