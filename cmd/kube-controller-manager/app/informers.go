// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/tools/cache"
)

// debugInformersPath is where the informers show what they hold and hear.
const debugInformersPath = "/debug/informers"

// statusReporter is a factory that tells what its informers are doing.
type statusReporter interface {
	Statuses(now time.Time) []cache.Status
}

// informerView shows the informers of this process. The zero value has none.
type informerView struct {
	// mu guards the following fields.
	mu              sync.Mutex
	typed, metadata statusReporter // nil before the informers are made
}

func (v *informerView) show(typed, metadata statusReporter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.typed, v.metadata = typed, metadata
}

// statuses returns what the typed informers, and those of metadata, are doing.
func (v *informerView) statuses() (typed, metadata []cache.Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.typed == nil {
		return nil, nil
	}
	now := time.Now()
	return v.typed.Statuses(now), v.metadata.Statuses(now)
}

// check fails when the typed informer of a resource that could be watched before has had no watch, or
// has heard nothing, for too long.
//
// It says nothing while no informer has a watch, since it is the API server then that is away, which
// a restart of this process would not change. For the same reason it leaves out what was never
// listed (which /readyz tells) and metadata informers: any user can define a resource whose
// conversion fails.
func (v *informerView) check(*http.Request) error {
	typed, _ := v.statuses()
	return unhealthy(typed, slices.DeleteFunc(slices.Clone(typed), func(s cache.Status) bool { return !s.Synced }))
}

// checkAll fails as check does, but for any informer at all, were it never filled. It is a check apart,
// which no probe must ask.
func (v *informerView) checkAll(*http.Request) error {
	typed, metadata := v.statuses()
	return unhealthy(typed, slices.Concat(typed, metadata))
}

// unhealthy joins what ails some informers, unless the typed ones say that the API server is away.
func unhealthy(typed, some []cache.Status) error {
	if !slices.ContainsFunc(typed, func(s cache.Status) bool { return s.Watching != nil }) {
		return nil
	}
	var errs []error
	for _, s := range some {
		if s.Unhealthy != "" {
			errs = append(errs, errors.New(s.Unhealthy))
		}
	}
	return errors.Join(errs...)
}

// ServeHTTP serves
//
//	/debug/informers             every informer, a line each
//	/debug/informers/<resource>  one informer with its handlers
//
// as text, or as JSON for "Accept: application/json" or "?format=json".
func (v *informerView) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	typed, metadata := v.statuses()
	statuses := append(append([]cache.Status{}, typed...), metadata...)
	name := strings.Trim(strings.TrimPrefix(req.URL.Path, debugInformersPath), "/")
	if name == "" {
		respond(w, req, statuses, writeInformersText)
		return
	}
	named := slices.DeleteFunc(statuses, func(s cache.Status) bool { return s.Resource != name })
	if len(named) == 0 {
		http.NotFound(w, req)
		return
	}
	respond(w, req, named, func(statuses []cache.Status, w io.Writer) {
		for _, s := range statuses {
			writeInformerText(s, w)
		}
	})
}

func writeInformersText(statuses []cache.Status, w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "RESOURCE\tOBJECTS\tBYTES\tVERSION\tWATCH FOR\tLAST SIGN\tEVENTS\tLISTS\tHANDLERS\tWAITING\tHEALTH")
	for _, s := range statuses {
		waiting, lists := 0, 0
		for _, h := range s.Handlers {
			waiting += h.Waiting
		}
		for _, n := range s.Lists {
			lists += n
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", s.Resource, s.Objects, s.Bytes, s.ResourceVersion,
			agoOr(s.Watching, "none"), agoOr(s.LastSign, "never"), s.Events, lists, len(s.Handlers), waiting, orOK(s.Unhealthy))
	}
}

func writeInformerText(s cache.Status, w io.Writer) {
	fmt.Fprintf(w, "%s: %d objects, %d bytes, at version %s, %d indexes\nhealth: %s\n", s.Resource, s.Objects, s.Bytes, s.ResourceVersion, s.Indexes, orOK(s.Unhealthy))
	fmt.Fprintf(w, "watch: open for %s, last sign of life %s ago, %d watches and %d events in all\n",
		agoOr(s.Watching, "none"), agoOr(s.LastSign, "never"), s.Watches, s.Events)
	for _, why := range slices.Sorted(maps.Keys(s.Lists)) {
		fmt.Fprintf(w, "lists: %d (%s)\n", s.Lists[why], why)
	}
	if s.LastError != "" {
		fmt.Fprintf(w, "last error: %s\n", s.LastError)
	}
	for _, h := range s.Handlers {
		fmt.Fprintf(w, "handler %s: told %d times, %d objects wait, busy for %s, initial list told: %t\n",
			h.Name, h.Told, h.Waiting, agoOr(h.BusySince, "nothing"), h.Synced)
	}
}

func agoOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return ago(*t).String()
}
