// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Scenario is a file.
type Scenario struct {
	Name        string   `json:"-"`
	About       string   `json:"about"`
	Controllers []string `json:"controllers"`
	Flags       []string `json:"flags"`
	Writes      []string `json:"writes"`
	Chaos       bool     `json:"chaos"`
	Steps       []Step   `json:"steps"`

	text []byte // as it was read
}

// Step does one thing: exactly one field is set.
type Step struct {
	Create     any              `json:"create"`
	Patch      *Patch           `json:"patch"`
	Scale      *Scale           `json:"scale"`
	Delete     *Delete          `json:"delete"`
	Pods       *Pods            `json:"pods"`
	Hold       *Hold            `json:"hold"`
	Wait       *Wait            `json:"wait"`
	Advance    *metav1.Duration `json:"advance"`
	Checkpoint string           `json:"checkpoint"`
}

// Ref names an object, or several by their labels.
type Ref struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Selector string `json:"selector"`
}

// Patch changes an object.
type Patch struct {
	Ref
	Type        string `json:"type"`
	Subresource string `json:"subresource"`
	Patch       any    `json:"patch"`
}

// Scale sets spec.replicas.
type Scale struct {
	Ref
	Replicas int `json:"replicas"`
}

// Delete deletes an object, or all that the selector matches.
type Delete struct {
	Ref
	Propagation metav1.DeletionPropagation `json:"propagation"`
	Now         bool                       `json:"now"`
}

// Pods says what becomes of pods.
type Pods struct {
	Become   string `json:"become"`
	Selector string `json:"selector"`
	Image    string `json:"image"`
	Count    int    `json:"count"`
}

// Hold keeps terminating pods from ending.
type Hold struct {
	Selector string `json:"selector"`
	Release  bool   `json:"release"`
}

// Wait waits for an object's fields, its end, or a number of objects.
type Wait struct {
	Ref
	Is    map[string]any `json:"is"`
	Gone  bool           `json:"gone"`
	Count *int           `json:"count"`
	// Within is how long it may take, where that is more than usual.
	Within *metav1.Duration `json:"within"`
}

// Load returns all scenarios, sorted by name.
func Load() ([]Scenario, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := Parse(strings.TrimSuffix(path.Base(name), ".yaml"), data)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Parse reads one scenario.
func Parse(name string, text []byte) (Scenario, error) {
	s := Scenario{Name: name, text: text}
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, fmt.Errorf("scenario %s: %w", name, err)
	}
	errs := []error{}
	if s.About == "" {
		errs = append(errs, fmt.Errorf("scenario %s: about is empty", name))
	}
	for i, step := range s.Steps {
		if err := step.validate(); err != nil {
			errs = append(errs, fmt.Errorf("scenario %s, step %d: %w", name, i+1, err))
		}
	}
	if len(s.Checkpoints()) == 0 {
		errs = append(errs, fmt.Errorf("scenario %s: no checkpoint, so nothing is compared", name))
	}
	return s, errors.Join(errs...)
}

// In returns the scenario as it is played in a namespace.
func (s Scenario) In(namespace string) (Scenario, error) {
	return Parse(s.Name, []byte(strings.ReplaceAll(string(s.text), "${NS}", namespace)))
}

// Checkpoints are the names of the checkpoints.
func (s Scenario) Checkpoints() []string {
	var names []string
	for _, step := range s.Steps {
		if step.Checkpoint != "" {
			names = append(names, step.Checkpoint)
		}
	}
	return names
}

var outcomes = []string{"ready", "notready", "waiting", "succeeded", "failed"}

func (s Step) validate() error {
	set := 0
	for _, is := range []bool{s.Create != nil, s.Patch != nil, s.Scale != nil, s.Delete != nil, s.Pods != nil, s.Hold != nil,
		s.Wait != nil, s.Advance != nil, s.Checkpoint != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("it has %d of create, patch, scale, delete, pods, hold, wait, advance, checkpoint, must have one", set)
	}
	switch {
	case s.Pods != nil && !slices.Contains(outcomes, s.Pods.Become):
		return fmt.Errorf("pods.become is %q, allowed: %s", s.Pods.Become, strings.Join(outcomes, ", "))
	case s.Patch != nil && !slices.Contains([]string{"", "merge", "strategic", "json"}, s.Patch.Type):
		return fmt.Errorf("patch.type is %q, allowed: merge, strategic, json", s.Patch.Type)
	case s.Wait != nil && s.Wait.Kind == "":
		return errors.New("wait.kind is empty")
	case s.Wait != nil && len(s.Wait.Is) == 0 && !s.Wait.Gone && s.Wait.Count == nil:
		return errors.New("wait has none of is, gone, count")
	case s.Wait != nil && len(s.Wait.Is) > 0 && s.Wait.Name == "":
		return errors.New("wait.is needs wait.name")
	}
	return nil
}

// String describes the step in a line.
func (s Step) String() string {
	data, err := yaml.Marshal(s)
	if err != nil {
		return err.Error()
	}
	var parts []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if !strings.HasSuffix(line, ": null") && !strings.HasSuffix(line, `: ""`) {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, " ")
	const most = 160
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// Time is how long a step with Advance lasts.
func (s Step) Time() time.Duration {
	if s.Advance == nil {
		return 0
	}
	return s.Advance.Duration
}
