// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each line of want is the whole of what a user reads: flag, value, rule.
func TestValidate(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string
	}{
		{args: ""},

		{args: "--controllers=*,-deployment,job-controller,bootstrapsigner"},
		{args: "--controllers="},
		{args: "--controllers=foo,-bar,deployment-controller", want: []string{
			`--controllers: "foo" is not in the list of known controllers, --help shows it`,
			`--controllers: "bar" is not in the list of known controllers, --help shows it`,
		}},
		{args: "--controllers=*,-*", want: []string{`--controllers: "*" is not in the list of known controllers, --help shows it`}},
		{args: "--controllers=Deployment", want: []string{`--controllers: "Deployment" is not in the list of known controllers, --help shows it`}},

		{args: "--leader-elect-resource-lock=endpoints", want: []string{`--leader-elect-resource-lock="endpoints": resourceLock value must be "leases": "endpoints" was removed in Kubernetes 1.28, a cluster that still uses it migrates through "endpointsleases" first`}},
		{args: "--leader-elect-resource-lock=endpoints --leader-elect=false"},
		{args: "--leader-elect-resource-name= --leader-elect-resource-namespace=", want: []string{
			`--leader-elect-resource-name="": must not be empty`,
			`--leader-elect-resource-namespace="": must not be empty`,
		}},
		{args: "--leader-elect-lease-duration=10s", want: []string{`--leader-elect-lease-duration=10s: must be longer than --leader-elect-renew-deadline=10s`}},
		{args: "--leader-elect-lease-duration=10001ms"},
		{args: "--leader-elect-renew-deadline=2400ms", want: []string{`--leader-elect-renew-deadline=2.4s: must be longer than 1.2 times --leader-elect-retry-period=2s`}},
		{args: "--leader-elect-renew-deadline=2401ms"},
		{args: "--leader-elect-lease-duration=0 --leader-elect-renew-deadline=-1s --leader-elect-retry-period=0", want: []string{
			`--leader-elect-lease-duration=0s: must be longer than 0s`,
			`--leader-elect-renew-deadline=-1s: must be longer than 0s`,
			`--leader-elect-retry-period=0s: must be longer than 0s`,
		}},
		{args: "--leader-elect-lease-duration=1s --leader-elect=false"},
		{args: "--leader-elect-resource-lock=configmapsleases", want: []string{`--leader-elect-resource-lock="configmapsleases": resourceLock value must be "leases": "configmapsleases" was removed in Kubernetes 1.28`}},
		{args: "--leader-elect-resource-lock=pods", want: []string{`--leader-elect-resource-lock="pods": resourceLock value must be "leases"`}},
		{args: "--leader-elect-standby=cold"},
		{args: "--leader-elect-standby=warm"},
		{args: "--leader-elect-standby=hot", want: []string{`--leader-elect-standby="hot": must be one of ["warm" "cold"]`}},
		{args: "--leader-elect-standby= --leader-elect=false", want: []string{`--leader-elect-standby="": must be one of ["warm" "cold"]`}},
		{args: "--feature-gates=CoordinatedLeaderElection=true", want: []string{
			`--feature-gates: CoordinatedLeaderElection=true is not supported by this build, set it to false or set --leader-elect=false`,
		}},
		{args: "--feature-gates=CoordinatedLeaderElection=true --leader-elect=false"},

		{args: "--kube-api-burst=0", want: []string{`--kube-api-burst=0: must be greater than 0 with --kube-api-qps=20`}},
		{args: "--kube-api-burst=0 --kube-api-qps=-1"},
		{args: "--min-resync-period=-1s --controller-start-interval=-1s --controller-shutdown-timeout=-1s", want: []string{
			`--min-resync-period=-1s: must not be negative`,
			`--controller-start-interval=-1s: must not be negative`,
			`--controller-shutdown-timeout=-1s: must not be negative`,
		}},
		{args: "--min-resync-period=0 --controller-shutdown-timeout=0"},

		{args: "--cloud-provider=external"},
		{args: "--cloud-provider=aws", want: []string{
			`--cloud-provider="aws": built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider`,
		}},
		{args: "--cidr-allocator-type=CloudAllocator", want: []string{
			`--cidr-allocator-type="CloudAllocator": built-in cloud providers are disabled, the only allocator is "RangeAllocator"`,
		}},
		{args: "--route-reconciliation-period=-1s --node-sync-period=-1s", want: []string{
			`--route-reconciliation-period=-1s: must not be negative`,
			`--node-sync-period=-1s: must not be negative`,
		}},

		{args: "--attach-detach-reconcile-sync-period=1s"},
		{args: "--attach-detach-reconcile-sync-period=999ms --disable-attach-detach-reconcile-sync", want: []string{
			`--attach-detach-reconcile-sync-period=999ms: must be 1s or longer`,
		}},

		{args: "--cluster-signing-cert-file=a"}, // as upstream: nothing is signed then
		{args: "--cluster-signing-cert-file=a --cluster-signing-key-file=b"},
		{args: "--cluster-signing-kubelet-client-cert-file=a --cluster-signing-kubelet-client-key-file=b"},
		{args: "--cluster-signing-kubelet-serving-cert-file=a --cluster-signing-legacy-unknown-key-file=b", want: []string{
			`--cluster-signing-kubelet-serving-cert-file="a": cannot specify cert without key, set --cluster-signing-kubelet-serving-key-file too`,
			`--cluster-signing-legacy-unknown-key-file="b": cannot specify key without cert, set --cluster-signing-legacy-unknown-cert-file too`,
		}},
		{args: "--cluster-signing-key-file=b --cluster-signing-kube-apiserver-client-cert-file=a --cluster-signing-kube-apiserver-client-key-file=b", want: []string{
			`cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time`,
		}},
		{args: "--cluster-signing-duration=0", want: []string{`--cluster-signing-duration=0s: must be longer than 0s`}},

		{args: "--endpoint-updates-batch-period=-1s --endpointslice-updates-batch-period=-1s --mirroring-endpointslice-updates-batch-period=-1s", want: []string{
			`--endpoint-updates-batch-period=-1s: must not be negative`,
			`--endpointslice-updates-batch-period=-1s: must not be negative`,
			`--mirroring-endpointslice-updates-batch-period=-1s: must not be negative`,
		}},
		{args: "--concurrent-service-endpoint-syncs=50 --max-endpoints-per-slice=1000 --mirroring-concurrent-service-endpoint-syncs=50 --mirroring-max-endpoints-per-subset=1000"},
		{args: "--concurrent-service-endpoint-syncs=51 --max-endpoints-per-slice=1001 --mirroring-concurrent-service-endpoint-syncs=51 --mirroring-max-endpoints-per-subset=1001", want: []string{
			`--concurrent-service-endpoint-syncs=51: must be between 1 and 50`,
			`--max-endpoints-per-slice=1001: must be between 1 and 1000`,
			`--mirroring-concurrent-service-endpoint-syncs=51: must be between 1 and 50`,
			`--mirroring-max-endpoints-per-subset=1001: must be between 1 and 1000`,
		}},
		{args: "--concurrent-service-endpoint-syncs=0 --max-endpoints-per-slice=0 --mirroring-concurrent-service-endpoint-syncs=0 --mirroring-max-endpoints-per-subset=0", want: []string{
			`--concurrent-service-endpoint-syncs=0: must be between 1 and 50`,
			`--max-endpoints-per-slice=0: must be between 1 and 1000`,
			`--mirroring-concurrent-service-endpoint-syncs=0: must be between 1 and 50`,
			`--mirroring-max-endpoints-per-subset=0: must be between 1 and 1000`,
		}},

		{args: "--horizontal-pod-autoscaler-tolerance=-0.1 --horizontal-pod-autoscaler-sync-period=-1s --horizontal-pod-autoscaler-downscale-stabilization=-1s --horizontal-pod-autoscaler-cpu-initialization-period=-1s --horizontal-pod-autoscaler-initial-readiness-delay=-1s", want: []string{
			`--horizontal-pod-autoscaler-sync-period=-1s: must not be negative`,
			`--horizontal-pod-autoscaler-downscale-stabilization=-1s: must not be negative`,
			`--horizontal-pod-autoscaler-tolerance=-0.1: must not be negative`,
			`--horizontal-pod-autoscaler-cpu-initialization-period=-1s: must not be negative`,
			`--horizontal-pod-autoscaler-initial-readiness-delay=-1s: must not be negative`,
		}},
		{args: "--horizontal-pod-autoscaler-tolerance=NaN", want: []string{`--horizontal-pod-autoscaler-tolerance=NaN: must not be negative`}},
		{args: "--legacy-service-account-token-clean-up-period=0", want: []string{`--legacy-service-account-token-clean-up-period=0s: must be longer than 0s`}},
		{args: "--namespace-sync-period=-1s --resource-quota-sync-period=-1s --pvclaimbinder-sync-period=-1s", want: []string{
			`--namespace-sync-period=-1s: must not be negative`,
			`--pvclaimbinder-sync-period=-1s: must not be negative`,
			`--resource-quota-sync-period=-1s: must not be negative`,
		}},
		{args: "--namespace-sync-period=0 --resource-quota-sync-period=0"},
		{args: "--terminated-pod-gc-threshold=-1"},
		{args: "--unhealthy-zone-threshold=2"}, // the way to have no unhealthy zones
		{args: "--node-startup-grace-period=-1s --node-monitor-grace-period=-1s --node-monitor-period=-1s --node-eviction-rate=-1 --secondary-node-eviction-rate=-1 --unhealthy-zone-threshold=-1", want: []string{
			`--node-startup-grace-period=-1s: must not be negative`,
			`--node-monitor-grace-period=-1s: must not be negative`,
			`--node-monitor-period=-1s: must not be negative`,
			`--node-eviction-rate=-1: must not be negative`,
			`--secondary-node-eviction-rate=-1: must not be negative`,
			`--unhealthy-zone-threshold=-1: must not be negative`,
		}},

		{args: "--service-cluster-ip-range=10.0.0.0/8,fd00::/64,1.2.3.0/24", want: []string{
			`--service-cluster-ip-range="10.0.0.0/8,fd00::/64,1.2.3.0/24": can not contain more than two entries`,
		}},
		{args: "--service-cluster-ip-range=nonsense"}, // upstream only warns
		{args: "--allocate-node-cidrs", want: []string{`--cluster-cidr must be set with --allocate-node-cidrs=true`}},
		{args: "--allocate-node-cidrs --controllers=*,-nodeipam"},
		{args: "--allocate-node-cidrs --cluster-cidr=10.244.0.0/16,10.0.0.0/16", want: []string{
			`--cluster-cidr="10.244.0.0/16,10.0.0.0/16": two CIDRs must be configured as dual stack, at least one from each IPFamily`,
		}},
		{args: "--allocate-node-cidrs --cluster-cidr=10.244.0.0/25", want: []string{
			`--node-cidr-mask-size-ipv4=24: must be between the mask size of --cluster-cidr 10.244.0.0/25 and 32`,
		}},
		{args: "--cluster-cidr=nonsense"}, // not used without --allocate-node-cidrs

		{args: "--secure-port=-1 --insecure-port=70000", want: []string{
			`--secure-port=-1: must be between 0 and 65535, 0 turns secure serving off`,
			`--insecure-port=70000: must be between 0 and 65535, 0 turns it off`,
		}},
		{args: "--secure-port=99999", want: []string{`--secure-port=99999: must be between 0 and 65535, 0 turns secure serving off`}},
		{args: "--insecure-bind-address=::1"},
		{args: "--insecure-bind-address=127.8.8.8"},
		{args: "--insecure-port=8080 --insecure-bind-address=0.0.0.0", want: []string{
			`--insecure-bind-address=0.0.0.0: must be a loopback address, in 127.0.0.0/8 or ::1`,
		}},
		{args: "--tls-cert-file=a", want: []string{`--tls-cert-file="a": needs --tls-private-key-file`}},
		{args: "--tls-private-key-file=a", want: []string{`--tls-private-key-file="a": needs --tls-cert-file`}},

		{args: "--tls-min-version=VersionTLS13 --tls-cipher-suites=TLS_AES_128_GCM_SHA256"},
		{args: "--tls-min-version=1.2 --tls-cipher-suites=ROT13 --tls-curve-preferences=0", want: []string{
			`--tls-min-version="1.2": must be one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13`,
			`--tls-cipher-suites=[ROT13]: Cipher suite ROT13 not supported or doesn't exist`,
			`--tls-curve-preferences=[0]: curve preference 0 is out of range (must be 1-65535)`,
		}},

		{args: "--logging-format=yaml --log-json-split-stream", want: []string{
			`--logging-format: Invalid value: "yaml": Unsupported log format`,
			`--log-json-split-stream: Forbidden: Feature LoggingAlphaOptions is disabled`,
		}},
		{args: "--secure-port=0 --tls-min-version=1.2 --tls-cert-file=a"}, // not used
		{args: "--emulated-version=1.33 --min-compatibility-version=1.34", want: []string{
			`--emulated-version: emulation version 1.33 is not between [1.34, 1.37.0]`,
			`--min-compatibility-version: minCompatibilityVersion version 1.34 is not between [1.34, 1.33]`,
		}},
		{args: "--emulated-version=1.20", want: []string{`--emulated-version: emulation version 1.20 is not between [1.34, 1.37.0]`}},
	} {
		t.Run(test.args, func(t *testing.T) {
			s := parse(t, strings.Fields(test.args)...)
			if err := s.ComponentGlobalsRegistry.Set(); err != nil {
				t.Fatal(err)
			}
			got := lines(t, s.Validate(testControllers, testDisabled, testAliases))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetGlobalsNamesTheFlag(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string
	}{
		{args: "--feature-gates=AllAlpha=false --emulated-version=1.36"},
		{args: "--feature-gates=Nope=true", want: []string{`--feature-gates: unrecognized feature gate: Nope`}},
		{args: "--feature-gates=AllAlpha", want: []string{`--feature-gates: missing bool value for AllAlpha`}},
		{args: "--feature-gates=other:A=true", want: []string{`--feature-gates: component not registered: other`}},
		{args: "--emulated-version=new --feature-gates=AllAlpha=false", want: []string{`--emulated-version: could not parse "new" as version`}},
		{args: "--emulated-version=1.36.1", want: []string{`--emulated-version: patch version not allowed, got: kube=1.36.1`}},
		{args: "--min-compatibility-version=other=1.36", want: []string{`--min-compatibility-version: component not registered: other`}},
		{args: "--emulated-version=1.36 --min-compatibility-version=new", want: []string{
			`--emulated-version, --min-compatibility-version: could not parse "new" as version`,
		}},
	} {
		got := lines(t, parse(t, strings.Fields(test.args)...).SetGlobals())
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.args, diff)
		}
	}
}

