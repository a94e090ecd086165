// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
)

// What upstream's binary shows: its flags, its --help and its /configz.
var (
	//go:embed testdata/flags.tsv
	upstreamFlags string
	//go:embed testdata/help.txt
	upstreamHelp string
	//go:embed testdata/configz.json
	upstreamConfigz []byte
)

type flagFacts struct {
	section, name, typ, def string
	deprecated              bool
	field                   string
}

// flagTable reads the recording, without section global, which is the
// command's.
func flagTable(t *testing.T) []flagFacts {
	t.Helper()
	var table []flagFacts
	for _, line := range strings.Split(strings.TrimSpace(upstreamFlags), "\n") {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || f[0] == "section" || f[0] == "global" {
			continue
		}
		table = append(table, flagFacts{f[0], f[1], f[2], f[3], strings.HasPrefix(f[4], "deprecated"), f[5]})
	}
	if len(table) != 148 {
		t.Fatalf("recording has %d flags", len(table))
	}
	return table
}

func TestFlagsAreUpstreams(t *testing.T) {
	s := newTestOptions(t)
	fss := s.Flags(testControllers, testDisabled, testAliases)
	got := map[string]flagFacts{}
	for section, fs := range fss.FlagSets {
		if section == "insecure serving" {
			continue // ours alone, see TestInsecureServingFlags
		}
		fs.VisitAll(func(f *pflag.Flag) {
			typ, _ := pflag.UnquoteUsage(f)
			if typ == "" {
				typ = f.Value.Type()
			}
			got[f.Name] = flagFacts{section: section, name: f.Name, typ: typ, def: f.DefValue, deprecated: f.Deprecated != ""}
			if f.Deprecated != "" && !f.Hidden {
				t.Errorf("--%s is deprecated, and yet in --help", f.Name)
			}
			if f.Usage == "" {
				t.Errorf("--%s has no help", f.Name)
			}
		})
	}
	for _, want := range flagTable(t) {
		want.field = ""
		if diff := cmp.Diff(want, got[want.name], cmp.AllowUnexported(flagFacts{})); diff != "" {
			t.Errorf("--%s (-upstream +ours):\n%s", want.name, diff)
		}
		delete(got, want.name)
	}
	delete(got, "leader-elect-standby") // ours alone, see TestStandbyFlag
	for name := range got {
		t.Errorf("--%s is not upstream's", name)
	}
}

func TestHelpHasUpstreamsSectionsAndFlagsInOrder(t *testing.T) {
	s := newTestOptions(t)
	var help bytes.Buffer
	cliflag.PrintSections(&help, s.Flags(testControllers, testDisabled, testAliases), 0)
	title := regexp.MustCompile(`^([A-Z].*) flags:$`)
	flag := regexp.MustCompile(`^ {2,6}(?:-\w, )?(--[a-z0-9-]+)`)
	var got []string
	for _, line := range strings.Split(help.String(), "\n") {
		if m := title.FindStringSubmatch(line); m != nil {
			got = append(got, m[1])
		} else if m := flag.FindStringSubmatch(line); m != nil {
			got = append(got, "  "+m[1])
		}
	}
	want := strings.Split(strings.TrimSpace(upstreamHelp), "\n")
	want = want[:slices.Index(want, "Global")]
	at := slices.Index(want, "Authentication")
	want = slices.Insert(want, at, "Insecure serving", "  --insecure-bind-address", "  --insecure-port")
	want = slices.Insert(want, slices.Index(want, "  --leader-elect-retry-period")+1, "  --leader-elect-standby")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-upstream +ours):\n%s", diff)
	}
}

func TestStandbyFlag(t *testing.T) {
	s := newTestOptions(t)
	set := s.Flags(nil, nil, nil).FlagSets["generic"]
	if f := set.Lookup("leader-elect-standby"); f == nil || f.DefValue != "warm" || f.Hidden {
		t.Fatalf("--leader-elect-standby: %+v", f)
	}
	if err := set.Parse([]string{"--leader-elect-standby=cold"}); err != nil {
		t.Fatal(err)
	}
	if s.Generic.Standby != config.StandbyCold {
		t.Errorf("standby %q", s.Generic.Standby)
	}
}

