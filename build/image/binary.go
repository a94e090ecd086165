// Copyright The kcm Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// machines are the architectures that an image can be made for, by Go's names.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64,
	"arm64": elf.EM_AARCH64,
}

// checkBinary returns an error unless the file is a static Linux program of the architecture.
func checkBinary(name, architecture string) error {
	want, ok := machines[architecture]
	if !ok {
		return fmt.Errorf("architecture %q: allowed are %s", architecture, strings.Join(slices.Sorted(maps.Keys(machines)), ", "))
	}
	f, err := elf.Open(name)
	if err != nil {
		return fmt.Errorf("binary for %s: %s is no Linux program: %w", architecture, name, err)
	}
	defer f.Close()
	if f.Machine != want {
		return fmt.Errorf("binary for %s: %s is one for %s", architecture, name, f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("binary for %s: %s is linked dynamically, and the image has no libraries: build it with CGO_ENABLED=0", architecture, name)
		}
	}
	return nil
}
