// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	goruntime "runtime"

	"k8s.io/apimachinery/pkg/util/sets"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"
)

// NewBaseHandler returns the mux of a controller manager, named "controller-manager": healthzHandler on /healthz,
// /livez and /readyz and below them, /configz, /metrics, and if c enables profiling /debug/pprof and /debug/flags/v.
// Sub-paths of the health endpoints are not listed.
func NewBaseHandler(c *componentbaseconfig.DebuggingConfiguration, healthzHandler http.Handler) *mux.PathRecorderMux {
	m := mux.NewPathRecorderMux("controller-manager")
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		m.Handle(path, healthzHandler)
		m.UnlistedHandlePrefix(path+"/", healthzHandler)
	}
	if ptr.Deref(c.EnableProfiling, false) {
		routes.Profiling{}.Install(m)
		if ptr.Deref(c.EnableContentionProfiling, false) {
			goruntime.SetBlockProfileRate(1)
		}
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	configz.InstallHandler(m)
	m.Handle("/metrics", legacyregistry.Handler())
	return m
}

// BuildHandlerChain puts in front of a handler, outermost first: recovery from panics, logging, Cache-Control, and
// who asks for what and whether they may. A nil authenticator or authorizer, as on a loopback port for debugging,
// leaves its part out.
func BuildHandlerChain(handler http.Handler, authorization *apiserver.AuthorizationInfo, authentication *apiserver.AuthenticationInfo) http.Handler {
	resolver := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString(), GrouplessAPIPrefixes: sets.NewString()}
	if authorization != nil && authorization.Authorizer != nil {
		handler = genericapifilters.WithAuthorization(handler, authorization.Authorizer, clientscheme.Codecs)
	}
	if authentication != nil && authentication.Authenticator != nil {
		handler = genericapifilters.WithAuthentication(handler, authentication.Authenticator,
			genericapifilters.Unauthorized(clientscheme.Codecs), authentication.APIAudiences, authentication.RequestHeaderConfig)
	}
	handler = genericapifilters.WithRequestInfo(handler, resolver)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithHTTPLogging(handler)
	return genericfilters.WithPanicRecovery(handler, resolver)
}
