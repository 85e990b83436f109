// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mains    = regexp.MustCompile(`func TestMain\(m \*testing\.M\)`)
	verified = regexp.MustCompile(`\b(testmain\.Verify|apiserver\.Main|Verify)\((m|sharing\{m\})[,)]`)
	recovers = regexp.MustCompile(`\brecover\(\)`)
)

// TestPanicsAreSeen: no panic is recovered where tests do not see it. All product code recovers
// by internal/guard, and each package with tests runs them by internal/test/testmain.
func TestPanicsAreSeen(t *testing.T) {
	tested, verifies := make(map[string]bool), make(map[string]bool)
	if err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		switch {
		case strings.HasSuffix(path, "_test.go"):
			tested[folder] = true
			verifies[folder] = verifies[folder] || mains.Match(text) && verified.Match(text)
		case folder != "internal/guard" && folder != "internal/test/contract" && !strings.HasPrefix(folder, "examples/"):
			rest := strings.ReplaceAll(string(text), "guard.Recovered(recover())", "")
			if recovers.MatchString(rest) {
				t.Errorf("%s recovers a panic without guard.Recovered", path)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for folder := range tested {
		if !verifies[folder] {
			t.Errorf("the tests of %s do not run by testmain.Verify", folder)
		}
	}
}
