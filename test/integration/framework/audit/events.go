// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Event is one answered request.
type Event struct{ auditv1.Event }

// Resource is the request's resource as "deployments.apps/status"; "pods" in the core group.
func (e Event) Resource() string {
	if e.ObjectRef == nil {
		return e.RequestURI
	}
	r := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		r += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		r += "/" + e.ObjectRef.Subresource
	}
	return r
}

// Object is the request's object as "namespace/name"; a part that is unknown is empty.
func (e Event) Object() string {
	if e.ObjectRef == nil {
		return ""
	}
	return e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
}

// Code is the HTTP status of the answer; 0 when the server failed before it had one.
func (e Event) Code() int {
	if e.ResponseStatus == nil {
		return 0
	}
	return int(e.ResponseStatus.Code)
}

// Received is when the request arrived, Answered when it had been answered.
func (e Event) Received() time.Time { return e.RequestReceivedTimestamp.Time }

// Answered is when the request had been answered.
func (e Event) Answered() time.Time { return e.StageTimestamp.Time }

// IsWrite tells whether the request could change an object.
func (e Event) IsWrite() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// String is one line for people.
func (e Event) String() string {
	return fmt.Sprintf("%s %s %s %s -> %d by %s (%s)", e.Received().Format("15:04:05.000000"), e.Verb, e.Resource(), e.Object(), e.Code(), e.User.Username, e.UserAgent)
}

// Filter selects events.
type Filter func(Event) bool

// Writes selects requests that could change an object.
func Writes() Filter { return Event.IsWrite }

// User selects requests by the authenticated user's name.
func User(name string) Filter { return func(e Event) bool { return e.User.Username == name } }

// ServiceAccount selects requests of a service account in kube-system.
func ServiceAccount(name string) Filter { return User("system:serviceaccount:kube-system:" + name) }

// Agent selects requests whose user agent the expression matches anywhere.
func Agent(expression string) Filter {
	re := regexp.MustCompile(expression)
	return func(e Event) bool { return re.MatchString(e.UserAgent) }
}

// Verb selects requests with one of the verbs.
func Verb(verbs ...string) Filter {
	return func(e Event) bool { return slices.Contains(verbs, e.Verb) }
}

// Resource selects requests for one of the resources, written as Event.Resource does.
func Resource(resources ...string) Filter {
	return func(e Event) bool { return slices.Contains(resources, e.Resource()) }
}

// Namespace selects requests in a namespace.
func Namespace(name string) Filter {
	return func(e Event) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == name }
}

// Code selects requests that were answered with one of the HTTP statuses.
func Code(codes ...int) Filter { return func(e Event) bool { return slices.Contains(codes, e.Code()) } }

// Not turns a filter round.
func Not(f Filter) Filter { return func(e Event) bool { return !f(e) } }

// Events are requests in the order of their answers.
type Events []Event

// Where returns the events that all filters select.
func (es Events) Where(filters ...Filter) Events {
	var selected Events
	for _, e := range es {
		if !slices.ContainsFunc(filters, func(f Filter) bool { return !f(e) }) {
			selected = append(selected, e)
		}
	}
	return selected
}

// Count returns how many events there are per key.
func (es Events) Count(key func(Event) string) map[string]int {
	counts := map[string]int{}
	for _, e := range es {
		counts[key(e)]++
	}
	return counts
}

// String is a table of user, verb, resource and code with counts.
func (es Events) String() string {
	counts := es.Count(func(e Event) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d", e.User.Username, e.Verb, e.Resource(), e.Code())
	})
	rows := make([]string, 0, len(counts))
	for row, n := range counts {
		rows = append(rows, fmt.Sprintf("%s\t×%d", row, n))
	}
	sort.Strings(rows)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
	return b.String()
}

// CheckHandover returns an error unless every event of before had been answered
// when the first one of after arrived: the two never wrote at the same time.
// Either being empty is an error, too, since it would prove nothing.
func CheckHandover(before, after Events) error {
	if len(before) == 0 || len(after) == 0 {
		return fmt.Errorf("handover: %d requests before and %d after, want some of both", len(before), len(after))
	}
	last := slices.MaxFunc(before, func(a, b Event) int { return a.Answered().Compare(b.Answered()) })
	first := slices.MinFunc(after, func(a, b Event) int { return a.Received().Compare(b.Received()) })
	if !last.Answered().Before(first.Received()) {
		return fmt.Errorf("two writers at once: %s was answered at %s, but already came %s",
			last, last.Answered().Format("15:04:05.000000"), first)
	}
	return nil
}
