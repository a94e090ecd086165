// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// failureMatch is what a Job's pod failure policy says of a failed Pod.
type failureMatch struct {
	// action of the rule that matched; "" when none did.
	action batch.PodFailurePolicyAction
	// counts tells whether the failure counts towards the back-off limits.
	counts bool
	// message says why the Job is to fail; only for FailJob.
	message string
}

// matchFailurePolicy finds the first rule that matches a failed Pod. Rules with actions or
// operators that this release does not know are skipped.
func matchFailurePolicy(policy *batch.PodFailurePolicy, pod *v1.Pod) failureMatch {
	if policy == nil {
		return failureMatch{counts: true}
	}
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		why, matched := matchRule(rule, i, pod)
		if !matched {
			continue
		}
		switch rule.Action {
		case batch.PodFailurePolicyActionIgnore:
			return failureMatch{action: rule.Action}
		case batch.PodFailurePolicyActionCount, batch.PodFailurePolicyActionFailIndex:
			return failureMatch{action: rule.Action, counts: true}
		case batch.PodFailurePolicyActionFailJob:
			return failureMatch{action: rule.Action, counts: true, message: why}
		}
	}
	return failureMatch{counts: true}
}

// matchRule says whether a rule matches, and how.
func matchRule(rule *batch.PodFailurePolicyRule, number int, pod *v1.Pod) (string, bool) {
	if rule.OnExitCodes != nil {
		container := matchExitCodes(rule.OnExitCodes, pod)
		if container == nil {
			return "", false
		}
		return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v matching %v rule at index %d",
			container.Name, pod.Namespace, pod.Name, container.State.Terminated.ExitCode, rule.Action, number), true
	}
	condition := matchConditions(rule.OnPodConditions, pod)
	if condition == nil {
		return "", false
	}
	return fmt.Sprintf("Pod %s/%s has condition %v matching %v rule at index %d",
		pod.Namespace, pod.Name, condition.Type, rule.Action, number), true
}

// matchExitCodes returns the first container whose exit code the requirement matches.
func matchExitCodes(requirement *batch.PodFailurePolicyOnExitCodesRequirement, pod *v1.Pod) *v1.ContainerStatus {
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			status := &statuses[i]
			ended := status.State.Terminated
			if ended == nil || ended.ExitCode == 0 {
				continue
			}
			if requirement.ContainerName != nil && *requirement.ContainerName != status.Name {
				continue
			}
			if exitCodeMatches(requirement, ended.ExitCode) {
				return status
			}
		}
	}
	return nil
}

func exitCodeMatches(requirement *batch.PodFailurePolicyOnExitCodesRequirement, code int32) bool {
	listed := slices.Contains(requirement.Values, code)
	switch requirement.Operator {
	case batch.PodFailurePolicyOnExitCodesOpIn:
		return listed
	case batch.PodFailurePolicyOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

// matchConditions returns the first of the Pod's conditions that a pattern matches.
func matchConditions(patterns []batch.PodFailurePolicyOnPodConditionsPattern, pod *v1.Pod) *v1.PodCondition {
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		for _, pattern := range patterns {
			if pattern.Type == condition.Type && pattern.Status == condition.Status {
				return condition
			}
		}
	}
	return nil
}

// matchSuccessPolicy says whether the succeeded indexes fulfil a rule, and which.
func matchSuccessPolicy(policy *batch.SuccessPolicy, completions int, succeeded indexes) (string, bool) {
	if policy == nil {
		return "", false
	}
	for i, rule := range policy.Rules {
		if successRuleMet(rule, completions, succeeded) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func successRuleMet(rule batch.SuccessPolicyRule, completions int, succeeded indexes) bool {
	if rule.SucceededIndexes == nil {
		return rule.SucceededCount != nil && succeeded.total() >= int(*rule.SucceededCount)
	}
	wanted := parseIndexes(*rule.SucceededIndexes, completions)
	if len(wanted) == 0 {
		return false
	}
	met := wanted.overlap(succeeded)
	if rule.SucceededCount != nil {
		return met >= int(*rule.SucceededCount)
	}
	return met == wanted.total()
}

// overlap is how many indexes are in both sets.
func (x indexes) overlap(y indexes) int {
	n := 0
	for i, j := 0, 0; i < len(x) && j < len(y); {
		if first, last := max(x[i].first, y[j].first), min(x[i].last, y[j].last); first <= last {
			n += last - first + 1
		}
		if x[i].last < y[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}
