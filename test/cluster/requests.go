// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/kcm-dev/kcm/test/controlplane"
	"github.com/kcm-dev/kcm/test/integration/framework/audit"
)

// auditArgs returns the API server's flags for the audit log that is asked for.
func (c *Cluster) auditArgs(what Auditing) (args []string, err error) {
	switch what {
	case AuditNone:
		return nil, nil
	case AuditExact:
		args, c.auditPath, err = audit.ServerArgs(c.dir)
		return args, err
	}
	data, err := yaml.Marshal(managersPolicy())
	if err != nil {
		return nil, fmt.Errorf("encoding the audit policy: %w", err)
	}
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, data, 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	c.auditPath = filepath.Join(c.dir, "audit.log")
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.auditPath,
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=1000000", // in MB: never rotated
	}, nil
}

// managersPolicy logs one line for each request of a manager or one of its controllers, when it has been answered; for
// a watch, when it has begun.
func managersPolicy() auditv1.Policy {
	managers := func(rule auditv1.PolicyRule) []auditv1.PolicyRule {
		asUser, asAccount := rule, rule
		asUser.Users = []string{controlplane.ManagerUser}
		asAccount.UserGroups = []string{"system:serviceaccounts:kube-system"}
		return []auditv1.PolicyRule{asUser, asAccount}
	}
	rules := managers(auditv1.PolicyRule{
		Level: auditv1.LevelMetadata, Verbs: []string{"watch"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseComplete},
	})
	rules = append(rules, managers(auditv1.PolicyRule{
		Level: auditv1.LevelMetadata, OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted},
	})...)
	return auditv1.Policy{
		TypeMeta: metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "Policy"},
		Rules:    append(rules, auditv1.PolicyRule{Level: auditv1.LevelNone}),
	}
}

// Requests returns the managers' requests that were answered in [from, to), in the order of their answers, without those
// of the election. Options.Audit must be AuditManagers. A request is logged just after it is answered: ask when the
// managers have ended, or some time after `to`.
func (c *Cluster) Requests(from, to time.Time) (audit.Events, error) {
	file, err := os.Open(c.auditPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // no request yet
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	var events audit.Events
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e audit.Event
		if err := json.Unmarshal(lines.Bytes(), &e.Event); err != nil {
			continue // the line that the server is writing now
		}
		if e.Answered().Before(from) || !e.Answered().Before(to) || IsElection(e) {
			continue
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

// IsElection tells whether the request is the leader election's, which comes by the clock and not by what happens.
func IsElection(e audit.Event) bool {
	return e.ObjectRef != nil && (e.ObjectRef.Resource == "leases" && e.ObjectRef.Name == lease ||
		e.ObjectRef.Resource == "leasecandidates")
}
