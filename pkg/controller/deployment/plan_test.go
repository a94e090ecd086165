// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

func TestCreatedReplicaSet(t *testing.T) {
	d := deploymentOf(3, 1, 0, annotation("a", "1"), annotation("kubectl.kubernetes.io/last-applied-configuration", "{}"))
	d.Spec.MinReadySeconds = 7
	rs := planOf(t, snapshotOf(d, setOf("old", 3, 4, 3, 1))).create
	hash := rs.Labels[apps.DefaultDeploymentUniqueLabelKey]
	labels := map[string]string{"app": "web", apps.DefaultDeploymentUniqueLabelKey: hash}
	template := templateOf("new")
	template.Labels = labels
	mustEqual(t, "replica set", &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-" + hash, Namespace: "ns", Labels: labels,
			Annotations: map[string]string{"a": "1", util.RevisionAnnotation: "6", util.DesiredReplicasAnnotation: "3", util.MaxReplicasAnnotation: "4"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web-uid", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: apps.ReplicaSetSpec{Replicas: new(int32(1)), MinReadySeconds: 7, Template: template, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, rs)
}

func TestCreatedReplicaSetsSize(t *testing.T) {
	cases := map[string]struct {
		d    *apps.Deployment
		sets []*apps.ReplicaSet
		want int32
	}{
		"the first":                 {deploymentOf(3, 1, 0), nil, 3},
		"as the surge allows":       {deploymentOf(10, 2, 0), []*apps.ReplicaSet{setOf("old", 10, 0, 10, 2)}, 2},
		"none without surge":        {deploymentOf(10, 0, 1), []*apps.ReplicaSet{setOf("old", 10, 0, 10, 0)}, 0},
		"a deployment without pods": {deploymentOf(0, 1, 0), nil, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sizeOf(planOf(t, snapshotOf(c.d, c.sets...)).create); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

// TestGoldenNames has names that upstream's binary gave, the second one after a collision. (The hash
// itself is tested with more templates where it is computed.)
func TestGoldenNames(t *testing.T) {
	golden := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"n": "1"}, Labels: map[string]string{"a": "2", "app": "hv-01", "z": "1"}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "c", Image: "nginx:1", ImagePullPolicy: v1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile}},
			DNSPolicy: v1.DNSClusterFirst, RestartPolicy: v1.RestartPolicyAlways, SchedulerName: "default-scheduler",
			SecurityContext: &v1.PodSecurityContext{}, TerminationGracePeriodSeconds: new(int64(30)),
		},
	}
	for want, collisions := range map[string]*int32{"web-5bb989d95d": nil, "web-58d8659b4c": new(int32(1))} {
		d := deploymentOf(1, 1, 0)
		d.Spec.Template, d.Status.CollisionCount = golden, collisions
		rs := planOf(t, snapshotOf(d)).create
		if hash := strings.TrimPrefix(want, "web-"); rs.Name != want || rs.Labels[apps.DefaultDeploymentUniqueLabelKey] != hash {
			t.Errorf("name %s, want %s", rs.Name, want)
		}
	}
}

func TestReplicaSetName(t *testing.T) {
	long := strings.Repeat("a", 253)
	cases := map[string]struct{ deployment, hash, want string }{
		"short":                    {"web", "cffc885d9", "web-cffc885d9"},
		"as long as it may be":     {long[:243], "cffc885d9", long[:243] + "-cffc885d9"},
		"one too long":             {long[:244], "cffc885d9", long[:243] + "-cffc885d9"},
		"very long (BC020)":        {long, "cffc885d9", long[:243] + "-cffc885d9"},
		"a very long hash is kept": {long, strings.Repeat("b", 200), long[:52] + "-" + strings.Repeat("b", 200)},
		"not cut behind a dot":     {long[:242] + "." + long[:10], "cffc885d9", long[:242] + "-cffc885d9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := replicaSetName(c.deployment, c.hash)
			if got != c.want {
				t.Errorf("got %s", got)
			}
			if len(got) > 253 {
				t.Errorf("%d characters", len(got))
			}
			if errs := validation.IsDNS1123Subdomain(got); len(errs) != 0 {
				t.Error(errs)
			}
		})
	}
}

func TestUpdateNewReplicaSet(t *testing.T) {
	d := deploymentOf(3, 1, 0, annotation("a", "1"))
	d.Spec.MinReadySeconds = 5
	p := planOf(t, snapshotOf(d, setOf("new", 3, 0, 3, 1), setOf("old", 0, 4, 3, 1)))
	if len(p.updates) != 1 {
		t.Fatalf("plan: %+v", p)
	}
	is := p.updates[0].is
	mustEqual(t, "annotations", map[string]string{
		"a": "1", util.RevisionAnnotation: "6", util.RevisionHistoryAnnotation: "1", util.DesiredReplicasAnnotation: "3", util.MaxReplicasAnnotation: "4",
	}, is.Annotations)
	if is.Spec.MinReadySeconds != 5 || is.ResourceVersion != "5" {
		t.Errorf("minReadySeconds %d, resourceVersion %q", is.Spec.MinReadySeconds, is.ResourceVersion)
	}
}

