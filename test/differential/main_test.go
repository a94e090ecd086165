// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/kcm-dev/kcm/test/cluster"
	"github.com/kcm-dev/kcm/test/integration/framework/faultproxy"
)

// parallel is how many scenarios are played at a time: they wait more than they work.
const parallel = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	klog.SetOutput(os.Stderr)
	code := m.Run()
	if err := suite.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: stopping the control planes: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// suite is what all tests share: binaries, and a pair of control planes per set of the managers' flags.
var suite = &shared{pairs: map[string]func() (*Pair, error){}, binaries: sync.OnceValues(findBinaries)}

type shared struct {
	binaries func() (binaries, error)

	mu sync.Mutex // guards the following
	// pairs by flags, each started at the first call.
	pairs map[string]func() (*Pair, error)
	sides []*Side
}

type binaries struct {
	upstream, ours string
	// controllers that ours has and that are on by default.
	controllers []string
}

func findBinaries() (b binaries, err error) {
	ctx := context.Background()
	if b.upstream, err = cluster.FindUpstream(ctx); err != nil {
		return b, err
	}
	if b.ours, err = cluster.BuildOurs(ctx); err != nil {
		return b, err
	}
	b.controllers, err = cluster.DefaultControllers(ctx, b.ours)
	return b, err
}

// pair returns the pair with the flags.
func (s *shared) pair(t *testing.T, flags []string) *Pair {
	t.Helper()
	key := strings.Join(flags, " ")
	s.mu.Lock()
	start, known := s.pairs[key]
	if !known {
		start = sync.OnceValues(func() (*Pair, error) { return s.startPair(flags) })
		s.pairs[key] = start
	}
	s.mu.Unlock()
	pair, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (s *shared) startPair(flags []string) (*Pair, error) {
	b, err := s.binaries()
	if err != nil {
		return nil, err
	}
	pair := &Pair{}
	var group errgroup.Group
	group.Go(func() (err error) {
		pair.Upstream, err = s.start("upstream", b.upstream, flags, nil)
		return err
	})
	group.Go(func() (err error) {
		pair.Ours, err = s.start("kcm", b.ours, flags, nil)
		return err
	})
	return pair, group.Wait()
}

// start starts a side and stops it at the end of the package.
func (s *shared) start(name, binary string, flags []string, sabotage []faultproxy.Rule) (*Side, error) {
	b, err := s.binaries()
	if err != nil {
		return nil, err
	}
	side, err := StartSide(context.Background(), name, binary, b.controllers, flags, sabotage)
	if err != nil {
		return nil, fmt.Errorf("starting the side of %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sides = append(s.sides, side)
	return side, nil
}

func (s *shared) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, side := range s.sides {
		errs = append(errs, side.Stop())
	}
	return errors.Join(errs...)
}
