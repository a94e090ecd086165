// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/flagz"
	apiserverhealthz "k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/statusz"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/prometheus/slis"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	kubectrlmgrconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/pkg/features"
	genericapp "github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/app"
)

// ConfigzName is the name of the configuration on /configz.
const ConfigzName = "kubecontrollermanager.config.k8s.io"

// pages are what the manager serves beside what every controller manager does.
type pages struct {
	// health serves /healthz, /livez and /readyz and what is below them.
	health http.Handler
	// registry shows what the controllers and their clients do.
	registry *controllerRegistry
	// informers shows what the informers hold and hear.
	informers *informerView
}

// newHealthPages serves a check per controller on /healthz, and the checks of the process and of
// its readiness on /livez and /readyz, which upstream lacks.
//
// A check apart is served on its sub-path of /healthz alone and does not count for /healthz itself: it
// is about what alerts should tell and a restart would not mend.
func newHealthPages(healthz http.Handler, livez, readyz []apiserverhealthz.HealthChecker, apart ...apiserverhealthz.HealthChecker) http.Handler {
	health := http.NewServeMux()
	health.Handle("/healthz", healthz)
	health.Handle("/healthz/", healthz)
	for _, check := range apart {
		health.HandleFunc("/healthz/"+check.Name(), func(w http.ResponseWriter, req *http.Request) {
			if err := check.Check(req); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, "ok") // Whom the answer does not reach has gone.
		})
	}
	apiserverhealthz.InstallLivezHandler(health, livez...)
	apiserverhealthz.InstallReadyzHandler(health, readyz...)
	return health
}

// newBaseHandler returns the mux of everything the manager serves, without access control.
func newBaseHandler(c *config.CompletedConfig, p pages) (*mux.PathRecorderMux, error) {
	base := genericapp.NewBaseHandler(&c.ComponentConfig.Generic.Debugging, p.health)
	slis.SLIMetricsWithReset{}.Install(base)
	base.UnlistedHandle(debugControllersPath, p.registry)
	base.UnlistedHandlePrefix(debugControllersPath+"/", p.registry)
	base.UnlistedHandleFunc(debugClientsPath, p.registry.serveClients)
	base.UnlistedHandle(debugInformersPath, p.informers)
	base.UnlistedHandlePrefix(debugInformersPath+"/", p.informers)

	// component-base's registry of configurations is one per process; this page is the manager's own.
	page, err := configzPage(c)
	if err != nil {
		return nil, err
	}
	base.Unregister(configz.DefaultConfigzPath)
	base.Handle(configz.DefaultConfigzPath, page)

	gates := c.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if features.EnabledIn(gates, zpagesfeatures.ComponentFlagz) && c.Flagz != nil {
		flagz.Install(base, managerName, c.Flagz)
	}
	if features.EnabledIn(gates, zpagesfeatures.ComponentStatusz) {
		version := c.ComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
		statusz.Install(base, managerName, statusz.NewRegistry(version, statusz.WithListedPaths(base.ListedPaths())))
	}
	return base, nil
}

// configzPage serves the configuration as it was at start-up.
func configzPage(c *config.CompletedConfig) (http.HandlerFunc, error) {
	shown := c.ComponentConfig
	shown.TypeMeta = metav1.TypeMeta{
		APIVersion: kubectrlmgrconfig.SchemeGroupVersion.String(),
		Kind:       "KubeControllerManagerConfiguration",
	}
	body, err := json.Marshal(map[string]any{ConfigzName: shown})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration for %s: %w", configz.DefaultConfigzPath, err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// An error here means that the client has gone.
		_, _ = w.Write(body)
	}, nil
}

// serve serves handler as the configuration says: in HTTPS behind authentication and
// authorization, and on the deprecated plain port, where there is one. It returns once the
// listeners accept; the servers stop when ctx is done, and are waited for in wg.
func serve(ctx context.Context, wg *sync.WaitGroup, c *config.CompletedConfig, handler http.Handler) error {
	if c.SecureServing != nil {
		guarded := genericapp.BuildHandlerChain(handler, &c.Authorization, &c.Authentication)
		stopped, listenerStopped, err := c.SecureServing.Serve(guarded, 0, ctx.Done())
		if err != nil {
			return fmt.Errorf("serving HTTPS: %w", err)
		}
		wg.Go(func() {
			<-listenerStopped
			<-stopped
		})
	}
	if c.InsecureServing != nil {
		open := genericapp.BuildHandlerChain(handler, nil, nil)
		if err := c.InsecureServing.Serve(open, 0, ctx.Done()); err != nil {
			return fmt.Errorf("serving plain HTTP: %w", err)
		}
	}
	return nil
}
