// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of Pod, PodSpec, PodStatus and PodCondition that are treated one by one.
const (
	podMetadata = 1
	podSpec     = 2
	podStatus   = 3

	specVolumes          = 1
	specNodeName         = 10
	specHostname         = 16
	specAffinity         = 18
	specHostnameOverride = 41

	statusConditions          = 2
	statusMessage             = 3
	statusHostIP              = 5
	statusPodIP               = 6
	statusStartTime           = 7
	statusPodIPs              = 12
	statusResourceClaims      = 15
	statusHostIPs             = 16
	statusObservedGeneration  = 17
	statusExtendedClaimStatus = 18

	conditionType               = 1
	conditionStatus             = 2
	conditionLastProbeTime      = 3
	conditionLastTransitionTime = 4
	conditionReason             = 5
	conditionMessage            = 6
	conditionObservedGeneration = 7
)

// podBox is a pod and all that only this pod has, but for strings and conditions, in one piece of
// memory; and what it keeps alive of the parts that it shares.
type podBox struct {
	pod       corev1.Pod
	keep      [sharedPartsOfMetadata]*anchor
	spec      *anchor
	affinity  *anchor
	status    *anchor
	host      *anchor
	startTime metav1.Time
	podIPs    [1]corev1.PodIP
}

// podParts is what was found in an encoded pod.
type podParts struct {
	meta       metaParts
	nodeName   []byte
	podIP      []byte
	started    bool
	conditions int
	// podIPs are the addresses, one per family at most: what has more is decoded the long way.
	podIPs   [4][]byte
	numberIP int
}

// decodePod decodes a pod. The pods of one owner share all of the spec but for volumes, node and
// host name, and of the status what does not differ between pods that are equally well.
func decodePod(d *decoder, k *Kind, raw []byte) (runtime.Object, int, error) {
	b := &podBox{}
	p, conditions, ok := d.podParts(k, raw, b)
	if !ok {
		return nil, 0, errUnusual
	}
	ip := d.pack(p.podIP)
	packed := string(d.own)
	pod := &b.pod
	if err := d.finishMetadata(&p.meta, packed, &pod.ObjectMeta, &b.keep); err != nil {
		return nil, 0, err
	}
	if err := d.finishPodSpec(&p, b); err != nil {
		return nil, 0, err
	}
	if err := d.finishPodStatus(&p, ip.of(packed), conditions, b); err != nil {
		return nil, 0, err
	}
	size := int(unsafe.Sizeof(*b)) + len(packed) + len(pod.Status.Conditions)*int(unsafe.Sizeof(corev1.PodCondition{})) +
		bytesPerEncodedByte*(len(d.specRest)+len(d.statusRest))
	return pod, size, nil
}

// podParts goes over the encoded pod and collects its parts. The returned bytes are the status, for
// its conditions.
func (d *decoder) podParts(k *Kind, raw []byte, b *podBox) (p podParts, status []byte, ok bool) {
	d.own = d.own[:0]
	var meta, spec []byte
	c := cursor{msg: raw}
	for seen := protowire.Number(0); c.next(); seen = c.num {
		if c.typ != protowire.BytesType || c.num <= seen {
			return p, nil, false
		}
		switch c.num {
		case podMetadata:
			meta = c.val
		case podSpec:
			spec = c.val
		case podStatus:
			status = c.val
		default:
			return p, nil, false
		}
	}
	if c.bad {
		return p, nil, false
	}
	if p.meta, ok = d.metadata(meta); !ok {
		return p, nil, false
	}
	ok = d.podSpec(k.trim.sub(podSpec), spec, &p) && d.podStatus(k.trim.sub(podStatus), status, &p, b)
	return p, status, ok
}

// podSpec collects the parts of a spec.
func (d *decoder) podSpec(t *trim, msg []byte, p *podParts) bool {
	d.spec, d.specRest, d.affinity = d.spec[:0], d.specRest[:0], d.affinity[:0]
	c := cursor{msg: msg}
	for ok := true; c.next(); {
		switch c.num {
		case specNodeName:
			if c.typ != protowire.BytesType {
				return false
			}
			p.nodeName = c.val
		case specVolumes, specHostname, specHostnameOverride:
			d.specRest, ok = t.appendField(d.specRest, &c)
		case specAffinity:
			d.affinity, ok = t.appendField(d.affinity, &c)
		default:
			d.spec, ok = t.appendField(d.spec, &c)
		}
		if !ok {
			return false
		}
	}
	return !c.bad
}

func (d *decoder) finishPodSpec(p *podParts, b *podBox) (err error) {
	spec := &b.pod.Spec
	if *spec, err = share(d.table, d.table.podSpecs, d.spec, &b.spec, decodePodSpec); err != nil {
		return err
	}
	if spec.Affinity, err = share(d.table, d.table.affinities, d.affinity, &b.affinity, decodeAffinity); err != nil {
		return err
	}
	spec.NodeName = d.table.strings.get(p.nodeName)
	if len(d.specRest) == 0 {
		return nil
	}
	return spec.Unmarshal(d.specRest)
}

func decodePodSpec(_ *Table, b []byte, spec *corev1.PodSpec) error { return spec.Unmarshal(b) }