func TestInsecureServingFlags(t *testing.T) {
	fs := newTestOptions(t).Flags(nil, nil, nil)
	set := fs.FlagSets["insecure serving"]
	for name, def := range map[string]string{"insecure-port": "0", "insecure-bind-address": "127.0.0.1"} {
		f := set.Lookup(name)
		if f == nil || f.DefValue != def || f.Deprecated == "" || f.Hidden {
			t.Errorf("--%s: %+v", name, f)
		}
	}
}

func TestControllersHelp(t *testing.T) {
	f := newTestOptions(t).Flags(testControllers, testDisabled, testAliases).FlagSets["generic"].Lookup("controllers")
	for _, want := range []string{
		"\nAll controllers: bootstrap-signer-controller, deployment-controller, job-controller, node-ipam-controller, token-cleaner-controller\n",
		"\nDisabled-by-default controllers: bootstrap-signer-controller, token-cleaner-controller",
	} {
		if !strings.Contains(f.Usage, want) {
			t.Errorf("no %q in %q", want, f.Usage)
		}
	}
}

// flatten turns a configuration into a map from JSON path to value.
func flatten(t *testing.T, c any) map[string]string {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	flat := map[string]string{}
	var walk func(path string, node any)
	walk = func(path string, node any) {
		if object, ok := node.(map[string]any); ok {
			for key, value := range object {
				walk(strings.TrimPrefix(path+"."+key, "."), value)
			}
			return
		}
		flat[path] = fmt.Sprint(node)
	}
	walk("", tree)
	return flat
}

func TestDefaultsAreUpstreams(t *testing.T) {
	var want any
	if err := json.Unmarshal(upstreamConfigz, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flatten(t, want), flatten(t, NewDefaultComponentConfig())); diff != "" {
		t.Errorf("defaults (-upstream +ours):\n%s", diff)
	}
	var applied componentConfig
	if errs := parse(t).applyTo(&applied, testAliases); len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(flatten(t, want), flatten(t, applied)); diff != "" {
		t.Errorf("options without flags (-upstream +ours):\n%s", diff)
	}
}

// otherValue returns a value of a flag's type that is not its default, and how
// the configuration shows it.
func otherValue(t *testing.T, f flagFacts) (set, shown string) {
	t.Helper()
	switch f.typ {
	case "bool":
		v := fmt.Sprint(f.def != "true")
		return v, v
	case "int32":
		return "7", "7"
	case "float", "float32":
		return "0.75", "0.75"
	case "duration":
		return "77s", "1m17s"
	case "string":
		return "some-value", "some-value"
	case "strings":
		return "a,-b", "[a -b]"
	}
	t.Fatalf("--%s has type %s", f.name, f.typ)
	return "", ""
}

func TestEachFlagSetsItsFieldAndNoOther(t *testing.T) {
	applied := 0
	for _, f := range flagTable(t) {
		if f.field == "-" || f.name == "leader-migration-config" {
			continue
		}
		set, shown := otherValue(t, f)
		want := flatten(t, NewDefaultComponentConfig())
		if _, ok := want[f.field]; !ok {
			t.Errorf("--%s: no field %s", f.name, f.field)
			continue
		}
		want[f.field] = shown
		if f.name == "enable-leader-migration" {
			want["Generic.LeaderMigration.leaderName"] = "cloud-provider-extraction-migration"
			want["Generic.LeaderMigration.resourceLock"] = "leases"
		}
		var c componentConfig
		if errs := parse(t, "--"+f.name+"="+set).applyTo(&c, nil); len(errs) > 0 {
			t.Errorf("--%s=%s: %v", f.name, set, errs)
		}
		got := flatten(t, c)
		if f.name == "enable-leader-migration" {
			delete(got, "Generic.LeaderMigration.controllerLeaders")
			delete(want, "Generic.LeaderMigration.controllerLeaders")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("--%s=%s (-want +got):\n%s", f.name, set, diff)
		}
		applied++
	}
	if applied != 102 {
		t.Errorf("checked %d flags", applied)
	}
}

