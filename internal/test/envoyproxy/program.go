// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// The environment variables of this package.
const (
	programsVariable = "PILOTKIT_ENVOY"
	requireVariable  = "PILOTKIT_REQUIRE_CLIENTS"
)

// Program is an installed Envoy.
type Program struct {
	Path string
	// Version is its release, such as "1.40.0".
	Version string
}

// String returns the name that subtests of a release have.
func (p Program) String() string { return "envoy-" + p.Version }

// Require skips the test, with the reason, where there is no Envoy or tests are to
// be short. If PILOTKIT_REQUIRE_CLIENTS is set, it fails where there is none.
func Require(tb testing.TB) {
	tb.Helper()
	Programs(tb)
}

// Programs returns the installed Envoys, the oldest first; at least one, and outside the full
// tier the newest alone. It skips or fails the test as Require does.
func Programs(tb testing.TB) []Program {
	tb.Helper()
	tier.NotShort(tb, "an Envoy")
	programs, err := found()
	if err == nil {
		if !tier.Full() {
			programs = programs[len(programs)-1:]
		}
		return slices.Clone(programs)
	}
	if os.Getenv(requireVariable) != "" {
		tb.Fatalf("%v (%s is set)", err, requireVariable)
	}
	tb.Skip(err)
	return nil
}

// Newest returns the newest of Programs.
func Newest(tb testing.TB) Program {
	tb.Helper()
	programs := Programs(tb)
	return programs[len(programs)-1]
}

// Oldest returns the oldest of Programs, which may be the newest too.
func Oldest(tb testing.TB) Program {
	tb.Helper()
	return Programs(tb)[0]
}

// found is Find once for the process: each program is run for its version.
//
//nolint:gochecknoglobals // What is installed does not change while tests run.
var found = sync.OnceValues(func() ([]Program, error) {
	return Find(context.Background()) //nolint:forbidigo // All tests share the result.
})

// Find returns the installed Envoys, the oldest first, or the error that there is
// none.
func Find(ctx context.Context) ([]Program, error) {
	var out []Program
	for _, path := range paths() {
		version, err := versionOf(ctx, path)
		if err != nil {
			return nil, err
		}
		out = append(out, Program{Path: path, Version: version})
	}
	if len(out) == 0 {
		return nil, errors.New("no Envoy: CONTRIBUTING.md says how to install it")
	}
	slices.SortStableFunc(out, func(a, b Program) int { return compareVersions(a.Version, b.Version) })
	return out, nil
}

func paths() []string {
	if given := os.Getenv(programsVariable); given != "" {
		return slices.DeleteFunc(filepath.SplitList(given), func(p string) bool { return p == "" })
	}
	if _, here, _, ok := runtime.Caller(0); ok && filepath.IsAbs(here) {
		root := filepath.Join(filepath.Dir(here), "..", "..", "..")
		if installed, err := filepath.Glob(filepath.Join(root, ".cache", "envoy", "envoy-*")); err == nil && len(installed) > 0 {
			return installed
		}
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return []string{path}
	}
	return nil
}

// versionOf asks a program for its release. It says, for example,
// "envoy  version: 9e55…/1.40.0/Clean/RELEASE/BoringSSL".
func versionOf(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w: %s", path, err, out)
	}
	m := regexp.MustCompile(`version: \w+/([0-9]+\.[0-9]+\.[0-9]+[^/]*)/`).FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version: no release in %q", path, out)
	}
	return string(m[1]), nil
}

// compareVersions compares releases by their numbers.
func compareVersions(a, b string) int {
	as, bs := strings.FieldsFunc(a, notDigit), strings.FieldsFunc(b, notDigit)
	return slices.CompareFunc(as, bs, func(x, y string) int {
		m, _ := strconv.Atoi(x) // digits only
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	})
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
