// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs: every Go block of a document follows a comment that names a file, as
// in <!-- example_test.go -->, and is a part of that file but for its indentation. So
// the code in documents is compiled, and run if it is a test. A text block that follows such a
// comment is a part of the comments of the file: the output of its example. Indented blocks
// have no Go.
func TestDocs(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)(?:<!-- ([^ ]+) -->\n)?```(go|text)\n(.*?)```")
	blocks := map[string]int{}
	for path, text := range documents(t) {
		for _, found := range block.FindAllStringSubmatch(text, -1) {
			file, language, shown := found[1], found[2], unindented(found[3])
			// A reader's module has the package under another path.
			shown = strings.ReplaceAll(shown, `"example.com/extension"`, `"github.com/pilotkit/pilotkit/examples/start/extension"`)
			if file == "" {
				if language == "go" {
					t.Errorf("%s: a Go block without the name of its file: %.60q", path, shown)
				}
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			blocks[language]++
			source := string(data)
			if language == "text" {
				source = strings.ReplaceAll(source, "// ", "")
			}
			if !strings.Contains(unindented(source), shown) {
				t.Errorf("%s shows %s that is not in %s:\n%s", path, language, file, shown)
			}
		}
	}
	for path, text := range guides(t) {
		text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
		if code := regexp.MustCompile(`(?m)^ {4}.* := .*$`).FindString(text); code != "" {
			t.Errorf("%s: indented Go is compiled by no test: %s", path, code)
		}
	}
	if blocks["go"] == 0 || blocks["text"] == 0 {
		t.Errorf("the documents show %v", blocks)
	}
}

// TestDocsNameTests: each test that a document names exists, and is in the package if the document
// names one, as in `TestModel` of `configstore/memory`.
func TestDocsNameTests(t *testing.T) {
	t.Parallel()
	all, named := testNames(t), regexp.MustCompile("`(Test[A-Z]\\w*)`")
	for path, text := range documents(t) {
		namedTests(t, path, text)
		for _, name := range named.FindAllStringSubmatch(text, -1) {
			if !all[name[1]] {
				t.Errorf("%s: there is no %s", path, name[1])
			}
		}
	}
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out, declared := make(map[string]bool), regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "node_modules" {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			out[string(found[1])] = true
		}
		return err
	})
	if err != nil || len(out) < 1000 {
		t.Fatalf("%d tests, %v", len(out), err)
	}
	return out
}

// TestMatrixNamesItsTests: each "nothing", "none" and "no …" in the table of tenants in docs/security.md names a test,
// which is in xdsupdate/traffic unless the cell names another package.
func TestMatrixNamesItsTests(t *testing.T) {
	t.Parallel()
	const path = "docs/security.md"
	_, text, _ := strings.Cut(documents(t)[path], "\n### Tenants\n")
	text, _, _ = strings.Cut(text, "\n### ")
	none := regexp.MustCompile(`(?i)\b(nothing|none)\b|^\s*no `)
	test, elsewhere := regexp.MustCompile("`(Test\\w+)`"), regexp.MustCompile("` of `([\\w/]+)`")
	claims := 0
	for line := range strings.Lines(text) {
		for claim := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("|.;", r) }) {
			if !strings.HasPrefix(line, "|") || !none.MatchString(claim) || strings.HasSuffix(strings.TrimSpace(claim), ": the same") {
				continue
			}
			claims++
			names, folder := test.FindAllStringSubmatch(claim, -1), "xdsupdate/traffic"
			if found := elsewhere.FindStringSubmatch(claim); found != nil {
				folder = found[1]
			}
			if len(names) == 0 {
				t.Errorf("%s: %q names no test", path, claim)
			}
			for _, name := range names {
				if !strings.Contains(packageSource(t, folder), "func "+name[1]+"(") {
					t.Errorf("%s: %s has no %s", path, folder, name[1])
				}
			}
		}
	}
	if claims < 15 {
		t.Errorf("%s: %d claims were found", path, claims)
	}
}

// TestConsistencyNamesItsTests: each promise of docs/consistency.md has a proof, and
// all of the proof is tests, and checks of suites, that exist.
func TestConsistencyNamesItsTests(t *testing.T) {
	t.Parallel()
	const path = "docs/consistency.md"
	promises := 0
	for line := range strings.Lines(documents(t)[path]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.HasPrefix(cells[0], "--") || strings.TrimSpace(cells[0]) == "promise" {
			continue
		}
		promises++
		proven(t, path, cells[0], cells[1])
	}
	if promises < 40 {
		t.Errorf("%s: %d promises were found", path, promises)
	}
}

