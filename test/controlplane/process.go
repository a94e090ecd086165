// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is one component: how it is started, and the run that goes on, if any.
type program struct {
	name     Component
	path     string
	args     []string
	logPath  string
	pidPath  string // set when detached
	detached bool
	// died is called by a run that ends unasked.
	died func(*ComponentError)

	mu      sync.Mutex // guards the following
	current *run
}

// run is one life of a program.
type run struct {
	process processID
	// adopted says that another command started it.
	adopted bool
	// logStart is where in the log this life begins.
	logStart int64
	// done is closed when the process has ended.
	done chan struct{}

	mu     sync.Mutex // guards the following
	wanted bool       // its end was asked for
	exit   error      // how it ended: set before done is closed
}

// ComponentError says that a component failed: it ended unasked, or did not become ready.
type ComponentError struct {
	Component Component
	// Reason is what happened, for instance "exited unasked: exit status 1".
	Reason string
	// LogPath is the component's log, LogTail the last lines of it.
	LogPath string
	LogTail []string
}

// Error is one line with the log's path, and beneath it the log's last lines.
func (e *ComponentError) Error() string {
	text := fmt.Sprintf("%s %s; its log is %s", e.Component, e.Reason, e.LogPath)
	if len(e.LogTail) > 0 {
		text += ", which ends:\n    " + strings.Join(e.LogTail, "\n    ")
	}
	return text
}

// start starts the program, or takes over one of an earlier command that still runs. The goroutine that started it
// waits for it.
func (p *program) start() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && !p.current.ended() {
		return nil, fmt.Errorf("%s runs already", p.name)
	}
	if p.detached {
		if id, running := readPidFile(p.pidPath); running {
			p.current = p.adopt(id)
			return p.current, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(p.logPath), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for logs: %w", err)
	}
	r := &run{done: make(chan struct{})}
	started := make(chan error)
	go p.own(r, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.current = r
	return r, nil
}

// own starts the process, reports that on started, and waits until it ends.
func (p *program) own(r *run, started chan<- error) {
	// A process that is to die with its parent dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd, err := p.launch(r)
	started <- err
	if err != nil {
		return
	}
	p.conclude(r, cmd.Wait())
}

// launch starts the process with its output in the log.
func (p *program) launch(r *run) (*exec.Cmd, error) {
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	if r.logStart, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes(p.detached)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.process, err = identify(cmd.Process.Pid)
	if err == nil && p.detached {
		err = writePidFile(p.pidPath, r.process)
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return cmd, nil
}

// adopt returns a run for a process that another command started: it is no child of ours, so its end is looked for.
func (p *program) adopt(id processID) *run {
	r := &run{process: id, adopted: true, done: make(chan struct{})}
	if info, err := os.Stat(p.logPath); err == nil {
		r.logStart = max(0, info.Size()-tailBytes)
	}
	go func() {
		for id.running() {
			time.Sleep(adoptedPoll)
		}
		p.conclude(r, nil)
	}()
	return r
}

// adoptedPoll is how often a process is looked at that is not our child.
const adoptedPoll = 50 * time.Millisecond

// conclude records how the run ended. The pid file of one that ended unasked stays: it tells later commands of that.
func (p *program) conclude(r *run, exit error) {
	r.mu.Lock()
	r.exit = exit
	wanted := r.wanted
	r.mu.Unlock()
	switch {
	case !wanted && p.died != nil:
		p.died(p.failure(r, "exited unasked: "+describeExit(exit)))
	case wanted && p.detached:
		removePidFile(p.pidPath, r.process)
	}
	close(r.done)
}

func describeExit(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// failure is the error that shows this run's log.
func (p *program) failure(r *run, reason string) *ComponentError {
	return &ComponentError{Component: p.name, Reason: reason, LogPath: p.logPath, LogTail: tail(p.logPath, r.logStart)}
}

// stop ends the program: SIGTERM to its group, and SIGKILL after the grace. It returns when the program has ended, and
// does nothing when it does not run. Grace 0 kills at once.
func (p *program) stop(grace time.Duration) error {
	r := p.running()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.wanted = true
	r.mu.Unlock()
	if grace > 0 {
		if err := errors.Join(r.process.signal(syscall.SIGTERM), r.process.signal(syscall.SIGCONT)); err != nil {
			return fmt.Errorf("stopping %s: %w", p.name, err)
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-r.done:
			return nil
		case <-timer.C:
		}
	}
	if err := r.process.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-r.done
	return nil
}

// signalRunning sends a signal to a program that must be running.
func (p *program) signalRunning(sig syscall.Signal) error {
	r := p.running()
	if r == nil {
		return fmt.Errorf("%s does not run", p.name)
	}
	return r.process.signal(sig)
}

// pause stops a program that must be running, and returns when all of its threads stand still: the signal reaches a
// thread only when it next leaves the kernel, and one that has the processor may answer until then.
func (p *program) pause() error {
	if err := p.signalRunning(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		r := p.running()
		if r == nil {
			return fmt.Errorf("%s has ended", p.name)
		}
		still, err := allStopped(r.process.PID)
		if err != nil {
			return fmt.Errorf("looking whether %s stands still: %w", p.name, err)
		}
		if still {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s goes on 10s after SIGSTOP", p.name)
		}
		time.Sleep(time.Millisecond)
	}
}

// running returns the run that goes on, or nil.
func (p *program) running() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.current.ended() {
		return nil
	}
	return p.current
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *run) exitError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exit
}

// How much of a log an error shows.
const (
	tailLines = 8
	tailBytes = 16 << 10
)

// tail returns the last lines of the file, none of them from before offset from.
func tail(path string, from int64) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size()-from > tailBytes {
		from = info.Size() - tailBytes
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(file, 2*tailBytes))
	if err != nil {
		return nil
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	lines := strings.Split(string(data), "\n")
	return lines[max(0, len(lines)-tailLines):]
}
