// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"sync/atomic"
)

// Scope says for whom a request is made, and counts what was asked for it. A worker puts one into the context of
// each sync. All methods may be called at any time and by several goroutines; a nil Scope counts nothing.
type Scope struct {
	// Controller is the canonical name of the controller.
	Controller string
	// Key is what the controller is busy with, as it appears in logs.
	Key string

	requests, writes, refused atomic.Int64
	lastError                 atomic.Pointer[error]
}

// NewScope makes a Scope for one sync.
func NewScope(controller, key string) *Scope {
	return &Scope{Controller: controller, Key: key}
}

// Requests is how many requests were sent.
func (s *Scope) Requests() int64 {
	if s == nil {
		return 0
	}
	return s.requests.Load()
}

// Writes is how many of the requests sent were writes.
func (s *Scope) Writes() int64 {
	if s == nil {
		return 0
	}
	return s.writes.Load()
}

// Refused is how many writes were not sent because of the fence.
func (s *Scope) Refused() int64 {
	if s == nil {
		return 0
	}
	return s.refused.Load()
}

// LastError is why the last failed request failed: the transport's error, ErrFenced, or a [StatusError]; nil if none
// has failed.
func (s *Scope) LastError() error {
	if s == nil {
		return nil
	}
	if err := s.lastError.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Scope) sent(write bool) {
	if s == nil {
		return
	}
	s.requests.Add(1)
	if write {
		s.writes.Add(1)
	}
}

func (s *Scope) refuse(err error) {
	if s == nil {
		return
	}
	s.refused.Add(1)
	s.failed(err)
}

func (s *Scope) failed(err error) {
	if s != nil {
		s.lastError.Store(&err)
	}
}

type scopeKey struct{}

// WithScope returns a context whose requests are counted in s.
func WithScope(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeFrom returns the Scope of a context, nil if it has none.
func ScopeFrom(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}
