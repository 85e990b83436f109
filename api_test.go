// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAPI compares the exported API of the library with testdata/api.txt, so that no change of it is overlooked. The
// flag -update rewrites the file. A change of the API is also a line in CHANGELOG.md.
func TestAPI(t *testing.T) {
	t.Parallel()
	files := map[string][]string{} // by the folder of a package
	for _, file := range libraryFiles(t) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if !slices.Contains(strings.Split(folder, "/"), "internal") {
			files[folder] = append(files[folder], file)
		}
	}
	var got []string
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		if lines := exported(t, files[folder]); len(lines) > 0 {
			slices.Sort(lines)
			got = append(append(append(got, "# "+folder), lines...), "")
		}
	}
	const golden = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), got); diff != "" {
		t.Errorf("the exported API has changed: go test -run TestAPI -update . rewrites %s, and CHANGELOG.md says it (-want +got):\n%s", golden, diff)
	}
}

// exported returns the exported declarations of a package, one for each line: functions, methods, fields, and the
// methods of interfaces with the types that they belong to. Exported methods of an unexported type are among them if an
// exported struct embeds the type.
func exported(t *testing.T, files []string) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	var decls []ast.Decl
	for _, file := range files {
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, parsed.Decls...)
	}
	visible := visibleTypes(decls)
	text := func(node any) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, fset, node); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, decl := range decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || visible[nameOf(d.Recv.List[0].Type)]) {
				add("%s", text(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							add("%s %s", d.Tok, name.Name)
						}
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						addType(s, text, add)
					}
				}
			}
		}
	}
	return out
}

// visibleTypes returns the names of the exported types, and of the types that they embed.
func visibleTypes(decls []ast.Decl) map[string]bool {
	visible, embeds := map[string]bool{}, map[string][]string{}
	for _, decl := range decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			s, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if of, ok := s.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					if len(f.Names) == 0 {
						embeds[s.Name.Name] = append(embeds[s.Name.Name], nameOf(f.Type))
					}
				}
			}
			visible[s.Name.Name] = s.Name.IsExported()
		}
	}
	var see func(name string)
	see = func(name string) {
		for _, embedded := range embeds[name] {
			if !visible[embedded] {
				visible[embedded] = true
				see(embedded)
			}
		}
	}
	for name := range embeds {
		if ast.IsExported(name) {
			see(name)
		}
	}
	return visible
}

// nameOf returns the name of a type of the package, or "" for a type of another one.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// addType adds a type with its exported fields or methods.
func addType(s *ast.TypeSpec, text func(any) string, add func(string, ...any)) {
	members := func(kind string, list *ast.FieldList) {
		add("type %s %s", s.Name, kind)
		for _, f := range list.List {
			if len(f.Names) == 0 {
				add("type %s %s, %s", s.Name, kind, text(f.Type))
			}
			for _, name := range f.Names {
				if name.IsExported() {
					add("type %s %s, %s %s", s.Name, kind, name, text(f.Type))
				}
			}
		}
	}
	switch of := s.Type.(type) {
	case *ast.StructType:
		members("struct", of.Fields)
	case *ast.InterfaceType:
		members("interface", of.Methods)
	default:
		add("type %s", text(&ast.TypeSpec{Name: s.Name, TypeParams: s.TypeParams, Assign: s.Assign, Type: s.Type}))
	}
}

// TestLicences requires a licence in docs/licenses.md for each direct dependency of the modules that programs import.
func TestLicences(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/licenses.md")
	if err != nil {
		t.Fatal(err)
	}
	known := func(module string) bool {
		for word := range strings.FieldsFuncSeq(string(page), func(r rune) bool { return r == ' ' || r == ',' || r == '|' || r == '\n' }) {
			prefix, all := strings.CutSuffix(word, "*")
			if word == module || all && strings.HasPrefix(module, prefix) || strings.HasPrefix(module, word+"/") && strings.Contains(word, ".") {
				return true
			}
		}
		return false
	}
	for _, folder := range []string{".", "configstore/etcd", "configstore/kube", "configstore/kube/gatewayapi", "registry/kube", "xdsupdate/prometheus"} {
		data, err := os.ReadFile(path.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(strings.TrimPrefix(line, "require "))
			if len(fields) != 2 || !strings.HasPrefix(fields[1], "v") || strings.HasPrefix(fields[0], module) {
				continue // not a direct dependency
			}
			if !known(fields[0]) {
				t.Errorf("%s requires %s, which has no licence in docs/licenses.md", folder, fields[0])
			}
		}
	}
}
