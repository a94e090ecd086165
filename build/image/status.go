// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Version is what the image says of the source that it was built from.
type Version struct {
	// Version is the product's, such as v1.37.2+kcm.0123456789ab.
	Version string
	// Commit is the git commit; empty when built from a source archive.
	Commit string
	// Date is the commit's.
	Date time.Time
}

// The names of build/bazel/status.sh.
const (
	versionKey = "STABLE_KCM_GIT_VERSION"
	commitKey  = "STABLE_KCM_GIT_COMMIT"
	dateKey    = "STABLE_KCM_BUILD_DATE"
)

var versionPattern = regexp.MustCompile(`^v\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// ParseStatus reads the lines "NAME value" that build/bazel/status.sh prints. Other names are skipped: Bazel adds some.
func ParseStatus(text string) (Version, error) {
	var v Version
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name] = strings.TrimSpace(value)
	}
	v.Version, v.Commit = values[versionKey], values[commitKey]
	if !versionPattern.MatchString(v.Version) {
		return Version{}, fmt.Errorf("%s is %q, want a version such as v1.37.2+kcm.1", versionKey, v.Version)
	}
	date, err := time.Parse(time.RFC3339, values[dateKey])
	if err != nil {
		return Version{}, fmt.Errorf("%s is %q, want a date such as 2026-01-02T15:04:05Z", dateKey, values[dateKey])
	}
	v.Date = date.UTC()
	return v, nil
}

// Tag returns the version as a tag of an image, where "+" is not allowed: Kubernetes' own releases write "_".
func (v Version) Tag() string {
	return strings.ReplaceAll(v.Version, "+", "_")
}
