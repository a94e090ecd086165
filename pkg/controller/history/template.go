// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TemplatePatch returns the data of a revision for a pod template: the strategic merge
// patch that gives a set exactly this template.
//
// The bytes are upstream's: keys sorted, numbers as a JSON reader without types writes
// them.
func TemplatePatch(template *v1.PodTemplateSpec) ([]byte, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, fmt.Errorf("encoding the pod template: %w", err)
	}
	content["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": content}})
}

// Template returns the pod template that the revision recorded.
func Template(revision *apps.ControllerRevision) (*v1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template *v1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("reading the pod template of revision %s: %w", revision.Name, err)
	}
	if data.Spec.Template == nil {
		return nil, fmt.Errorf("reading the pod template of revision %s: %w", revision.Name, errors.New("there is none"))
	}
	return data.Spec.Template, nil
}

// SameTemplate says whether the revision recorded this template, as far as a Pod made
// of it can tell: a default that only one of the two spells out makes no difference, nor
// does a field that only the revision's encoder knew and wrote as null or empty.
func SameTemplate(revision *apps.ControllerRevision, template *v1.PodTemplateSpec) bool {
	recorded, err := Template(revision)
	if err != nil {
		return false
	}
	wanted := template.DeepCopy()
	setTemplateDefaults(recorded)
	setTemplateDefaults(wanted)
	return equality.Semantic.DeepEqual(recorded, wanted)
}
