// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestOperationsNamesMessages: docs/operations.md says what every warning and error of the log means,
// and no others.
func TestOperationsNamesMessages(t *testing.T) {
	logged := map[string]bool{}
	for _, file := range libraryFiles(t) {
		for _, call := range calls(t, file, "Warn", "Error", "WarnContext", "ErrorContext") {
			for _, text := range call {
				logged[text] = true
			}
		}
	}
	page := operationsPage(t)
	for text := range logged {
		if !strings.Contains(page, "`"+text+"`") {
			t.Errorf("docs/operations.md does not name the message %q", text)
		}
	}
	_, section, _ := strings.Cut(page, "## What the log says")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, text := range firstCells(section) {
		if !logged[text] {
			t.Errorf("docs/operations.md names the message %q, which nothing logs", text)
		}
	}
}

// TestOperationsNamesReasons: docs/operations.md says what every reason means for which an object changes
// nothing, and no others.
func TestOperationsNamesReasons(t *testing.T) {
	files, err := filepath.Glob("xdsupdate/traffic/findings*.go")
	if err != nil {
		t.Fatal(err)
	}
	source := packageSource(t, "xdsupdate/traffic")
	page := operationsPage(t)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range calls(t, file, "add", "unread") {
			for _, format := range call {
				if strings.Count(format, " ") < 2 {
					continue // the field, not the reason
				}
				found++
				if reason := withoutVerbs(format); !strings.Contains(page, "`"+reason+"`") && !strings.Contains(page, "`"+reason+": ") {
					t.Errorf("docs/operations.md does not name the reason %q", reason)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d reasons only", found)
	}
	_, section, _ := strings.Cut(page, "## What has no effect")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, reason := range firstCells(section) {
		for part := range strings.SplitSeq(reason, "…") {
			if part = strings.TrimSpace(part); !strings.Contains(source, part) {
				t.Errorf("docs/operations.md names the reason %q, of which package traffic has no %q", reason, part)
			}
		}
	}
}

func operationsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// libraryFiles returns the Go files that programs of users run: no tests, no kits for tests, no examples.
func libraryFiles(t *testing.T) (files []string) {
	t.Helper()
	kits := []string{"storetest", "registrytest", "xdstest", "test", "examples", "testdata", "node_modules", ".cache", ".git"}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(kits, entry.Name()):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// calls returns the constant texts that calls of methods of these names in a file are given.
func calls(t *testing.T, file string, names ...string) (out [][]string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, method.Sel.Name) {
			var texts []string
			for _, arg := range call.Args {
				if text, ok := constant(arg); ok {
					texts = append(texts, text)
				}
			}
			out = append(out, texts)
		}
		return true
	})
	return out
}

// constant returns the text of an expression of literals.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, also := constant(e.Y)
		return left + right, ok && also
	default:
		return "", false
	}
}

var (
	verb     = regexp.MustCompile(`%[a-z]`)
	firstRow = regexp.MustCompile("(?m)^\\| (`.*?`) \\| ")
	inTicks  = regexp.MustCompile("`([^`]*)`")
)

// withoutVerbs returns a format as the page writes it.
func withoutVerbs(format string) string { return verb.ReplaceAllString(format, "…") }

// firstCells returns what the first cells of the rows of tables have as code.
func firstCells(section string) (out []string) {
	for _, row := range firstRow.FindAllStringSubmatch(section, -1) {
		for _, code := range inTicks.FindAllStringSubmatch(row[1], -1) {
			out = append(out, code[1])
		}
	}
	return out
}
