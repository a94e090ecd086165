// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// invalid words the one line that reports a flag's value.
func invalid(flag string, value any, rule string) error {
	if s, ok := value.(string); ok {
		return fmt.Errorf("--%s=%q: %s", flag, s, rule)
	}
	return fmt.Errorf("--%s=%v: %s", flag, value, rule)
}

// checkWorkers refuses a controller without workers: it would be started,
// report healthy and never do anything. To turn a controller off is what
// --controllers=-name is for.
func checkWorkers(flag string, n int32) []error {
	if n < 1 {
		return []error{invalid(flag, n, "must be greater than 0")}
	}
	return nil
}

// checkRange refuses numbers outside of low..high, both allowed.
func checkRange(flag string, n, low, high int32) []error {
	if n < low || n > high {
		return []error{invalid(flag, n, fmt.Sprintf("must be between %d and %d", low, high))}
	}
	return nil
}

// checkNotNegative refuses durations below zero. Zero has a meaning for most
// flags (off, or at once) and is left to the controller.
func checkNotNegative(flag string, d metav1.Duration) []error {
	if d.Duration < 0 {
		return []error{invalid(flag, d.Duration, "must not be negative")}
	}
	return nil
}

// checkPositive refuses durations of zero and below.
func checkPositive(flag string, d metav1.Duration) []error {
	if d.Duration <= 0 {
		return []error{invalid(flag, d.Duration, "must be longer than 0s")}
	}
	return nil
}

// checkAtLeast refuses durations below least.
func checkAtLeast(flag string, d metav1.Duration, least time.Duration) []error {
	if d.Duration < least {
		return []error{invalid(flag, d.Duration, fmt.Sprintf("must be %v or longer", least))}
	}
	return nil
}

// checkRate refuses numbers below 0. The negation catches NaN.
func checkRate[F float32 | float64](flag string, f F) []error {
	if !(f >= 0) {
		return []error{invalid(flag, f, "must not be negative")}
	}
	return nil
}

// join concatenates the results of several checks.
func join(checks ...[]error) []error {
	var all []error
	for _, errs := range checks {
		all = append(all, errs...)
	}
	return all
}
