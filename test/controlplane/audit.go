// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

func (c *ControlPlane) auditLogPath() string { return c.path("logs", "audit.log") }

// auditPolicy records each write once, when it is complete, with the request's body; bodies of secret kinds are left
// out. Reads are recorded on request, watches when they end.
func auditPolicy(reads bool) auditv1.Policy {
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	policy := auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted},
		Rules: []auditv1.PolicyRule{
			{
				Level: auditv1.LevelMetadata,
				Verbs: writes,
				Resources: []auditv1.GroupResources{
					{Group: "", Resources: []string{"secrets", "serviceaccounts/token"}},
					{Group: "authentication.k8s.io"},
				},
			},
			{Level: auditv1.LevelRequest, Verbs: writes},
		},
	}
	if reads {
		policy.Rules = append(policy.Rules, auditv1.PolicyRule{Level: auditv1.LevelMetadata, Verbs: []string{"get", "list", "watch"}})
	}
	policy.Rules = append(policy.Rules, auditv1.PolicyRule{Level: auditv1.LevelNone})
	return policy
}

func (c *ControlPlane) writeAuditPolicy() (string, error) {
	data, err := yaml.Marshal(auditPolicy(c.options.AuditReads))
	if err != nil {
		return "", fmt.Errorf("encoding the audit policy: %w", err)
	}
	path := c.path("audit-policy.yaml")
	if err := os.MkdirAll(c.path("logs"), 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for logs: %w", err)
	}
	return path, writeFile(path, data, 0o600)
}

// AuditEvents returns the recorded requests that keep accepts (nil: all), in the order in which they were completed.
// Options.AuditLog must be set. A request is recorded just after its answer was sent: who has just had an answer waits
// until the event is there, and who must know that nothing is missing stops the API server first.
func (c *ControlPlane) AuditEvents(keep func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	if !c.options.AuditLog {
		return nil, errors.New("reading audit events: option AuditLog was not set")
	}
	data, err := os.ReadFile(c.auditLogPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading audit events: %w", err)
	}
	var events []auditv1.Event
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return events, nil // the server is still writing this line
		}
		data = rest
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading audit events: line %d of %s: %w", number, c.auditLogPath(), err)
		}
		if keep == nil || keep(&event) {
			events = append(events, event)
		}
	}
}
