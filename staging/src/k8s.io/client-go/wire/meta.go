// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of metav1.ObjectMeta.
const (
	metaName              = 1
	metaGenerateName      = 2
	metaNamespace         = 3
	metaSelfLink          = 4
	metaUID               = 5
	metaResourceVersion   = 6
	metaGeneration        = 7
	metaCreated           = 8
	metaDeleted           = 9
	metaDeletionGrace     = 10
	metaLabels            = 11
	metaAnnotations       = 12
	metaOwnerReferences   = 13
	metaFinalizers        = 14
	metaManagedFields     = 17
	sharedPartsOfMetadata = 3
)

// metaParts is an ObjectMeta whose strings and shared parts are not yet there.
type metaParts struct {
	name, uid, resourceVersion span
	generation                 int64
	created, deleted           metav1.Time
	isDeleted                  bool
	deletionGrace              *int64
}

// metadata collects the parts of an encoded ObjectMeta. What it is not sure of it refuses.
func (d *decoder) metadata(msg []byte) (m metaParts, ok bool) {
	d.origin, d.labels, d.annotations = d.origin[:0], d.labels[:0], d.annotations[:0]
	c := cursor{msg: msg}
	for c.next() {
		number := c.num == metaGeneration || c.num == metaDeletionGrace
		if number != (c.typ == protowire.VarintType) && c.num <= metaManagedFields {
			return m, false
		}
		if !number && c.typ != protowire.BytesType {
			return m, false
		}
		if !d.metaField(&m, &c) {
			return m, false
		}
	}
	return m, !c.bad
}

func (d *decoder) metaField(m *metaParts, c *cursor) bool {
	switch c.num {
	case metaName:
		m.name = d.pack(c.val)
	case metaUID:
		m.uid = d.pack(c.val)
	case metaResourceVersion:
		m.resourceVersion = d.pack(c.val)
	case metaGeneration:
		m.generation = int64(c.number())
	case metaCreated:
		return m.created.Unmarshal(c.val) == nil
	case metaDeleted:
		m.isDeleted = true
		return m.deleted.Unmarshal(c.val) == nil
	case metaDeletionGrace:
		grace := int64(c.number())
		m.deletionGrace = &grace
	case metaLabels:
		d.labels = append(d.labels, c.field()...)
	case metaAnnotations:
		d.annotations = append(d.annotations, c.field()...)
	case metaGenerateName, metaNamespace, metaSelfLink, metaOwnerReferences, metaFinalizers:
		d.origin = append(d.origin, c.field()...)
	case metaManagedFields:
	default:
		return false
	}
	return true
}

// finishMetadata fills in an ObjectMeta, with own strings from packed. What it shares it keeps alive
// by keep.
func (d *decoder) finishMetadata(m *metaParts, packed string, to *metav1.ObjectMeta, keep *[sharedPartsOfMetadata]*anchor) error {
	var err error
	if *to, err = share(d.table, d.table.origins, d.origin, &keep[0], decodeOrigin); err != nil {
		return err
	}
	if to.Labels, err = share(d.table, d.table.labels, d.labels, &keep[1], decodeLabels); err != nil {
		return err
	}
	if to.Annotations, err = share(d.table, d.table.annotations, d.annotations, &keep[2], decodeAnnotations); err != nil {
		return err
	}
	to.Name = m.name.of(packed)
	to.UID = types.UID(m.uid.of(packed))
	to.ResourceVersion = m.resourceVersion.of(packed)
	to.Generation = m.generation
	to.CreationTimestamp = m.created
	to.DeletionGracePeriodSeconds = m.deletionGrace
	if m.isDeleted {
		deleted := m.deleted
		to.DeletionTimestamp = &deleted
	}
	return nil
}

// decodeOrigin decodes what objects of one owner have in common.
func decodeOrigin(t *Table, b []byte, m *metav1.ObjectMeta) error {
	if err := m.Unmarshal(b); err != nil {
		return err
	}
	m.Namespace = t.strings.again(m.Namespace)
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		owner.APIVersion = t.strings.again(owner.APIVersion)
		owner.Kind = t.strings.again(owner.Kind)
	}
	for i := range m.Finalizers {
		m.Finalizers[i] = t.strings.again(m.Finalizers[i])
	}
	return nil
}

func decodeLabels(t *Table, b []byte, labels *map[string]string) error {
	return t.stringMap(b, labels, func(m *metav1.ObjectMeta) map[string]string { return m.Labels })
}

func decodeAnnotations(t *Table, b []byte, annotations *map[string]string) error {
	return t.stringMap(b, annotations, func(m *metav1.ObjectMeta) map[string]string { return m.Annotations })
}

// stringMap decodes a map whose keys, and often values, are those of other maps.
func (t *Table) stringMap(b []byte, to *map[string]string, of func(*metav1.ObjectMeta) map[string]string) error {
	m, ok := t.plainStringMap(b)
	if !ok {
		var meta metav1.ObjectMeta
		if err := meta.Unmarshal(b); err != nil {
			return err
		}
		m = of(&meta)
	}
	*to = m
	return nil
}

// plainStringMap decodes a map as Kubernetes writes it: in each entry the key and then the value.
func (t *Table) plainStringMap(b []byte) (map[string]string, bool) {
	n := 0
	for c := (cursor{msg: b}); c.next(); n++ {
		if c.typ != protowire.BytesType {
			return nil, false
		}
	}
	m := make(map[string]string, n)
	c := cursor{msg: b}
	for c.next() {
		entry := cursor{msg: c.val}
		if !entry.next() || entry.num != 1 || entry.typ != protowire.BytesType {
			return nil, false
		}
		key := entry.val
		if !entry.next() || entry.num != 2 || entry.typ != protowire.BytesType || entry.pos != len(c.val) {
			return nil, false
		}
		m[t.strings.get(key)] = t.strings.get(entry.val)
	}
	return m, !c.bad
}
