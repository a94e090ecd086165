// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kcm-dev/kcm/test/controlplane"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// options are the command line's.
type options struct {
	variant, kubeconfig, profile string
	pods, updates, rounds        int
	only                         string
	output                       string
}

func main() {
	var o options
	flag.IntVar(&o.pods, "pods", 20000, "`number` of pods")
	flag.IntVar(&o.updates, "updates", 5000, "`number` of updates in each round")
	flag.IntVar(&o.rounds, "rounds", 3, "`number` of times that each variant is run")
	flag.StringVar(&o.only, "only", "", "comma-separated `variants` to run; default all")
	flag.StringVar(&o.output, "output", "", "`file` that the table is also written to, as Markdown")
	flag.StringVar(&o.profile, "profile", "", "`prefix` of files for a CPU and a heap profile of each variant (it costs CPU itself)")
	flag.StringVar(&o.variant, "variant", "", "run this `variant` in this process (what the parent does)")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` for -variant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := parent
	if o.variant != "" {
		run = runChild
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func runChild(ctx context.Context, o options) error {
	i := slices.IndexFunc(variants(), func(v variant) bool { return v.name == o.variant })
	if i < 0 {
		return fmt.Errorf("-variant %q is none of %s", o.variant, strings.Join(names(), ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	return child(ctx, variants()[i], asManager(config), os.Stdin, os.Stdout, o.profile)
}

// asManager makes the client what a controller manager's is: protobuf, no limit.
func asManager(config *rest.Config) *rest.Config {
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func names() []string {
	var all []string
	for _, v := range variants() {
		all = append(all, v.name)
	}
	return all
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// parent starts the control plane, creates the pods, and runs the variants.
func parent(ctx context.Context, o options) (err error) {
	chosen := names()
	if o.only != "" {
		chosen = strings.Split(o.only, ",")
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: os.Stderr, StartTimeout: 5 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	client, err := kubernetes.NewForConfig(asManager(plane.RESTConfig()))
	if err != nil {
		return err
	}
	if err := createPods(ctx, client, o.pods, logf); err != nil {
		return err
	}
	kubeconfig, err := plane.KubeconfigFor(controlplane.AdminUser, "system:masters")
	if err != nil {
		return err
	}
	results := map[string][]result{}
	for round := range o.rounds {
		for i, name := range chosen {
			logf("round %d of %d: %s", round+1, o.rounds, name)
			r, err := measure(ctx, client, o, name, kubeconfig, round*len(chosen)+i)
			if err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			results[name] = append(results[name], r)
		}
	}
	return writeReport(o, results)
}

// result is what one variant has reported in one round.
type result struct{ sync, updates report }

// measure runs a variant in a process of its own.
func measure(ctx context.Context, client kubernetes.Interface, o options, name, kubeconfig string, round int) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"-variant=" + name, "-kubeconfig=" + kubeconfig}
	if o.profile != "" {
		args = append(args, "-profile="+o.profile+"-"+name)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	err = converse(ctx, client, o, in, json.NewDecoder(out), round, &r)
	err = errors.Join(err, in.Close())
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return r, errors.Join(err, cmd.Wait())
}

// converse takes the child's reports and makes the updates in between.
func converse(ctx context.Context, client kubernetes.Interface, o options, in io.Writer, from *json.Decoder, round int, r *result) error {
	if err := from.Decode(&r.sync); err != nil {
		return fmt.Errorf("reading the report of the sync: %w", err)
	}
	if r.sync.Objects != o.pods {
		return fmt.Errorf("%d pods are in the cache, not %d", r.sync.Objects, o.pods)
	}
	if _, err := fmt.Fprintln(in, o.updates); err != nil {
		return err
	}
	var ready report
	if err := from.Decode(&ready); err != nil {
		return fmt.Errorf("waiting for the child: %w", err)
	}
	if err := updatePods(ctx, client, o.pods, o.updates, round); err != nil {
		return err
	}
	if err := from.Decode(&r.updates); err != nil {
		return fmt.Errorf("reading the report of the updates: %w", err)
	}
	return nil
}