// The message names the previous release, which depends on how the test was
// built.
func TestValidateNamesMetricsFlags(t *testing.T) {
	got := lines(t, parse(t, "--show-hidden-metrics-for-version=9.9").Validate(testControllers, testDisabled, testAliases))
	if len(got) != 1 || !strings.HasPrefix(got[0], `--show-hidden-metrics-for-version: Invalid value: "9.9": must be omitted`) {
		t.Errorf("got %q", got)
	}
}

// No worker, no work: for each controller that has workers.
func TestValidateWorkers(t *testing.T) {
	var args, want []string
	for _, f := range flagTable(t) {
		isWorkers := strings.HasPrefix(f.name, "concurrent-") && f.name != "concurrent-service-endpoint-syncs"
		if isWorkers {
			args = append(args, fmt.Sprintf("--%s=0", f.name))
			want = append(want, fmt.Sprintf("--%s=0: must be greater than 0", f.name))
		}
	}
	if len(args) != 19 {
		t.Errorf("%d flags for workers", len(args))
	}
	got := lines(t, parse(t, args...).Validate(testControllers, testDisabled, testAliases))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNodeCIDRs(t *testing.T) {
	for _, test := range []struct {
		cluster, flags string
		masks          []int
		want           []string
	}{
		{cluster: "10.244.0.0/16", masks: []int{24}},
		{cluster: "fd00::/56", masks: []int{64}},
		{cluster: "10.244.0.0/16,fd00::/56", masks: []int{24, 64}},
		{cluster: "fd00::/56,10.244.0.0/16", masks: []int{64, 24}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size=26", masks: []int{26}},
		{cluster: "fd00::/56", flags: "--node-cidr-mask-size=70", masks: []int{70}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size-ipv4=26", masks: []int{26}},
		{cluster: "fd00::/56", flags: "--node-cidr-mask-size-ipv6=72", masks: []int{72}},
		{cluster: "10.244.0.0/16,fd00::/56", flags: "--node-cidr-mask-size-ipv4=25 --node-cidr-mask-size-ipv6=65", masks: []int{25, 65}},
		{cluster: "10.244.0.0/24", masks: []int{24}},

		{cluster: " ", want: []string{`--cluster-cidr must be set with --allocate-node-cidrs=true`}},
		{cluster: "10.244.0.0", want: []string{`--cluster-cidr="10.244.0.0": must be one CIDR, or two with a comma between: invalid CIDR[0]: <nil> (invalid CIDR address: 10.244.0.0)`}},
		{cluster: "10.0.0.0/16,10.1.0.0/16,fd00::/56", want: []string{`--cluster-cidr="10.0.0.0/16,10.1.0.0/16,fd00::/56": must be one CIDR, or one IPv4 and one IPv6 CIDR`}},
		{cluster: "fd00::/56,fd01::/56", want: []string{`--cluster-cidr="fd00::/56,fd01::/56": two CIDRs must be configured as dual stack, at least one from each IPFamily`}},
		{cluster: "10.244.0.0/16,fd00::/56", flags: "--node-cidr-mask-size=24", want: []string{
			`--node-cidr-mask-size=24: usage is not allowed with dual-stack clusters, set --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6`,
		}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=25", want: []string{
			`--node-cidr-mask-size-ipv4=25: usage is not allowed together with --node-cidr-mask-size`,
		}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size-ipv6=65", want: []string{`--node-cidr-mask-size-ipv6=65: usage is not allowed in a cluster of IPv4 only`}},
		{cluster: "fd00::/56", flags: "--node-cidr-mask-size-ipv4=25", want: []string{`--node-cidr-mask-size-ipv4=25: usage is not allowed in a cluster of IPv6 only`}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size=33", want: []string{`--node-cidr-mask-size=33: must be between the mask size of --cluster-cidr 10.244.0.0/16 and 32`}},
		{cluster: "10.244.0.0/16", flags: "--node-cidr-mask-size=-1", want: []string{`--node-cidr-mask-size=-1: must be between the mask size of --cluster-cidr 10.244.0.0/16 and 32`}},
		{cluster: "fd00::/48", flags: "--node-cidr-mask-size=65", want: []string{`--node-cidr-mask-size=65: must be at most 16 longer than the mask size of --cluster-cidr fd00::/48`}},
		{cluster: "10.244.0.0/26,fd00::/40", want: []string{
			`--node-cidr-mask-size-ipv4=24: must be between the mask size of --cluster-cidr 10.244.0.0/26 and 32`,
			`--node-cidr-mask-size-ipv6=64: must be at most 16 longer than the mask size of --cluster-cidr fd00::/40`,
		}},
	} {
		t.Run(test.cluster+" "+test.flags, func(t *testing.T) {
			s := parse(t, append(strings.Fields(test.flags), "--allocate-node-cidrs", "--cluster-cidr="+test.cluster)...)
			cidrs, masks, err := NodeCIDRs(test.cluster, *s.NodeIPAMController.NodeIPAMControllerConfiguration)
			if diff := cmp.Diff(test.masks, masks); diff != "" {
				t.Errorf("masks (-want +got):\n%s", diff)
			}
			if (err == nil) != (len(test.want) == 0) || len(cidrs) != len(masks) {
				t.Errorf("%d ranges, %d masks, error %v", len(cidrs), len(masks), err)
			}
			got := lines(t, s.Validate(testControllers, testDisabled, testAliases))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
