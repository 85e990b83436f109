// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/texts.txt")

// reporting are the functions and methods whose first constant argument is read by people, however short it is.
var reporting = []string{"Errorf", "errors.New", "Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"}

// sentence matches prose: three words in a row.
var sentence = regexp.MustCompile(`[\pL\d'’"%)]+[,:;]? [\pL\d'’"%(]+[,:;]? [\pL\d'’"%(]+`)

// TestTexts compares the texts that the library shows to people with testdata/texts.txt: errors, log messages,
// findings, the messages of conditions, debug pages. A review sees a new text among its neighbours there. The flag
// -update rewrites the file.
func TestTexts(t *testing.T) {
	t.Parallel()
	byPackage := map[string]map[string]bool{}
	for _, file := range libraryFiles(t) {
		folder := filepath.ToSlash(filepath.Dir(file))
		for _, text := range texts(t, file) {
			if byPackage[folder] == nil {
				byPackage[folder] = map[string]bool{}
			}
			byPackage[folder][text] = true
		}
	}
	var b strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(byPackage)) {
		b.WriteString("# " + folder + "\n" + strings.Join(slices.Sorted(maps.Keys(byPackage[folder])), "\n") + "\n\n")
	}
	const golden = "testdata/texts.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("texts have changed; go test -run TestTexts -update . rewrites %s (-want +got):\n%s", golden, diff)
	}
}

// texts returns the texts of a file: the arguments of reporting calls, and all other constants with three words in a
// row.
func texts(t *testing.T, file string) (out []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // a struct tag
			return n.Tag == nil
		case *ast.CallExpr:
			if reports(n.Fun) {
				for _, arg := range n.Args {
					if text, ok := constant(arg); ok {
						out = append(out, oneLine(text))
						break
					}
				}
			}
		case ast.Expr:
			if text, ok := constant(n); ok {
				if sentence.MatchString(text) {
					out = append(out, oneLine(text))
				}
				return false
			}
		}
		return true
	})
	return out
}

func reports(function ast.Expr) bool {
	method, ok := function.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := method.X.(*ast.Ident)
	return slices.Contains(reporting, method.Sel.Name) || of != nil && slices.Contains(reporting, of.Name+"."+method.Sel.Name)
}

// oneLine returns a text as one line of the file.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
