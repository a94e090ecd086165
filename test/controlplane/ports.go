// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports for tests are taken from a range below the one that Linux (from 32768) and others (from 49152) hand out for
// outgoing connections, so that nobody is given one of them by chance between our look and the program's bind.
const (
	firstTestPort = 20000
	lastTestPort  = 29999
)

// reservation holds ports against other control planes on this machine: a locked file per port. The lock goes with the
// process, so a crash leaves nothing behind.
type reservation struct {
	dir string

	mu   sync.Mutex // guards the following
	held []*os.File
}

// newReservation returns an empty one. One folder per user: locks need write permission.
func newReservation() (*reservation, error) {
	dir := filepath.Join(os.TempDir(), "kcm-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserving ports: %w", err)
	}
	return &reservation{dir: dir}, nil
}

// pick returns a port that nothing listens on and no other reservation holds.
func (r *reservation) pick() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Each process starts at a place of its own: fewer collisions to skip.
	size := lastTestPort - firstTestPort + 1
	offset := os.Getpid() * 16
	for i := range size {
		port := firstTestPort + (offset+i)%size
		lock, err := r.lock(port)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if checkFree(port) != nil {
			lock.Close()
			continue
		}
		r.held = append(r.held, lock)
		return port, nil
	}
	return 0, fmt.Errorf("no free port from %d to %d on 127.0.0.1", firstTestPort, lastTestPort)
}

func (r *reservation) lock(port int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(r.dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("reserving port %d: %w", port, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("reserving port %d: %w", port, err)
	}
	return file, nil
}

// ReservePorts returns n ports that nothing listens on and that no other caller on this machine is given until release.
func ReservePorts(n int) (ports []int, release func(), err error) {
	r, err := newReservation()
	if err != nil {
		return nil, nil, err
	}
	for range n {
		port, err := r.pick()
		if err != nil {
			r.release()
			return nil, nil, err
		}
		ports = append(ports, port)
	}
	return ports, r.release, nil
}

// release gives every port back.
func (r *reservation) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range r.held {
		file.Close()
	}
	r.held = nil
}

// checkFree returns an error when something listens on the port.
func checkFree(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// PortBusyError says that a fixed port is taken by another program.
type PortBusyError struct {
	Component Component
	Port      int
}

// Error is one line.
func (e *PortBusyError) Error() string {
	return fmt.Sprintf("port %d of %s is in use on 127.0.0.1 by another program: stop it or choose another port", e.Port, e.Component)
}
