// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
	"github.com/kcm-dev/kcm/test/scenarios"
)

// Side is one of the two: a control plane and its manager.
type Side struct {
	*scenarios.Stage
	Name string
	// Proxy stands between the manager and the API server; nil without sabotage.
	Proxy *faultproxy.Proxy
}

// StartSide starts a control plane and a manager with the controllers. With sabotage that is not nil a proxy stands
// between the two, with these rules.
func StartSide(ctx context.Context, name, binary string, controllers, flags []string, sabotage []faultproxy.Rule) (_ *Side, err error) {
	c, err := cluster.Start(ctx, cluster.Options{Audit: cluster.AuditExact})
	if err != nil {
		return nil, err
	}
	s := &Side{Name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if s.Stage, err = scenarios.NewStage(ctx, c); err != nil {
		return nil, err
	}
	options := cluster.ManagerOptions{Path: binary, Args: managerArgs(controllers, flags)}
	if sabotage != nil {
		if s.Proxy, err = c.Proxy(""); err != nil {
			return nil, err
		}
		options.Via = s.Proxy
		for _, rule := range sabotage {
			options.Via.Add(rule)
		}
	}
	if _, err = c.StartManager(ctx, options); err != nil {
		return nil, err
	}
	_, err = c.WaitForLeader(ctx, time.Minute)
	return s, err
}

// managerArgs are the flags of both managers. The client rate limit is lifted: what is compared is what they do.
func managerArgs(controllers, flags []string) []string {
	args := []string{"--controllers=" + strings.Join(controllers, ","), "--kube-api-qps=500", "--kube-api-burst=1000"}
	return append(args, flags...)
}

// Stop ends the side and its proxy.
func (s *Side) Stop() error {
	err := s.Stage.Stop()
	if s.Proxy != nil {
		s.Proxy.Close()
	}
	return err
}

// Pair is upstream's side and ours.
type Pair struct{ Upstream, Ours *Side }

// each runs f for both sides at the same time.
func (p *Pair) each(ctx context.Context, f func(ctx context.Context, side *Side) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, side := range []*Side{p.Upstream, p.Ours} {
		group.Go(func() error {
			if err := f(ctx, side); err != nil {
				return fmt.Errorf("%s: %w", side.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Difference is an error: what differs, for people.
type Difference struct {
	Scenario, Checkpoint string
	Text                 string
}

// Error is the diff, after a line that says where.
func (d *Difference) Error() string {
	return fmt.Sprintf("scenario %s, checkpoint %s: upstream, the first (-), and ours, the second (+), differ:\n%s", d.Scenario, d.Checkpoint, d.Text)
}

// settleTimeout is how long both sides have to become equal at a checkpoint, restEvery how often they are looked at: two
// looks that show the same are rest.
const (
	settleTimeout = 20 * time.Second
	restEvery     = 400 * time.Millisecond
)

// Play plays the scenario on both sides and returns a *Difference if there is one.
func (p *Pair) Play(ctx context.Context, s scenarios.Scenario, namespace string, accepted []Accepted) error {
	marks := map[*Side]audit.Mark{}
	for _, side := range []*Side{p.Upstream, p.Ours} {
		mark, err := side.Audit.Mark(ctx)
		if err != nil {
			return err
		}
		marks[side] = mark
	}
	meet := newMeeting(s.Checkpoints())
	err := p.each(ctx, func(ctx context.Context, side *Side) error {
		return side.Play(ctx, s, namespace, func(ctx context.Context, checkpoint string) error {
			return meet.at(ctx, checkpoint, func() error { return p.compare(ctx, s, namespace, checkpoint, accepted) })
		})
	})
	var difference *Difference
	if err != nil && !errors.As(err, &difference) {
		// One side did not get there: what both have shows why.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		diff, diffErr := p.diff(ctx, s, namespace, accepted)
		return errors.Join(&Difference{Scenario: s.Name, Checkpoint: "on the way", Text: err.Error() + "\n" + diff.text}, diffErr)
	}
	if err == nil && len(s.Writes) > 0 {
		err = p.compareWrites(ctx, s, namespace, marks, accepted)
	}
	return err
}

// compare waits until both sides rest and are equal.
func (p *Pair) compare(ctx context.Context, s scenarios.Scenario, namespace, checkpoint string, accepted []Accepted) error {
	deadline := time.Now().Add(settleTimeout)
	var last diffResult
	for {
		now, err := p.diff(ctx, s, namespace, accepted)
		if err != nil {
			return err
		}
		if now.text == "" && now.versions == last.versions {
			return nil
		}
		if time.Now().After(deadline) && now.text != "" {
			return &Difference{Scenario: s.Name, Checkpoint: checkpoint, Text: now.text}
		}
		if time.Now().After(deadline.Add(settleTimeout)) {
			return &Difference{Scenario: s.Name, Checkpoint: checkpoint, Text: "one of them never rests: objects change all the time"}
		}
		last = now
		select {
		case <-time.After(restEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type diffResult struct{ text, versions string }

// diff compares what both sides have now.
func (p *Pair) diff(ctx context.Context, s scenarios.Scenario, namespace string, accepted []Accepted) (diffResult, error) {
	var mu sync.Mutex
	shots := map[*Side]scenarios.Snapshot{}
	err := p.each(ctx, func(ctx context.Context, side *Side) error {
		shot, err := side.Snapshot(ctx, namespace)
		mu.Lock()
		defer mu.Unlock()
		shots[side] = shot
		return err
	})
	if err != nil {
		return diffResult{}, err
	}
	u, o := shots[p.Upstream], shots[p.Ours]
	clean := func(text string) string { return without(accepted, s.Name, text) }
	text := scenarios.Diff(clean(u.Objects), clean(o.Objects))
	if a, b := clean(u.Events+"\n"), clean(o.Events+"\n"); a != b {
		text += "Events:\n" + scenarios.Lines(a, b)
	}
	return diffResult{text: text, versions: u.Version + o.Version}, nil
}

// compareWrites compares the order of the managers' writes to the resources that the scenario names. A conflict is no
// write: it changes nothing, and whether a cache is behind is chance.
func (p *Pair) compareWrites(ctx context.Context, s scenarios.Scenario, namespace string, marks map[*Side]audit.Mark, accepted []Accepted) error {
	texts := map[*Side]string{}
	for side, mark := range marks {
		events, err := side.Audit.Since(ctx, mark)
		if err != nil {
			return err
		}
		var lines []string
		for _, e := range events.Where(audit.Writes(), audit.Namespace(namespace), audit.Resource(s.Writes...), audit.Not(audit.Code(http.StatusConflict))) {
			if strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:") {
				lines = append(lines, fmt.Sprintf("%s %s %s %d", e.Verb, e.Resource(), scenarios.StableName(e.ObjectRef.Name), e.Code()))
			}
		}
		texts[side] = without(accepted, s.Name, strings.Join(slices.Compact(lines), "\n")+"\n")
	}
	if a, b := texts[p.Upstream], texts[p.Ours]; a != b {
		return &Difference{Scenario: s.Name, Checkpoint: "the end", Text: "writes, in order:\n" + scenarios.Lines(a, b)}
	}
	return nil
}

// meeting is where both sides wait for each other.
type meeting struct {
	mu     sync.Mutex // guards the following
	points map[string]*point
}

type point struct {
	arrived int
	done    chan struct{} // closed when err is set
	err     error
}

func newMeeting(names []string) *meeting {
	m := &meeting{points: map[string]*point{}}
	for _, name := range names {
		m.points[name] = &point{done: make(chan struct{})}
	}
	return m
}

// at returns for both what f, which the second one to come calls, returned.
func (m *meeting) at(ctx context.Context, name string, f func() error) error {
	m.mu.Lock()
	p := m.points[name]
	p.arrived++
	second := p.arrived == 2
	m.mu.Unlock()
	if second {
		p.err = f()
		close(p.done)
		return p.err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
