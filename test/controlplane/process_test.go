// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell returns a program that runs a line of shell.
func shell(t *testing.T, line string) *program {
	t.Helper()
	dir := t.TempDir()
	return &program{
		name:    "shell",
		path:    "/bin/sh",
		args:    []string{"-c", line},
		logPath: filepath.Join(dir, "shell.log"),
		pidPath: filepath.Join(dir, "run", "shell.pid"),
	}
}

func (p *program) mustStart(t *testing.T) *run {
	t.Helper()
	r, err := p.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(0) })
	return r
}

func TestProgramThatIgnoresSIGTERMIsKilled(t *testing.T) {
	p := shell(t, `trap "" TERM; echo ready; while :; do sleep 1; done`)
	r := p.mustStart(t)
	waitFor(t, "the trap", func() (bool, error) { return len(tail(p.logPath, 0)) > 0, nil })
	if err := p.stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if r.process.running() {
		t.Error("the program runs after stop")
	}
	if got := describeExit(r.exitError()); got != "signal: killed" {
		t.Errorf("exit %q, want signal: killed", got)
	}
}

func TestProgramWithChildrenIsStoppedWhole(t *testing.T) {
	p := shell(t, `sleep 1000 & echo $!; wait`)
	p.mustStart(t)
	var child processID
	waitFor(t, "the child's number", func() (done bool, err error) {
		lines := tail(p.logPath, 0)
		if len(lines) == 0 {
			return false, nil
		}
		var pid int
		if _, err := fmt.Sscan(lines[0], &pid); err != nil {
			return false, err
		}
		child, err = identify(pid)
		return err == nil, err
	})
	if err := p.stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the child", func() (bool, error) { return !child.running(), nil })
}

func TestPausedProgramIsStopped(t *testing.T) {
	p := shell(t, `while :; do sleep 1; done`)
	p.mustStart(t)
	if err := p.signalRunning(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stop took %v: the paused program was not woken to end", took)
	}
}

func TestUnaskedEndIsReported(t *testing.T) {
	deaths := make(chan *ComponentError, 1)
	p := shell(t, `echo "first line"; echo "cannot go on"; exit 3`)
	p.died = func(e *ComponentError) { deaths <- e }
	p.mustStart(t)
	got := <-deaths
	want := "shell exited unasked: exit status 3; its log is " + p.logPath + ", which ends:\n    first line\n    cannot go on"
	if got.Error() != want {
		t.Errorf("error\n%s\nwant\n%s", got, want)
	}
}

func TestEndAfterStopIsNotReported(t *testing.T) {
	p := shell(t, `while :; do sleep 1; done`)
	p.died = func(e *ComponentError) { t.Errorf("reported: %v", e) }
	p.mustStart(t)
	if err := p.stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestErrorShowsOnlyTheLastLife(t *testing.T) {
	deaths := make(chan *ComponentError, 1)
	p := shell(t, `echo "old life"`)
	p.died = func(e *ComponentError) { deaths <- e }
	p.mustStart(t)
	<-deaths
	p.args = []string{"-c", `echo "new life"`}
	waitFor(t, "the end of the old life", func() (bool, error) { return p.running() == nil, nil })
	p.mustStart(t)
	if got := (<-deaths).LogTail; len(got) != 1 || got[0] != "new life" {
		t.Errorf("log tail %q, want the new life's only", got)
	}
}

func TestProgramThatCannotBeRun(t *testing.T) {
	p := shell(t, "")
	p.path = "/nonexistent/program"
	if _, err := p.start(); err == nil || !strings.HasPrefix(err.Error(), "starting shell: ") {
		t.Errorf("error %v, want one about starting shell", err)
	}
}

func TestPidFileOfAnotherProcess(t *testing.T) {
	p := shell(t, `while :; do sleep 1; done`)
	r := p.mustStart(t)
	// As after a reboot: the number was given to a process that is none of ours.
	stale := processID{PID: r.process.PID, Started: "another boot/12345"}
	dir := t.TempDir()
	if err := writePidFile(filepath.Join(dir, "run", "etcd.pid"), stale); err != nil {
		t.Fatal(err)
	}
	found, err := FindDetached(dir)
	if err != nil || len(found) != 1 || found[0].Running {
		t.Fatalf("found %+v (error %v), want etcd, not running", found, err)
	}
	if err := StopDetached(dir, time.Second, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !r.process.running() {
		t.Error("a process that only has the number of ours was stopped")
	}
	if found, _ := FindDetached(dir); len(found) != 0 {
		t.Errorf("the stale pid file is still there: %+v", found)
	}
}

func TestDetachedProgramIsTakenOver(t *testing.T) {
	first := shell(t, `while :; do sleep 1; done`)
	first.detached = true
	started := first.mustStart(t)

	deaths := make(chan *ComponentError, 1)
	second := &program{
		name: first.name, path: first.path, args: first.args, logPath: first.logPath, pidPath: first.pidPath,
		detached: true, died: func(e *ComponentError) { deaths <- e },
	}
	adopted := second.mustStart(t)
	if adopted.process != started.process || !adopted.adopted {
		t.Fatalf("process %+v, want the running %+v adopted", adopted.process, started.process)
	}
	if err := first.stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := (<-deaths).Reason; !strings.HasPrefix(got, "exited unasked") {
		t.Errorf("the end of the adopted program was reported as %q", got)
	}
	if _, err := os.Stat(first.pidPath); err == nil {
		t.Error("the pid file is there after the program's end")
	}
	if again := second.mustStart(t); again.adopted {
		t.Error("a program that has ended was adopted")
	}
}

func TestUnreadablePidFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pid")
	for _, content := range []string{"", "nonsense", `{"pid":0}`, `{"pid":1,"started":""}`, `{"pid":-5}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, running := readPidFile(path); running {
			t.Errorf("content %q names the running process %+v", content, id)
		}
	}
}

// helperEnv makes the test binary start a program and wait: see TestProgramsDieWithTheirOwner.
const helperEnv = "KCM_CONTROLPLANE_TEST_HELPER"

func TestHelperProcess(t *testing.T) {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		t.Skip("only a helper of TestProgramsDieWithTheirOwner")
	}
	p := &program{name: "sleeper", path: "/bin/sleep", args: []string{"1000"}, logPath: filepath.Join(dir, "sleeper.log")}
	r := p.mustStart(t)
	if err := json.NewEncoder(os.Stdout).Encode(r.process); err != nil {
		t.Fatal(err)
	}
	<-r.done
}

func TestProgramsDieWithTheirOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can tie a process's life to another's")
	}
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	helper.Env = append(os.Environ(), helperEnv+"="+t.TempDir())
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var sleeper processID
	if err := json.Unmarshal(line, &sleeper); err != nil {
		t.Fatalf("helper said %q: %v", line, err)
	}
	if !sleeper.running() {
		t.Fatal("the helper's program does not run")
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	helper.Wait()
	waitFor(t, "the end of the program whose owner was killed", func() (bool, error) { return !sleeper.running(), nil })
}