func decodeAffinity(_ *Table, b []byte, affinity **corev1.Affinity) error {
	var spec corev1.PodSpec
	err := spec.Unmarshal(b)
	*affinity = spec.Affinity
	return err
}

// podStatus collects the parts of a status.
func (d *decoder) podStatus(t *trim, msg []byte, p *podParts, b *podBox) bool {
	d.status, d.statusRest, d.host = d.status[:0], d.statusRest[:0], d.host[:0]
	c := cursor{msg: msg}
	for ok := true; c.next(); {
		switch c.num {
		case statusConditions:
			p.conditions++
			ok = c.typ == protowire.BytesType
		case statusPodIP:
			p.podIP, ok = c.val, c.typ == protowire.BytesType
		case statusPodIPs:
			ok = p.addPodIP(&c)
		case statusStartTime:
			p.started, ok = true, c.typ == protowire.BytesType && b.startTime.Unmarshal(c.val) == nil
		case statusHostIP, statusHostIPs:
			d.host, ok = t.appendField(d.host, &c)
		case statusMessage, statusResourceClaims, statusObservedGeneration, statusExtendedClaimStatus:
			d.statusRest, ok = t.appendField(d.statusRest, &c)
		default:
			d.status, ok = t.appendField(d.status, &c)
		}
		if !ok {
			return false
		}
	}
	return !c.bad
}

// addPodIP takes the only field of an encoded PodIP.
func (p *podParts) addPodIP(c *cursor) bool {
	if c.typ != protowire.BytesType || p.numberIP == len(p.podIPs) {
		return false
	}
	inner := cursor{msg: c.val}
	if !inner.next() || inner.num != 1 || inner.typ != protowire.BytesType || inner.pos != len(c.val) {
		return false
	}
	p.podIPs[p.numberIP] = inner.val
	p.numberIP++
	return true
}

func (d *decoder) finishPodStatus(p *podParts, podIP string, encoded []byte, b *podBox) (err error) {
	status := &b.pod.Status
	if *status, err = share(d.table, d.table.podStatuses, d.status, &b.status, decodePodStatus); err != nil {
		return err
	}
	host, err := share(d.table, d.table.hosts, d.host, &b.host, decodePodStatus)
	if err != nil {
		return err
	}
	status.HostIP, status.HostIPs = host.HostIP, host.HostIPs
	if len(d.statusRest) > 0 {
		if err := status.Unmarshal(d.statusRest); err != nil {
			return err
		}
	}
	status.PodIP = podIP
	p.finishPodIPs(podIP, b)
	if p.started {
		status.StartTime = &b.startTime
	}
	status.Conditions, err = d.podConditions(encoded, p.conditions)
	return err
}

// finishPodIPs sets the addresses, the first of which is usually the pod's one address.
func (p *podParts) finishPodIPs(podIP string, b *podBox) {
	if p.numberIP == 0 {
		return
	}
	ips := b.podIPs[:0:1]
	for _, ip := range p.podIPs[:p.numberIP] {
		if string(ip) == podIP {
			ips = append(ips, corev1.PodIP{IP: podIP})
		} else {
			ips = append(ips, corev1.PodIP{IP: string(ip)})
		}
	}
	b.pod.Status.PodIPs = ips
}

func decodePodStatus(_ *Table, b []byte, status *corev1.PodStatus) error { return status.Unmarshal(b) }

// podConditions decodes the n conditions of an encoded status.
func (d *decoder) podConditions(status []byte, n int) ([]corev1.PodCondition, error) {
	if n == 0 {
		return nil, nil
	}
	conditions := make([]corev1.PodCondition, 0, n)
	c := cursor{msg: status}
	for c.next() {
		if c.num != statusConditions {
			continue
		}
		conditions = conditions[:len(conditions)+1]
		if !d.podCondition(c.val, &conditions[len(conditions)-1]) {
			return nil, errUnusual
		}
	}
	return conditions, nil
}

func (d *decoder) podCondition(msg []byte, to *corev1.PodCondition) bool {
	c := cursor{msg: msg}
	for c.next() {
		if c.num == conditionObservedGeneration {
			if c.typ != protowire.VarintType {
				return false
			}
			to.ObservedGeneration = int64(c.number())
			continue
		}
		if c.typ != protowire.BytesType || !d.podConditionField(&c, to) {
			return false
		}
	}
	return !c.bad
}

func (d *decoder) podConditionField(c *cursor, to *corev1.PodCondition) bool {
	switch c.num {
	case conditionType:
		to.Type = corev1.PodConditionType(d.table.strings.get(c.val))
	case conditionStatus:
		to.Status = corev1.ConditionStatus(d.table.strings.get(c.val))
	case conditionReason:
		to.Reason = d.table.strings.get(c.val)
	case conditionMessage:
		to.Message = d.table.strings.get(c.val)
	case conditionLastProbeTime:
		return to.LastProbeTime.Unmarshal(c.val) == nil
	case conditionLastTransitionTime:
		return to.LastTransitionTime.Unmarshal(c.val) == nil
	default:
		return false
	}
	return true
}