// TestFaultsNameTheirTests: each row of the table of faults in docs/consistency.md says what
// clients see and how it ends, and has a proof as promises have; each source has rows.
func TestFaultsNameTheirTests(t *testing.T) {
	t.Parallel()
	const path = "docs/consistency.md"
	faults, source := map[string]int{}, ""
	for line := range strings.Lines(documents(t)[path]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "--") || strings.TrimSpace(cells[0]) == "source" {
			continue
		}
		if name := regexp.MustCompile("`[\\w/`, ]+`").FindString(cells[0]); name != "" {
			source = name
		}
		faults[source]++
		for _, cell := range cells[1:] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: %q has an empty cell", path, cells[1])
			}
		}
		proven(t, path, cells[1], cells[4])
	}
	for _, want := range []string{
		"`registry/bridge`", "`configstore/file`", "`configstore/kube`, `registry/kube`", "`configstore/mcp`", "`configstore/etcd`", "`configstore/checkpoint`",
	} {
		if faults[want] < 3 {
			t.Errorf("%s: %d faults of %s were found", path, faults[want], want)
		}
	}
}

// proven demands that every part of a proof names tests that exist.
func proven(t *testing.T, path, of, proof string) {
	t.Helper()
	for part := range strings.SplitSeq(proof, ";") {
		if namedTests(t, path, part) == 0 {
			t.Errorf("%s: %q has %q for a proof, which names no test", path, of, part)
		}
	}
}

// namedTests demands that the tests that a text names exist, and returns their
// number. They are functions, or checks of a suite, which have a slash in their
// name, or none in the case of `History`, and are a literal in its source.
func namedTests(t *testing.T, path, text string) int {
	t.Helper()
	named := regexp.MustCompile("((?:`[A-Z][\\w/]*`(?:, | and )?)+)\\s+of\\s+`([\\w/.]+)`")
	test := regexp.MustCompile("`([\\w/]+)`")
	tests := 0
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		source := packageSource(t, found[2])
		for _, name := range test.FindAllStringSubmatch(found[1], -1) {
			if regexp.MustCompile("^(Test|Fuzz|Benchmark|Example)").MatchString(name[1]) {
				name[1] = "func " + name[1] + "("
			} else {
				if !strings.HasSuffix(found[2], "test") { // a document may also name a type or a method
					continue
				}
				name[1] = `Name: "` + name[1] + `"`
			}
			tests++
			if !strings.Contains(source, name[1]) {
				t.Errorf("%s: %s has no %s", path, found[2], name[1])
			}
		}
	}
	return tests
}

// TestVersions: docs/compatibility.md names the versions that the modules are tested with.
func TestVersions(t *testing.T) {
	t.Parallel()
	page := documents(t)["docs/compatibility.md"]
	row := func(name string) string {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| `"+name) {
				return line
			}
		}
		t.Fatalf("docs/compatibility.md has no row for %s", name)
		return ""
	}
	for _, of := range []struct {
		file, row string
		modules   map[string]string // the names in the page, by path
	}{
		{"go.mod", module + "`", map[string]string{
			"google.golang.org/grpc": "grpc", "github.com/envoyproxy/go-control-plane/envoy": "go-control-plane/envoy",
			"google.golang.org/protobuf": "protobuf", "istio.io/api": "istio.io/api",
		}},
		{"configstore/kube/go.mod", "…/configstore/kube", map[string]string{"k8s.io/client-go": "client-go"}},
		{"configstore/kube/gatewayapi/go.mod", "…/configstore/kube/gatewayapi", map[string]string{"sigs.k8s.io/gateway-api": "gateway-api"}},
		{"registry/kube/go.mod", "…/configstore/kube", map[string]string{"k8s.io/client-go": "client-go"}},
		{"examples/kubernetes/go.mod", "…/configstore/kube", map[string]string{"k8s.io/client-go": "client-go"}},
		{"xdsupdate/prometheus/go.mod", "…/xdsupdate/prometheus", map[string]string{"github.com/prometheus/client_golang": "client_golang"}},
		{"internal/test/kubetest/testdata/apiserver/go.mod", "…/configstore/kube", map[string]string{"k8s.io/kubernetes": "kube-apiserver"}},
	} {
		data, err := os.ReadFile(of.file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for path, name := range of.modules {
			found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(path) + ` v(\d+\.\d+)`).FindSubmatch(data)
			if found == nil {
				t.Fatalf("%s does not require %s", of.file, path)
			}
			want[name] = string(found[1])
		}
		if !strings.Contains(of.file, "testdata") {
			want["|"] = string(regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(data)[1])
		}
		for name, version := range want {
			if !regexp.MustCompile(regexp.QuoteMeta(name+" "+version) + `\b`).MatchString(row(of.row)) {
				t.Errorf("docs/compatibility.md, row %s: not %q, as %s has it", of.row, name+" "+version, of.file)
			}
		}
	}
}

// documents returns the texts of the README and of docs, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// packageSource returns all Go files of a folder, one after the other.
func packageSource(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}

// unindented returns the lines of a text without white space around them, and
// without empty lines.
func unindented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
