// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	apps "k8s.io/api/apps/v1"

	"github.com/kcm-dev/kcm/pkg/controller/deployment/util"
)

// rollBack answers the deprecated rollback annotation. Whatever becomes of it, the annotation is
// removed in the same write, so that it is answered once.
//
// If the present template has no ReplicaSet yet it gets one first, so that it becomes a revision
// to which one can come back, and the rollback itself happens in the next round.
func (r *round) rollBack(revision int64) error {
	if r.newRS == nil {
		r.plan.report = reportStatus
		return r.createNewReplicaSet()
	}
	all := r.all()
	if revision == 0 {
		revision = util.LastRevision(all)
		if revision == 0 {
			r.answerRollback(r.deployment.DeepCopy(), noLastRevision())
			return nil
		}
	}
	for _, rs := range all {
		if v, err := util.Revision(rs); err == nil && v == revision {
			r.rollBackTo(rs, revision)
			return nil
		}
	}
	r.answerRollback(r.deployment.DeepCopy(), noSuchRevision())
	return nil
}

func (r *round) rollBackTo(rs *apps.ReplicaSet, revision int64) {
	d := r.deployment.DeepCopy()
	if util.EqualIgnoreHash(&d.Spec.Template, &rs.Spec.Template) {
		r.answerRollback(d, sameTemplate(d.Name))
		return
	}
	util.SetFromReplicaSetTemplate(d, rs.Spec.Template)
	util.SetDeploymentAnnotationsTo(d, rs)
	r.answerRollback(d, rolledBack(d.Name, revision))
}

func (r *round) answerRollback(d *apps.Deployment, m message) {
	delete(d.Annotations, apps.DeprecatedRollbackTo)
	r.plan.rollback = &rollback{deployment: d, message: m}
}
