// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startNothing reads a watch of all pods and looks at nothing but the type of each event.
func startNothing(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	body, err := client.CoreV1().RESTClient().Get().Resource("pods").
		Param("watch", "true").Param("sendInitialEvents", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
		SetHeader("Accept", "application/vnd.kubernetes.protobuf").SetHeader("Accept-Encoding", "identity").Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	var added atomic.Int64
	synced, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- throwAway(body, &added, synced, seen) }()
	stop := func() { cancel(); <-done; _ = body.Close() }
	select {
	case <-synced:
		return &running{stored: func() int { return int(added.Load()) }, stop: stop}, nil
	case err := <-done:
		done <- err
		stop()
		return nil, fmt.Errorf("the watch ended before the initial events did: %w", err)
	}
}

func startNothingDirect(ctx context.Context, config *rest.Config, seen *counts) (*running, error) {
	config.NextProtos = []string{"http/1.1"}
	return startNothing(ctx, config, seen)
}

func throwAway(body io.Reader, added *atomic.Int64, synced chan struct{}, seen *counts) error {
	var length [4]byte
	buf := make([]byte, 0, 1<<16)
	for {
		if _, err := io.ReadFull(body, length[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(length[:]))
		if n > cap(buf) {
			buf = make([]byte, 0, n)
		}
		if _, err := io.ReadFull(body, buf[:n]); err != nil {
			return err
		}
		switch frame := buf[:n]; {
		// The type is the first field of an event.
		case bytes.HasPrefix(frame, []byte("\n\x05ADDED")):
			added.Add(1)
		case bytes.HasPrefix(frame, []byte("\n\x08MODIFIED")):
			seen.update()
		case bytes.Contains(frame, []byte(metav1.InitialEventsAnnotationKey)):
			close(synced)
		case bytes.HasPrefix(frame, []byte("\n\x05ERROR")):
			return errors.New("the watch has failed")
		}
	}
}