func TestServiceClusterIPRangeIsSplit(t *testing.T) {
	for _, test := range []struct{ set, first, second string }{
		{"10.96.0.0/12", "10.96.0.0/12", ""},
		{"10.96.0.0/12,fd00::/108", "10.96.0.0/12", "fd00::/108"},
	} {
		var c componentConfig
		parse(t, "--service-cluster-ip-range="+test.set).applyTo(&c, nil)
		if got := c.NodeIPAMController; got.ServiceCIDR != test.first || got.SecondaryServiceCIDR != test.second {
			t.Errorf("%s: got %q and %q", test.set, got.ServiceCIDR, got.SecondaryServiceCIDR)
		}
	}
}

func TestControllersAreAppliedByCanonicalName(t *testing.T) {
	s := parse(t, "--controllers=*,-deployment,tokencleaner", "--controllers=job-controller")
	var c componentConfig
	s.applyTo(&c, testAliases)
	want := []string{"*", "-deployment-controller", "token-cleaner-controller", "job-controller"}
	if diff := cmp.Diff(want, c.Generic.Controllers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The options stay as they were given, for /flagz.
	if s.Generic.Controllers[1] != "-deployment" {
		t.Errorf("options changed: %v", s.Generic.Controllers)
	}
}

// An applied configuration must not follow later changes of the options.
func TestApplyToCopies(t *testing.T) {
	s := newTestOptions(t)
	var c componentConfig
	s.applyTo(&c, nil)
	*s.GarbageCollectorController.EnableGarbageCollector = false
	*s.Generic.LeaderElection.LeaderElect = false
	*s.Generic.Debugging.EnableProfiling = false
	*s.KubeCloudShared.ConfigureCloudRoutes = false
	*s.PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning = false
	s.GarbageCollectorController.GCIgnoredResources[0].Resource = "changed"
	if diff := cmp.Diff(flatten(t, NewDefaultComponentConfig()), flatten(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigurationSurvivesJSON(t *testing.T) {
	var c, back componentConfig
	parse(t, "--controllers=*,-deployment", "--node-eviction-rate=0.3", "--enable-leader-migration").applyTo(&c, testAliases)
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestUnusedFlags(t *testing.T) {
	s := parse(t,
		"--concurrent-job-syncs=5", "--concurrent-deployment-syncs=3", "--root-ca-file=x",
		"--allocate-node-cidrs", "--leader-elect=false", "--service-account-private-key-file=y", "--flex-volume-plugin-dir=z")
	for _, test := range []struct {
		built []string
		want  []string
	}{
		{nil, []string{"--allocate-node-cidrs", "--concurrent-deployment-syncs", "--concurrent-job-syncs", "--flex-volume-plugin-dir", "--root-ca-file", "--service-account-private-key-file"}},
		{[]string{"job-controller", "root-ca-certificate-publisher-controller"}, []string{"--allocate-node-cidrs", "--concurrent-deployment-syncs", "--flex-volume-plugin-dir", "--service-account-private-key-file"}},
		{[]string{"deployment-controller", "job-controller", "node-ipam-controller", "persistentvolume-expander-controller", "serviceaccount-token-controller"}, nil},
	} {
		got := s.UnusedFlags(func(name string) bool { return slices.Contains(test.built, name) })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("built %v (-want +got):\n%s", test.built, diff)
		}
	}
	if got := newTestOptions(t).UnusedFlags(func(string) bool { return false }); got != nil {
		t.Errorf("without flags: %v", got)
	}
}

func TestEveryFlagUserIsAFlagOfAController(t *testing.T) {
	fs := commandLine(newTestOptions(t))
	for name := range maps.Keys(flagUsers) {
		if fs.Lookup(name) == nil {
			t.Errorf("no flag --%s", name)
		}
	}
}