// TestOneWritePerReplicaSet: going back to an old template raises that ReplicaSet's revision and
// scales it up in the same write.
func TestOneWritePerReplicaSet(t *testing.T) {
	s := snapshotOf(deploymentOf(3, 1, 0), setOf("new", 0, 0, 3, 1), setOf("other", 3, 4, 3, 1))
	p := planOf(t, s)
	if len(p.updates) != 1 || sizeOf(p.updates[0].is) != 1 || p.updates[0].is.Annotations[util.RevisionAnnotation] != "6" {
		t.Errorf("plan: %+v", p)
	}
	if p.updates[0].was != s.family.newRS {
		t.Error("the update does not start from the cached object")
	}
}

func TestPlansThatDoNotRoll(t *testing.T) {
	now := metav1.NewTime(epoch)
	cases := map[string]struct {
		d    *apps.Deployment
		sets []*apps.ReplicaSet
		want plan
	}{
		"selecting everything": {
			deploymentOf(3, 1, 0, func(d *apps.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), nil,
			plan{warning: &message{"Warning", "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required."}, report: reportObserved}},
		"being deleted":                {deploymentOf(3, 1, 0, func(d *apps.Deployment) { d.DeletionTimestamp = &now }), nil, plan{report: reportStatus}},
		"paused":                       {deploymentOf(3, 1, 0, paused), nil, plan{report: reportStatus}},
		"paused with another template": {deploymentOf(3, 1, 0, paused), []*apps.ReplicaSet{setOf("old", 3, 0, 3, 1)}, plan{report: reportStatus}},
		"complete":                     {deploymentOf(3, 1, 0, complete), []*apps.ReplicaSet{setOf("new", 3, 0, 3, 1)}, plan{report: reportRollout}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := planOf(t, snapshotOf(c.d, c.sets...))
			if fmt.Sprintf("%+v", got.warning) != fmt.Sprintf("%+v", c.want.warning) || got.report != c.want.report ||
				got.create != nil || got.updates != nil || got.deletes != nil || got.rollback != nil {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestUnknownStrategy(t *testing.T) {
	d := deploymentOf(1, 1, 0, func(d *apps.Deployment) { d.Spec.Strategy.Type = "Magic" })
	_, err := makePlan(snapshotOf(d))
	if err == nil || err.Error() != "unexpected deployment strategy type: Magic" {
		t.Errorf("got %v", err)
	}
}

func TestCleanUp(t *testing.T) {
	const limit = 1
	now := metav1.NewTime(epoch)
	idle := func(name string, rev int, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
		return setOf(name, 0, 10-rev, 3, 1, append(changes, revision(rev))...)
	}
	sets := func(rs ...*apps.ReplicaSet) []*apps.ReplicaSet { return rs }
	cases := map[string]struct {
		limit *int32
		old   []*apps.ReplicaSet
		want  []string
	}{
		"no limit":                            {nil, sets(idle("a", 1), idle("b", 2), idle("c", 3)), nil},
		"infinite limit":                      {new(int32(1<<31 - 1)), sets(idle("a", 1), idle("b", 2), idle("c", 3)), nil},
		"within the limit":                    {new(int32(3)), sets(idle("a", 1), idle("b", 2), idle("c", 3)), nil},
		"the lowest revisions go":             {new(int32(limit)), sets(idle("c", 3), idle("a", 1), idle("b", 2)), []string{"a", "b"}},
		"by number, not as text":              {new(int32(limit)), sets(idle("ten", 10), idle("nine", 9)), []string{"nine"}},
		"none are kept":                       {new(int32(0)), sets(idle("a", 1), idle("b", 2)), []string{"a", "b"}},
		"one with pods counts, stays":         {new(int32(limit)), sets(idle("a", 1, running(1)), idle("b", 2), idle("c", 3)), []string{"b"}},
		"one that wants pods stays":           {new(int32(0)), sets(idle("a", 1, func(rs *apps.ReplicaSet) { rs.Spec.Replicas = new(int32(1)) })), nil},
		"one whose change was not seen stays": {new(int32(0)), sets(idle("a", 1, func(rs *apps.ReplicaSet) { rs.Generation = 2 })), nil},
		"one in deletion does not count": {new(int32(limit)),
			sets(idle("a", 1, func(rs *apps.ReplicaSet) { rs.DeletionTimestamp = &now }), idle("b", 2), idle("c", 3)), []string{"b"}},
	}
	for name, c := range cases {
		modes := map[string]func(*apps.Deployment){"complete": complete, "paused": paused}
		for mode, change := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				d := deploymentOf(3, 1, 0, change, func(d *apps.Deployment) { d.Spec.RevisionHistoryLimit = c.limit })
				all := append(sets(setOf("new", 3, 20, 3, 1)), c.old...)
				if mode == "complete" && name == "one that wants pods stays" {
					return // a rollout that takes that pod away first
				}
				var deleted []string
				for _, rs := range planOf(t, snapshotOf(d, all...)).deletes {
					deleted = append(deleted, rs.Name)
				}
				mustEqual(t, "deleted", c.want, deleted)
			})
		}
	}
}

func TestNoCleanUpBeforeTheEnd(t *testing.T) {
	d := deploymentOf(3, 1, 0, historyLimit(0))
	p := planOf(t, snapshotOf(d, setOf("new", 3, 1, 3, 1), setOf("old", 0, 0, 3, 1)))
	if len(p.deletes) != 0 {
		t.Error("history was deleted although the status does not say complete yet")
	}
	d = deploymentOf(3, 1, 0, historyLimit(0), paused, annotation(apps.DeprecatedRollbackTo, "0"))
	p = planOf(t, snapshotOf(d, setOf("new", 3, 1, 3, 1), setOf("old", 0, 0, 3, 1)))
	if len(p.deletes) != 0 {
		t.Error("history was deleted although a rollback waits for the end of the pause")
	}
}

func TestRollback(t *testing.T) {
	last := setOf("last", 0, 1, 3, 1, func(rs *apps.ReplicaSet) { rs.Annotations["a"] = "1" })
	cases := map[string]struct {
		to      string
		sets    []*apps.ReplicaSet
		message message
		image   string
	}{
		"to the last revision": {"0", []*apps.ReplicaSet{setOf("first", 0, 0, 3, 1), last, setOf("new", 3, 2, 3, 1)},
			message{"Normal", "DeploymentRollback", `Rolled back deployment "web" to revision 2`}, "last"},
		"to a given revision": {"1", []*apps.ReplicaSet{setOf("first", 0, 0, 3, 1), last, setOf("new", 3, 2, 3, 1)},
			message{"Normal", "DeploymentRollback", `Rolled back deployment "web" to revision 1`}, "first"},
		"there is no last": {"0", []*apps.ReplicaSet{setOf("new", 3, 0, 3, 1)},
			message{"Warning", "DeploymentRollbackRevisionNotFound", "Unable to find last revision."}, "new"},
		"there is no such revision": {"7", []*apps.ReplicaSet{last, setOf("new", 3, 2, 3, 1)},
			message{"Warning", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."}, "new"},
		"to what it is": {"3", []*apps.ReplicaSet{last, setOf("new", 3, 2, 3, 1)},
			message{"Warning", "DeploymentRollbackTemplateUnchanged", `The rollback revision contains the same template as current deployment "web"`}, "new"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := deploymentOf(3, 1, 0, annotation(apps.DeprecatedRollbackTo, c.to), annotation(util.RevisionAnnotation, "3"), annotation("mine", "1"))
			for _, rs := range c.sets { // they have the deployment's annotation, but for the old ones
				if rs.Name == "new" {
					rs.Annotations["mine"] = "1"
				}
			}
			p := planOf(t, snapshotOf(d, c.sets...))
			if p.rollback == nil || len(p.updates) != 0 || p.create != nil || p.report != reportNothing {
				t.Fatalf("plan: %+v", p)
			}
			mustEqual(t, "message", fmt.Sprint(c.message), fmt.Sprint(p.rollback.message))
			mustEqual(t, "template", templateOf(c.image), p.rollback.deployment.Spec.Template)
			want := map[string]string{util.RevisionAnnotation: "3", "mine": "1"}
			switch c.image {
			case "last":
				want = map[string]string{util.RevisionAnnotation: "3", "a": "1"}
			case "first":
				want = map[string]string{util.RevisionAnnotation: "3"}
			}
			mustEqual(t, "annotations", want, p.rollback.deployment.Annotations)
		})
	}
}

// TestRollbackTakesTwoRounds: a template without a ReplicaSet becomes a revision first.
func TestRollbackTakesTwoRounds(t *testing.T) {
	d := deploymentOf(3, 1, 0, annotation(apps.DeprecatedRollbackTo, "0"))
	old := setOf("old", 3, 0, 3, 1)
	p := planOf(t, snapshotOf(d, old))
	if p.create == nil || p.rollback != nil || p.report != reportStatus {
		t.Fatalf("first plan: %+v", p)
	}
	p = planOf(t, snapshotOf(d, old, p.create))
	if p.create != nil || p.rollback == nil || p.rollback.message.reason != rollbackDone {
		t.Fatalf("second plan: %+v", p)
	}
}

func TestUnparsableRollbackIsIgnored(t *testing.T) {
	d := deploymentOf(3, 1, 0, complete, annotation(apps.DeprecatedRollbackTo, "x"))
	if p := planOf(t, snapshotOf(d, setOf("new", 3, 0, 3, 1))); p.rollback != nil || p.report != reportRollout {
		t.Errorf("plan: %+v", p)
	}
}
