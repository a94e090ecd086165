// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// The vectors were taken from a live run of upstream's manager: templates as the API
// server stored them, and the hash that Deployments and DaemonSets got from them.
func TestComputeHashVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/hash-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name           string
		Template       v1.PodTemplateSpec
		CollisionCount *int32
		Hash           string
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 10 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		if got := ComputeHash(&v.Template, v.CollisionCount); got != v.Hash {
			t.Errorf("%s: hash %s, want %s", v.Name, got, v.Hash)
		}
	}
}

func TestComputeHashDoesNotCollide(t *testing.T) {
	template := &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	seen := map[string]int64{ComputeHash(template, nil): -1}
	// As upstream's test does, the largest int64 is cast: a counter that has wrapped.
	maxCount := int64(math.MaxInt64)
	for count := range int64(10000) {
		hash := ComputeHash(template, new(int32(count)))
		if other, ok := seen[hash]; ok {
			t.Fatalf("collision counts %d and %d give the same hash %s", other, count, hash)
		}
		seen[hash] = count
	}
	wrapped := ComputeHash(template, new(int32(maxCount)))
	if other, ok := seen[wrapped]; ok {
		t.Errorf("collision counts %d and MaxInt64 give the same hash %s", other, wrapped)
	}
	if again := ComputeHash(template.DeepCopy(), nil); seen[again] != -1 {
		t.Errorf("the hash of an equal template is another one: %s", again)
	}
}
