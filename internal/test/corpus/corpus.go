// SPDX-License-Identifier: Apache-2.0

// Package corpus finds and reads recorded scenarios, for the runners that replay
// them: internal/test/conformance, internal/test/conformance/traffic, registry/kube and
// configstore/kube/gatewayapi. It is for tests only.
package corpus

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const suffix = ".yaml"

// Names returns the scenarios below a directory as "topic/name", sorted. A corpus
// may have folders above its topics, and dir may be a link to it. A folder in it with
// a README.md of its own is a corpus of another format. None at all is an error.
func Names(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != dir {
			if _, err := os.Stat(filepath.Join(path, "README.md")); err == nil {
				return filepath.SkipDir
			}
		}
		base, found := strings.CutSuffix(path, suffix)
		if err != nil || e.IsDir() || !found {
			return err
		}
		rel, err := filepath.Rel(dir, base)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("no scenarios in %s", dir)
	}
	return names, nil
}

// Step is one step of a scenario.
type Step interface {
	// Actions reports, for each action that there is, whether the step has it: it
	// must have exactly one.
	Actions() []bool
}

// Load reads the scenario of a path without suffix strictly, because the runner could not replay
// unknown fields. steps returns the steps of the scenario.
func Load[S any, T Step](path string, steps func(*S) []T) (*S, error) {
	file := path + suffix
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	s := new(S)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, step := range steps(s) {
		if err := Check(step); err != nil {
			return nil, fmt.Errorf("%s: step %d %w", file, i, err)
		}
	}
	return s, nil
}

// Check returns an error unless a step has exactly one action.
func Check(s Step) error {
	n := 0
	for _, given := range s.Actions() {
		if given {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("has %d actions, must have one", n)
	}
	return nil
}
