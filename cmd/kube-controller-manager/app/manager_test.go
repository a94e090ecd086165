// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/keyutil"

	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/config"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/app/options"
	"github.com/kcm-dev/kcm/cmd/kube-controller-manager/internal/fakeapi"
	ourinformers "github.com/kcm-dev/kcm/staging/src/k8s.io/client-go/informers"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/clientbuilder"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/gate"
	"github.com/kcm-dev/kcm/staging/src/k8s.io/controller-manager/pkg/informerfactory"
)

// configFor returns the configuration of a manager of the fake API server that serves nothing.
func configFor(t *testing.T, api *fakeapi.Server, flags ...string) *config.CompletedConfig {
	t.Helper()
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	named := s.Flags(KnownControllers(), ControllersDisabledByDefault(), ControllerAliases())
	for _, fs := range named.FlagSets {
		all.AddFlagSet(fs)
	}
	if err := all.Parse(append(append(api.Flags(t), "--secure-port=0"), flags...)); err != nil {
		t.Fatal(err)
	}
	c, err := s.Config(context.WithoutCancel(t.Context()), KnownControllers(), ControllersDisabledByDefault(), ControllerAliases())
	if err != nil {
		t.Fatal(err)
	}
	return c.Complete()
}

// managerRun is a manager that runs in the background.
type managerRun struct {
	manager *manager
	stop    context.CancelFunc
	done    chan struct{}
	err     error
}

func start(t *testing.T, c *config.CompletedConfig) *managerRun {
	t.Helper()
	return startManager(t, newManager(t.Context(), c))
}

func startManager(t *testing.T, m *manager) *managerRun {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &managerRun{manager: m, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = r.manager.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

func (r *managerRun) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(30 * time.Second):
		t.Fatal("the manager does not return")
		return nil
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("gave up waiting: %s", what)
}

func (r *managerRun) names() []string {
	var names []string
	for _, s := range r.manager.registry.all() {
		names = append(names, s.name)
	}
	slices.Sort(names)
	return names
}

func (r *managerRun) ready() error {
	return errors.Join(r.manager.ready.checkLeader(nil), r.manager.ready.checkCaches(nil), r.manager.ready.checkControllers(nil))
}

// expected are the controllers of the table that run without any flag, sorted.
func expected(t *testing.T) []string {
	t.Helper()
	var names []string
	defaults := options.NewDefaultComponentConfig()
	for _, d := range NewControllerDescriptors() {
		idle := d.Configured != nil && !d.Configured(&defaults)
		if d.Available() && !d.DisabledByDefault && !idle && d.blockedBy(utilfeature.DefaultFeatureGate) == "" {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	for _, name := range []string{"deployment-controller", "namespace-controller", "serviceaccount-controller"} {
		if !slices.Contains(names, name) {
			t.Fatalf("the table lacks %s", name)
		}
	}
	return names
}

func TestRunLeadsAndEndsWithoutLeaks(t *testing.T) {
	api := fakeapi.New(t)
	before := goleak.IgnoreCurrent()
	r := start(t, configFor(t, api))
	api.WaitForHolder(t, "kube-controller-manager")
	eventually(t, "the leader is ready", func() bool { return r.ready() == nil && len(r.names()) > 0 })
	if diff := cmp.Diff(expected(t), r.names()); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	for _, s := range r.manager.registry.all() {
		eventually(t, s.name+" is healthy", func() bool { return s.status().Phase == phaseRunning && s.check(nil) == nil })
	}
	health := get(r.manager.health, "/healthz?verbose", "").Body.String()
	for _, name := range append([]string{"leaderElection"}, expected(t)...) {
		if !strings.Contains(health, "[+]"+name+" ok\n") {
			t.Errorf("/healthz lacks %s:\n%s", name, health)
		}
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Run() = %v, want nil after the signal to stop", err)
	}
	if holder := api.Holder("kube-controller-manager"); holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}
	api.DropConnections()
	goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// createsAccount is the write by which the tests see that the controllers may write.
const createsAccount = "POST /api/v1/namespaces/default/serviceaccounts"

func writes(api *fakeapi.Server) []string {
	return slices.DeleteFunc(api.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.Contains(request, "/leases") || strings.HasSuffix(request, "/events")
	})
}

func TestStandbyIsWarmAndWritesNothing(t *testing.T) {
	api := fakeapi.New(t)
	api.SetHolder("kube-controller-manager", "another")
	standby := start(t, configFor(t, api))
	eventually(t, "the standby is ready", func() bool { return standby.ready() == nil })
	if names := standby.names(); len(names) > 0 {
		t.Errorf("the standby runs %v", names)
	}
	if got := writes(api); len(got) > 0 {
		t.Errorf("the standby wrote: %v", got)
	}
	api.SetHolder("kube-controller-manager", "")
	eventually(t, "the standby takes over and writes", func() bool { return slices.Contains(writes(api), createsAccount) })
	if err := standby.ready(); err != nil {
		t.Errorf("the new leader is not ready: %v", err)
	}
}

func TestRunWithoutElectionWrites(t *testing.T) {
	api := fakeapi.New(t)
	r := start(t, configFor(t, api, "--leader-elect=false"))
	eventually(t, "a controller writes", func() bool { return slices.Contains(writes(api), createsAccount) })
	if api.Lease("kube-controller-manager") != nil {
		t.Error("a lease was taken")
	}
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Run() = %v, want nil after the signal to stop", err)
	}
}

func TestRunEndsWhenTheLeaseIsLost(t *testing.T) {
	api := fakeapi.New(t)
	r := start(t, configFor(t, api, "--leader-elect-retry-period=100ms", "--leader-elect-renew-deadline=5s"))
	api.WaitForHolder(t, "kube-controller-manager")
	eventually(t, "the leader has built its controllers", func() bool { return len(r.names()) > 0 })
	api.SetHolder("kube-controller-manager", "usurper")
	if err := r.wait(t); !errors.Is(err, errLeaseLost) {
		t.Errorf("Run() = %v, want %v", err, errLeaseLost)
	}
}

func TestRunFailsWhenTheAPIServerIsNotHealthy(t *testing.T) {
	api := fakeapi.New(t)
	api.SetHealthy(false)
	m := newManager(t.Context(), configFor(t, api, "--leader-elect=false"))
	m.apiServerTimeout = 100 * time.Millisecond
	err := startManager(t, m).wait(t)
	if err == nil || !strings.Contains(err.Error(), "failed to wait for apiserver being healthy") {
		t.Errorf("Run() = %v, want it to say that the API server is not healthy", err)
	}
}

func TestRunFailsWhenAControllerCannotBeBuilt(t *testing.T) {
	api := fakeapi.New(t)
	notPEM := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := start(t, configFor(t, api, "--root-ca-file="+notPEM)).wait(t)
	if want := "error parsing root-ca-file at " + notPEM; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run() = %v, want %q", err, want)
	}
	if holder := api.Holder("kube-controller-manager"); holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}
}

