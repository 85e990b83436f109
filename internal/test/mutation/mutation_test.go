// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// root is the root of the repository.
const root = "../../.."

// TestCatalogue checks the catalogue without the hour that a run takes: each entry still fits its
// file, and every package of the product has one.
func TestCatalogue(t *testing.T) {
	entries, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 60 {
		t.Errorf("%d entries, want 60 at least", len(entries))
	}
	titles, mutated := map[string]string{}, map[string]bool{}
	for _, e := range entries {
		if other := titles[e.title]; other != "" || e.title == "" {
			t.Errorf("%s: the title %q is that of %s too", e.at, e.title, other)
		}
		titles[e.title] = e.at
		mutated[filepath.Dir(e.file)] = true
		if _, err := e.mutated(root); err != nil {
			t.Error(err)
		}
		if len(e.tests) == 0 {
			t.Errorf("%s: no tests", e.at)
		}
		for _, folder := range e.tests {
			if found, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go")); len(found) == 0 {
				t.Errorf("%s: no tests in %s", e.at, folder)
			}
		}
	}
	for folder, lines := range productLines(t) {
		if lines > 150 && !mutated[folder] {
			t.Errorf("%s: %d lines of code, and no entry breaks one", folder, lines)
		}
	}
}

// productLines returns the number of lines of code in the packages of the product, by folder.
// Packages for tests (siblings of this folder, and the suites for other implementations) and
// examples and benchmarks beside other modules are not part of the product.
func productLines(t *testing.T) map[string]int {
	t.Helper()
	lines := make(map[string]int)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, name := filepath.Dir(path), d.Name()
		if d.IsDir() {
			if name == "testdata" || name == "test" || name == "examples" || name == "bench" || strings.HasSuffix(name, "test") ||
				path != root && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		folder, err = filepath.Rel(root, folder)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[folder]++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestParse(t *testing.T) {
	const text = `# faults of small
title: The limit is one lower: so it says
file: small/small.go
tests: small large
run: TestLimit
race
full: TestAll
-	if n > limit { // - a comment
-		return n
+	if n >= limit {

title: Nothing is returned
-	return n
`
	got, err := parse("small.txt", text)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d entries and %v, want 2 entries", len(got), err)
	}
	first, second := got[0], got[1]
	if first.at != "small.txt:2" || first.title != "The limit is one lower: so it says" || first.file != "small/small.go" ||
		len(first.tests) != 2 || first.run != "TestLimit" || !first.race || first.full != "TestAll" ||
		first.old != "\tif n > limit { // - a comment\n\t\treturn n" || first.new != "\tif n >= limit {" {
		t.Errorf("the first entry is %+v", first)
	}
	if second.at != "small.txt:12" || second.old != "\treturn n" || second.new != "" || second.race {
		t.Errorf("the second entry is %+v", second)
	}
	for _, wrong := range []string{"file: a.go\n", "title: a\nfiles: a.go\n"} {
		if _, err := parse("small.txt", wrong); err == nil {
			t.Errorf("no error for %q", wrong)
		}
	}
}

// TestVerdicts breaks a module of one function in each way that there is.
func TestVerdicts(t *testing.T) {
	tier.NotShort(t, "a module is compiled for each verdict")
	r := runner{root: t.TempDir(), timeout: 2 * time.Second}
	for name, text := range map[string]string{
		"go.mod":          "module small\n",
		"small/a.go":      "package small\n\nfunc Least(a, b int) int {\n\tif a < b {\n\t\treturn a\n\t}\n\treturn b\n}\n",
		"small/a_test.go": "package small\n\nimport \"testing\"\n\nfunc TestLeast(t *testing.T) {\n\tif Least(1, 2) != 1 {\n\t\tt.Error(\"not the least\")\n\t}\n}\n\nfunc TestNone(t *testing.T) {}\n",
	} {
		path := filepath.Join(r.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]verdict{
		"a > b":                       {text: "killed by TestLeast"},
		"a <= b":                      {text: "SURVIVED", alive: true},
		"a < c":                       {text: "does not compile", alive: true},
		"func() bool { select {} }()": {text: "killed"}, // the runtime or the time-out ends it
	} {
		got, err := r.try(t.Context(), entry{file: "small/a.go", tests: []string{"small"}, run: "TestNone", old: "a < b", new: text})
		if err != nil || !strings.HasPrefix(got.text, want.text) || got.alive != want.alive {
			t.Errorf("%s: %+v and %v, want %+v", text, got, err, want)
		}
	}
	if _, err := r.try(t.Context(), entry{file: "small/a.go", tests: []string{"small"}, old: "b < a", new: "a < b"}); err == nil {
		t.Error("no error for a text that the file has not")
	}
}
