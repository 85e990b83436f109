// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../../.."

// TestRaceList checks the list of packages for the race detector: it has all packages of the root module
// with goroutines or locks, and no removed ones.
func TestRaceList(t *testing.T) {
	concurrent, tests := map[string]string{}, map[string][]string{}
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir():
			skipped := []string{"testdata", "node_modules", "examples", "test", "bench"} // tests, examples and benchmarks: only with -full
			if slices.Contains(skipped, name) || path != root && (strings.HasPrefix(name, ".") || isModule(path)) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		dir := must(filepath.Rel(root, filepath.Dir(path)))
		if strings.HasSuffix(path, "_test.go") {
			tests[dir] = append(tests[dir], functions(t, path)...)
		} else if what := meeting(t, path); what != "" {
			concurrent[dir] = what + " in " + filepath.Base(path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for dir, what := range concurrent {
		if _, listed := raced[dir]; len(tests[dir]) > 0 && !listed {
			t.Errorf("%s has %s, and the race detector does not see its tests: add it to the list of race.go", dir, what)
		}
	}
	for dir, rule := range raced {
		pattern := rule.only + rule.except
		if rule.only != "" && rule.except != "" {
			t.Errorf("the list of race.go has two patterns for %s", dir)
		}
		if !slices.ContainsFunc(tests[dir], regexp.MustCompile(pattern).MatchString) {
			t.Errorf("the list of race.go has no test of %s by %q", dir, pattern)
		}
	}
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// functions returns the names of the tests and examples of a file.
func functions(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Example")) {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// meeting returns the construct of a file that makes goroutines meet, a go statement or a lock, or
// "".
func meeting(t *testing.T, path string) (what string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	locks := []string{"Mutex", "RWMutex", "WaitGroup", "Cond"}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && slices.Contains(locks, n.Sel.Name) {
				what = "a sync." + n.Sel.Name
			}
		}
		return what == ""
	})
	return what
}