func TestLeaderMigrationHoldsTwoLeases(t *testing.T) {
	api := fakeapi.New(t)
	migration := filepath.Join(t.TempDir(), "migration.yaml")
	if err := os.WriteFile(migration, []byte(`kind: LeaderMigrationConfiguration
apiVersion: controllermanager.config.k8s.io/v1
leaderName: second
controllerLeaders:
- name: serviceaccount-controller
  component: kube-controller-manager
- name: replicaset-controller
  component: "*"
- name: deployment-controller
  component: another-manager
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := configFor(t, api, "--enable-leader-migration", "--leader-migration-config="+migration)
	r := start(t, c)
	main := api.WaitForHolder(t, "kube-controller-manager")
	second := api.WaitForHolder(t, "second")
	if main != second {
		t.Errorf("leases are held by %q and %q, want the same", main, second)
	}
	want := slices.DeleteFunc(expected(t), func(name string) bool { return name == "deployment-controller" })
	eventually(t, "all controllers but the one that another manager owns are built", func() bool { return slices.Equal(r.names(), want) })
	kept, migrated := r.manager.splitForMigration()
	if got, want := []int{len(kept), len(migrated)}, []int{len(want) - 2, 2}; !slices.Equal(got, want) {
		t.Errorf("%d controllers under the main lease and %d under the second, want %d and %d", got[0], got[1], want[0], want[1])
	}
	eventually(t, "a controller writes", func() bool { return slices.Contains(writes(api), createsAccount) })
	byMain, bySecond := r.manager.registry.gates[0].Stats(), r.manager.registry.gates[1].Stats()
	isAccounts := func(s gate.Stats) bool { return s.Controller == "service-account-controller" }
	if slices.ContainsFunc(byMain, isAccounts) || !slices.ContainsFunc(bySecond, isAccounts) {
		t.Errorf("clients behind the fence of the main lease: %v\nof the second: %v\nwant service-account-controller behind the second", byMain, bySecond)
	}

	// Either lease lost ends the whole manager: another process may run half of it by now.
	api.SetHolder("second", "usurper")
	if err := r.wait(t); !errors.Is(err, errLeaseLost) || !strings.Contains(err.Error(), "kube-system/second") {
		t.Errorf("Run() = %v, want %v naming kube-system/second", err, errLeaseLost)
	}
	if holder := api.Holder("kube-controller-manager"); holder != "" {
		t.Errorf("the main lease is still held by %q", holder)
	}
}

// builderOfNoAvail hands out clients that talk to nobody.
func builderOfNoAvail() clientbuilder.ControllerClientBuilder {
	return clientbuilder.SimpleControllerClientBuilder{ClientConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Gate: gate.New(&gate.Fence{})}
}

// recordingFactory notes which resources' informers are asked for.
type recordingFactory struct {
	informers.SharedInformerFactory
	asked map[schema.GroupVersionResource]bool
}

func (f *recordingFactory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		gvr, _ := meta.UnsafeGuessKindToResource(kinds[0])
		f.asked[gvr] = true
	}
	return f.SharedInformerFactory.InformerFor(obj, newFunc)
}

// What a standby warms is what the controllers read, no more and no less.
func TestWatchesAreWhatConstructorsAskFor(t *testing.T) {
	for _, d := range NewControllerDescriptors() {
		if !d.Available() {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			factory := &recordingFactory{informers.NewSharedInformerFactory(fake.NewClientset(), 0), map[schema.GroupVersionResource]bool{}}
			cc := ControllerContext{
				RootClientBuilder: builderOfNoAvail(), ClientBuilder: builderOfNoAvail(),
				InformerFactory: factory, ComponentConfig: options.NewDefaultComponentConfig(),
			}
			cc.ComponentConfig.SAController.ServiceAccountKeyFile = writeKey(t)
			built, err := buildControllers(t.Context(), cc, []*ControllerDescriptor{d})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				for _, s := range built {
					if err := s.instance().discard(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}()
			if len(built) != 1 || built[0].instance().controller.Name() != d.Name {
				t.Errorf("built %d controllers", len(built))
			}
			want := map[schema.GroupVersionResource]bool{}
			for _, gvr := range d.Watches {
				want[gvr] = true
			}
			if diff := cmp.Diff(want, factory.asked); diff != "" {
				t.Errorf("Watches (-listed +asked for):\n%s", diff)
			}
			if len(workersOf(built[0].instance().controller)) == 0 {
				t.Error("the controller shows no workers")
			}
		})
	}
}

// A controller that comes to informers that run already gets the resync period that it asks for.
func TestWarmInformersServeTheNamespaceResyncPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		typed := ourinformers.NewSharedInformerFactory(client, 12*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer typed.Shutdown()
		defer cancel()
		m := &manager{descriptors: slices.DeleteFunc(NewControllerDescriptors(), func(d *ControllerDescriptor) bool { return d.Name != "namespace-controller" })}
		if err := m.warm(ctx, ControllerContext{
			InformerFactory:                 typed,
			ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactory(nil, 0)),
			ComponentConfig:                 options.NewDefaultComponentConfig(),
		}); err != nil {
			t.Fatal(err)
		}
		typed.WaitForCacheSyncWithContext(ctx)
		if err := m.ready.checkCaches(nil); err != nil {
			t.Errorf("caches are not ready although they have synced: %v", err)
		}

		informer := typed.Core().V1().Namespaces().Informer()
		resyncs := 0
		if _, err := informer.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(any, any) { resyncs++ },
		}, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if resyncs < 10 {
			t.Errorf("%d resyncs in an hour, want one each five minutes", resyncs)
		}
	})
}

func writeKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sa.key")
	if err := keyutil.WriteKey(path, data); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrimManagedFields(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	got, err := trimManagedFields(pod)
	if err != nil || got.(*corev1.Pod).ManagedFields != nil || got.(*corev1.Pod).Name != "a" {
		t.Errorf("trimManagedFields() = %v, %v", got, err)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "a"}
	if got, err := trimManagedFields(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("trimManagedFields(tombstone) = %v, %v", got, err)
	}
}

func TestResyncPeriod(t *testing.T) {
	period := resyncPeriod(12 * time.Hour)
	seen := map[time.Duration]bool{}
	for range 100 {
		got := period()
		if got < 12*time.Hour || got > 24*time.Hour {
			t.Fatalf("resync period %s, want within 12h and 24h", got)
		}
		seen[got] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d different periods in 100", len(seen))
	}
}

func TestInformerNamesOfTwoManagersDiffer(t *testing.T) {
	one, two := newInformerName(), newInformerName()
	defer one.Release()
	defer two.Release()
	if one.Name() == two.Name() {
		t.Errorf("both are called %q", one.Name())
	}
}
