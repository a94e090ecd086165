// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	ignore    = batch.PodFailurePolicyActionIgnore
	count     = batch.PodFailurePolicyActionCount
	failJob   = batch.PodFailurePolicyActionFailJob
	failIndex = batch.PodFailurePolicyActionFailIndex
)

func TestMatchFailurePolicy(t *testing.T) {
	notIn := func(action batch.PodFailurePolicyAction, codes ...int32) batch.PodFailurePolicyRule {
		rule := onExit(action, codes...)
		rule.OnExitCodes.Operator = batch.PodFailurePolicyOnExitCodesOpNotIn
		return rule
	}
	unknownOperator := onExit(ignore, 1)
	unknownOperator.OnExitCodes.Operator = "Unknown"
	ofOther := onExit(failJob, 1)
	ofOther.OnExitCodes.ContainerName = new("other")
	ofMain := onExit(failJob, 1)
	ofMain.OnExitCodes.ContainerName = new("main")
	initFailed := func(pod *v1.Pod) {
		pod.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 5}}}}
	}
	disrupted := func(value v1.ConditionStatus) func(*v1.Pod) { return podCondition(v1.DisruptionTarget, value) }
	for _, tc := range []struct {
		name  string
		rules []batch.PodFailurePolicyRule
		pod   func(*v1.Pod)
		want  failureMatch
	}{
		{"no rules", nil, exited(1, 0), failureMatch{counts: true}},
		{"unknown action for exit codes is skipped", []batch.PodFailurePolicyRule{onExit("Unknown", 1), onExit(ignore, 1)}, exited(1, 0), failureMatch{action: ignore}},
		{"unknown action for conditions is skipped", []batch.PodFailurePolicyRule{onCondition("Unknown", v1.DisruptionTarget, v1.ConditionTrue), onCondition(ignore, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionTrue), failureMatch{action: ignore}},
		{"unknown operator is skipped", []batch.PodFailurePolicyRule{unknownOperator}, exited(1, 0), failureMatch{counts: true}},
		{"ignored by exit code", []batch.PodFailurePolicyRule{onExit(ignore, 1, 2)}, exited(2, 0), failureMatch{action: ignore}},
		{"negative exit code", []batch.PodFailurePolicyRule{onExit(ignore, -1073741571)}, exited(-1073741571, 0), failureMatch{action: ignore}},
		{"FailJob by exit code", []batch.PodFailurePolicyRule{onExit(failJob, 1)}, exited(1, 0),
			failureMatch{action: failJob, counts: true, message: "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 0"}},
		{"successful containers are skipped", []batch.PodFailurePolicyRule{notIn(failJob, 111)}, func(pod *v1.Pod) { exited(0, 0)(pod); exited(111, 0)(pod) }, failureMatch{counts: true}},
		{"FailIndex by exit code", []batch.PodFailurePolicyRule{onExit(failIndex, 1)}, exited(1, 0), failureMatch{action: failIndex, counts: true}},
		{"NotIn and 0", []batch.PodFailurePolicyRule{notIn(failJob, 0)}, exited(1, 0),
			failureMatch{action: failJob, counts: true, message: "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 0"}},
		{"second rule", []batch.PodFailurePolicyRule{onExit(failJob, 2), onExit(failJob, 1)}, exited(1, 0),
			failureMatch{action: failJob, counts: true, message: "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 1"}},
		{"first rule wins", []batch.PodFailurePolicyRule{onExit(count, 1), onExit(failJob, 1)}, exited(1, 0), failureMatch{action: count, counts: true}},
		{"other container", []batch.PodFailurePolicyRule{ofOther}, exited(1, 0), failureMatch{counts: true}},
		{"named container", []batch.PodFailurePolicyRule{ofMain}, exited(1, 0),
			failureMatch{action: failJob, counts: true, message: "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 0"}},
		{"init container", []batch.PodFailurePolicyRule{onExit(failJob, 5)}, initFailed,
			failureMatch{action: failJob, counts: true, message: "Container init for pod ns/p failed with exit code 5 matching FailJob rule at index 0"}},
		{"FailIndex by condition", []batch.PodFailurePolicyRule{onCondition(failIndex, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionTrue), failureMatch{action: failIndex, counts: true}},
		{"ignored by condition", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionTrue), failureMatch{action: ignore}},
		{"ignored by status False", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionFalse)}, disrupted(v1.ConditionFalse), failureMatch{action: ignore}},
		{"ignored by status Unknown", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionUnknown)}, disrupted(v1.ConditionUnknown), failureMatch{action: ignore}},
		{"False wanted, True found", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionFalse)}, disrupted(v1.ConditionTrue), failureMatch{counts: true}},
		{"True wanted, False found", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionFalse), failureMatch{counts: true}},
		{"FailJob by condition", []batch.PodFailurePolicyRule{onCondition(failJob, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionTrue),
			failureMatch{action: failJob, counts: true, message: "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"}},
		{"count by condition", []batch.PodFailurePolicyRule{onCondition(count, v1.DisruptionTarget, v1.ConditionTrue)}, disrupted(v1.ConditionTrue), failureMatch{action: count, counts: true}},
		{"no rule matches", []batch.PodFailurePolicyRule{onCondition(ignore, v1.DisruptionTarget, v1.ConditionTrue), onExit(ignore, 7)}, exited(32, 0), failureMatch{counts: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy := &batch.PodFailurePolicy{Rules: tc.rules}
			if got := matchFailurePolicy(policy, newPod("p", v1.PodFailed, tc.pod)); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
	if got := matchFailurePolicy(nil, newPod("p", v1.PodFailed)); !got.counts {
		t.Error("without a policy a failure does not count")
	}
}

func TestMatchSuccessPolicy(t *testing.T) {
	rule := func(indexes string, count int32) batch.SuccessPolicyRule {
		var r batch.SuccessPolicyRule
		if indexes != "-" {
			r.SucceededIndexes = &indexes
		}
		if count > 0 {
			r.SucceededCount = &count
		}
		return r
	}
	const met, met1 = "Matched rules at index 0", "Matched rules at index 1"
	for _, tc := range []struct {
		name      string
		rules     []batch.SuccessPolicyRule
		succeeded string
		want      string
	}{
		{"no rules", nil, "0-5", ""},
		{"invalid format", []batch.SuccessPolicyRule{rule("invalid-form", 0)}, "0-5", ""},
		{"indexes", []batch.SuccessPolicyRule{rule("0-2", 0)}, "0-2", met},
		{"indexes, one missing", []batch.SuccessPolicyRule{rule("0-2", 0)}, "0,1", ""},
		{"count", []batch.SuccessPolicyRule{rule("-", 2)}, "0,8", met},
		{"count, too few", []batch.SuccessPolicyRule{rule("-", 3)}, "0,8", ""},
		{"second rule", []batch.SuccessPolicyRule{rule("9-11", 0), rule("3,5,7", 0)}, "0,3,5-7", met1},
		{"both rules", []batch.SuccessPolicyRule{rule("9-11", 0), rule("3,5,7", 0)}, "0,3,5-7,9-12", met},
		{"indexes and count", []batch.SuccessPolicyRule{rule("0-2,4", 2)}, "0,2,5", met},
		{"indexes and count, too few", []batch.SuccessPolicyRule{rule("0-2,4", 3)}, "0,2,5", ""},
		{"nothing succeeded", []batch.SuccessPolicyRule{rule("0", 0)}, "", ""},
		{"more than the rule wants", []batch.SuccessPolicyRule{rule("5-7", 0)}, "3-9", met},
		{"just what the rule wants", []batch.SuccessPolicyRule{rule("5-7", 0)}, "5-7", met},
		{"a part of what the rule wants", []batch.SuccessPolicyRule{rule("3-9", 0)}, "5-7", ""},
		{"the rule wants nothing", []batch.SuccessPolicyRule{rule("", 0)}, "0-2", ""},
		{"the rule wants nothing and nothing succeeded", []batch.SuccessPolicyRule{rule("", 0)}, "", ""},
		{"others than the rule wants", []batch.SuccessPolicyRule{rule("0-2", 0)}, "3-5", ""},
		{"overlap at first", []batch.SuccessPolicyRule{rule("0-3", 0)}, "2-5", ""},
		{"overlap at first, count", []batch.SuccessPolicyRule{rule("0-3", 2)}, "2-5", met},
		{"overlap at last", []batch.SuccessPolicyRule{rule("4-7", 0)}, "2-5", ""},
		{"overlap at last, count", []batch.SuccessPolicyRule{rule("4-7", 2)}, "2-5", met},
		{"the rule overlaps all", []batch.SuccessPolicyRule{rule("0-9", 0)}, "2-5", ""},
		{"the rule overlaps all, count", []batch.SuccessPolicyRule{rule("0-9", 4)}, "2-5", met},
		{"overlap of several at last", []batch.SuccessPolicyRule{rule("0-2,5-9", 0)}, "0-2,5-7,9", ""},
		{"overlap of several at last, count", []batch.SuccessPolicyRule{rule("0-2,5-9", 6)}, "0-2,5-7", met},
		{"overlap at first, equal at last", []batch.SuccessPolicyRule{rule("0-2,5-7", 0)}, "1,2,5-7", ""},
		{"overlap at first, equal at last, count", []batch.SuccessPolicyRule{rule("0-2,5-7", 5)}, "1,2,5-7", met},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy := &batch.SuccessPolicy{Rules: tc.rules}
			got, ok := matchSuccessPolicy(policy, 20, parseIndexes(tc.succeeded, 20))
			if got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got, ok, tc.want)
			}
		})
	}
	if _, ok := matchSuccessPolicy(nil, 20, parseIndexes("0-9", 20)); ok {
		t.Error("met without a policy")
	}
}
