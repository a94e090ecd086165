// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/kcm-dev/kcm/pkg/controller/worker"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
)

const (
	// debugControllersPath is where the controllers show what they do.
	debugControllersPath = "/debug/controllers"
	// debugClientsPath is where their clients show how their requests fare.
	debugClientsPath = "/debug/clients"
)

// controllerRegistry knows the controllers that this process runs and the gates that their
// requests pass, for the health checks and the debug pages. The zero value is ready for use; it
// has no controllers until the process leads.
type controllerRegistry struct {
	// mu guards the following fields.
	mu          sync.Mutex
	controllers []*supervised
	gates       []*gate.Gate
}

func (r *controllerRegistry) addGate(g *gate.Gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gates = append(r.gates, g)
}

func (r *controllerRegistry) stats() []gate.Stats {
	r.mu.Lock()
	gates := slices.Clone(r.gates)
	r.mu.Unlock()
	stats := []gate.Stats{}
	for _, g := range gates {
		stats = append(stats, g.Stats()...)
	}
	return stats
}

func (r *controllerRegistry) add(controllers ...*supervised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllers = append(r.controllers, controllers...)
}

func (r *controllerRegistry) all() []*supervised {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.controllers)
}

func (r *controllerRegistry) named(name string) *supervised {
	for _, s := range r.all() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// controllerPage is what is shown of one controller.
type controllerPage struct {
	controllerStatus
	// Unhealthy is what the controller's health check says; empty when it is healthy.
	Unhealthy string          `json:"unhealthy,omitempty"`
	Workers   []worker.Record `json:"workers,omitempty"`
}

func newControllerPage(r *http.Request, s *supervised) controllerPage {
	page := controllerPage{controllerStatus: s.status()}
	if err := s.check(r); err != nil {
		page.Unhealthy = err.Error()
	}
	for _, w := range workersOf(s.instance().controller) {
		page.Workers = append(page.Workers, w.Record())
	}
	return page
}

// ServeHTTP serves
//
//	/debug/controllers               every controller, a line each
//	/debug/controllers/<name>        one controller with its workers' live records
//	/debug/controllers/<name>/…      the controller's own pages, if it has any
//
// as text, or as JSON for "Accept: application/json" or "?format=json".
func (r *controllerRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rest := strings.Trim(strings.TrimPrefix(req.URL.Path, debugControllersPath), "/")
	if rest == "" {
		r.serveList(w, req)
		return
	}
	name, sub, hasSub := strings.Cut(rest, "/")
	s := r.named(name)
	if s == nil {
		http.NotFound(w, req)
		return
	}
	if !hasSub {
		respond(w, req, newControllerPage(req, s), controllerPage.writeText)
		return
	}
	handler := debuggingHandlerOf(s.instance().controller)
	if handler == nil {
		http.NotFound(w, req)
		return
	}
	http.StripPrefix(strings.TrimSuffix(req.URL.Path, "/"+sub), handler).ServeHTTP(w, req)
}

func (r *controllerRegistry) serveList(w http.ResponseWriter, req *http.Request) {
	pages := []controllerPage{}
	for _, s := range r.all() {
		pages = append(pages, newControllerPage(req, s))
	}
	respond(w, req, pages, writeListText)
}

// respond writes v as JSON when the client asks for it, else as text.
func respond[T any](w http.ResponseWriter, req *http.Request, v T, text func(T, io.Writer)) {
	if req.URL.Query().Get("format") != "json" && !strings.Contains(req.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text(v, w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// An error here means that the client has gone.
	_ = encoder.Encode(v)
}

// serveClients serves /debug/clients: a line for each client that a controller got from the
// builders, by the client's name.
func (r *controllerRegistry) serveClients(w http.ResponseWriter, req *http.Request) {
	respond(w, req, r.stats(), writeClientsText)
}

func writeClientsText(stats []gate.Stats, w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "CLIENT\tREQUESTS\tWRITES\tFENCED\t429\tIN FLIGHT\tWINDOW\tWAITING\tPAUSED FOR")
	for _, s := range stats {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f\t%d\t%s\n", s.Controller, s.Requests, s.Writes, s.Refused, s.Rejected,
			s.InFlight, s.Window, s.Waiting, max(0, time.Until(s.PausedUntil)).Round(time.Millisecond))
	}
}

func writeListText(pages []controllerPage, w io.Writer) {
	if len(pages) == 0 {
		fmt.Fprintln(w, "No controller runs here: this process does not lead.")
		return
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "NAME\tPHASE\tFOR\tRESTARTS\tWAITING\tIN FLIGHT\tFAILING\tHEALTH")
	for _, p := range pages {
		waiting, inFlight, failing := 0, 0, 0
		for _, rec := range p.Workers {
			waiting += rec.Depth
			inFlight += len(rec.InFlight)
			failing += rec.FailingCount
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", p.Name, p.Phase, ago(p.Since), p.Restarts, waiting, inFlight, failing, orOK(p.Unhealthy))
	}
}

func (p controllerPage) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s: %s for %s, restarted %d times\nhealth: %s\n", p.Name, p.Phase, ago(p.Since), p.Restarts, orOK(p.Unhealthy))
	if p.LastFailure != "" {
		fmt.Fprintf(w, "last failure: %s\n", p.LastFailure)
	}
	for _, rec := range p.Workers {
		fmt.Fprintf(w, "\nqueue %q: %d workers, %d syncs, %d errors, %d panics\n", rec.Queue, rec.Workers, rec.Syncs, rec.Errors, rec.Panics)
		fmt.Fprintf(w, "  waiting: %d, of these from an initial list: %d\n", rec.Depth, rec.DepthInitial)
		if rec.OldestWaiting != nil {
			fmt.Fprintf(w, "  oldest waits for %s\n", ago(*rec.OldestWaiting))
		}
		for _, f := range rec.InFlight {
			fmt.Fprintf(w, "  in flight: %s for %s, %d requests, %d of them writes\n", f.Key, ago(f.Since), f.Requests, f.Writes)
		}
		if rec.FailingCount > 0 {
			fmt.Fprintf(w, "  failing: %d\n", rec.FailingCount)
		}
		for _, f := range rec.Failing {
			fmt.Fprintf(w, "  failing: %s since %s ago, %d times, retrying: %t: %s\n", f.Key, ago(f.Since), f.Failures, f.Retrying, f.LastError)
		}
	}
}

func ago(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }

func orOK(complaint string) string {
	if complaint == "" {
		return "ok"
	}
	return strings.ReplaceAll(complaint, "\n", "; ")
}
