// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runner runs tests with a fault in place.
type runner struct {
	root    string // of the repository
	full    bool   // the full tier
	timeout time.Duration
}

// verdict is the result of the tests for a fault.
type verdict struct {
	alive  bool // no test failed
	broken bool // and none could run: it does not compile
	text   string
}

// try runs the tests of an entry until one fails: the tests that match its pattern first, then all
// tests of its packages.
func (r runner) try(ctx context.Context, e entry) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := r.overlay(e, dir)
	if err != nil {
		return verdict{}, err
	}
	patterns := []string{""}
	if e.run != "" {
		patterns = []string{e.run, ""}
	}
	v := verdict{}
	for _, pattern := range patterns {
		for _, folder := range e.tests {
			out, ok, err := r.test(ctx, folder, "-overlay="+overlay, "-race="+fmt.Sprint(e.race), "-run="+pattern)
			if err != nil {
				return verdict{}, err
			}
			if v = judge(out, ok); !v.alive || v.broken {
				return v, nil
			}
		}
	}
	return v, nil
}

// overlay writes the file with the fault, and what tells go test to read it instead of the
// repository's.
func (r runner) overlay(e entry, dir string) (string, error) {
	text, err := e.mutated(r.root)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(r.root, e.file))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

// test runs tests of the package in a folder, and returns their output and whether they passed.
func (r runner) test(ctx context.Context, folder string, flags ...string) (out string, ok bool, err error) {
	args := append([]string{"test", "-failfast", "-vet=off", "-timeout=" + r.timeout.String()}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...) //nolint:gosec // flags of the catalogue
	cmd.Dir = filepath.Join(r.root, folder)
	tier := ""
	if r.full {
		tier = "full"
	}
	cmd.Env = append(os.Environ(), "PILOTKIT_TESTS="+tier)
	printed, failed := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if failed != nil && cmd.ProcessState == nil {
		return "", false, fmt.Errorf("%s: %w", folder, failed) // the folder, or Go, is missing
	}
	return string(printed), failed == nil, nil
}

// judge says of the tests' output who killed the fault.
func judge(out string, ok bool) verdict {
	killer := regexp.MustCompile(`(?m)^--- FAIL: (\S+)`).FindStringSubmatch(out)
	running := regexp.MustCompile(`(?s)panic: test timed out after .*?running tests:\s+(\S+)`).FindStringSubmatch(out)
	switch {
	case ok:
		return verdict{alive: true, text: "SURVIVED"}
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return verdict{alive: true, broken: true, text: "does not compile:\n" + out}
	case killer != nil:
		return verdict{text: "killed by " + killer[1]}
	case running != nil:
		return verdict{text: "killed by the time-out in " + running[1]}
	default:
		line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return verdict{text: "killed: " + line}
	}
}
