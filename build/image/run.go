// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// kubeconfig leads to no API server: the manager waits for its lease, and is alive while it does.
const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "none",
 "clusters": [{"name": "none", "cluster": {"server": "https://127.0.0.1:9", "insecure-skip-tls-verify": true}}],
 "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
 "users": [{"name": "none", "user": {"token": "none"}}]}`

// Run unpacks an image of this machine's architecture into dir, starts its entrypoint with its environment, and returns
// what it answers to /healthz once that is a success. The process is ended before Run returns.
//
// With isolate, which takes Linux and root, it sees nothing but the image's files, and runs as the image's user.
func Run(ctx context.Context, img v1.Image, dir string, isolate bool) (string, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("reading the configuration: %w", err)
	}
	if len(config.Config.Entrypoint) == 0 {
		return "", errors.New("the image has no entrypoint")
	}
	if _, err := Extract(img, dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o644); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return "", err
	}
	program, root := config.Config.Entrypoint[0], "/"
	if !isolate {
		program, root = filepath.Join(dir, program), dir
	}
	cmd := exec.Command(program, append(config.Config.Entrypoint[1:],
		"--kubeconfig="+filepath.Join(root, "kubeconfig"), "--bind-address="+address.IP.String(), fmt.Sprintf("--secure-port=%d", address.Port))...)
	cmd.Env = config.Config.Env
	if isolate {
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", fmt.Errorf("opening %s to the image's user: %w", dir, err)
		}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	answer, err := whileRunning(ctx, cmd, func(ctx context.Context) (string, error) {
		return untilHealthy(ctx, "https://"+address.String()+"/healthz")
	})
	if err != nil {
		return "", fmt.Errorf("%w; it said:\n%s", err, output.Bytes())
	}
	return answer, nil
}

// freeAddress is one of this machine alone that nobody listens on, most likely for some time.
func freeAddress() (*net.TCPAddr, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr), listener.Close()
}

// whileRunning starts the command and asks; it ends the command with the answer, and the question with the command.
func whileRunning(ctx context.Context, cmd *exec.Cmd, ask func(context.Context) (string, error)) (string, error) {
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("starting the image's binary: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // ProcessState says more
		cancel(fmt.Errorf("the image's binary has ended: %s", cmd.ProcessState))
	}()
	answer, err := ask(ctx)
	_ = cmd.Process.Kill() // it may have ended
	<-ended
	return answer, err
}

// untilHealthy asks until the answer is a success.
func untilHealthy(ctx context.Context, url string) (string, error) {
	client := &http.Client{Transport: &http.Transport{
		// The manager has made its certificate itself.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	var last error
	for {
		answer, err := get(ctx, client, url)
		if err == nil {
			return answer, nil
		}
		// That the time ran out during a request says less than the answer before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s: %w (last: %w)", url, context.Cause(ctx), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), nil
}
