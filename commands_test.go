// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command matches the beginning of a command that a reader of a page enters.
var command = regexp.MustCompile(`^(sudo |[A-Z_]+=\S+ )*(go (-C \S+ )?(run|test|get|mod|build) |\./\w+\.sh( |$)|(bash|curl|kubectl|docker|etcdctl|open|cat|npm|pip) |etcd &)`)

// TestDocsCommands: each command of the README, the pages and the examples is in testdata/commands.json with the test
// or the script that runs it, or with the reason why none does. The benchmarks of docs/performance.md only have to
// exist, because they measure. The shell blocks of docs/operations.md are run by TestOperations of examples/discovery.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]string
	if err := json.Unmarshal(data, &known); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for page, text := range guides(t) {
		for _, c := range commandsOf(text) {
			if !benchmarks(t, page, text, c) {
				shown[c] = page
			}
		}
	}
	for _, c := range slices.Sorted(maps.Keys(shown)) {
		if known[c] == "" {
			t.Errorf("%s shows a command that testdata/commands.json does not have: %q", shown[c], c)
		}
	}
	for c, by := range known {
		if shown[c] == "" {
			t.Errorf("testdata/commands.json has a command that no page shows: %q", c)
		}
		script, _, _ := strings.Cut(by, " ")
		if _, err := os.Stat(script); err != nil && !strings.HasPrefix(by, "not run: ") && namedTests(t, "testdata/commands.json", by) == 0 {
			t.Errorf("testdata/commands.json: %q is run by no test and no script: %q", c, by)
		}
	}
}

// guides are the documents, the pages of the examples, and CONTRIBUTING.md.
func guides(t *testing.T) map[string]string {
	t.Helper()
	pages := documents(t)
	paths, err := filepath.Glob("examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(paths, "CONTRIBUTING.md") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		pages[p] = string(text)
	}
	return pages
}

// commandsOf returns the commands in code spans and in indented blocks of a page.
func commandsOf(text string) (out []string) {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	for line := range strings.Lines(text) {
		if indented, ok := strings.CutPrefix(line, "    "); ok && command.MatchString(indented) {
			indented, _, _ = strings.Cut(indented, "  # ")
			out = append(out, strings.Trim(indented, " \\\n"))
		}
	}
	for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		if c := strings.Join(strings.Fields(span[1]), " "); command.MatchString(c) {
			out = append(out, c)
		}
	}
	return out
}

// benchmarks reports whether a command only runs benchmarks, all of which must exist. The folder of a command for "."
// follows it in the text: "in `registry/kube`".
func benchmarks(t *testing.T, page, text, c string) bool {
	t.Helper()
	found := regexp.MustCompile(`^go test -run '\^\$' -bench '?([^' ]+)'? .*?(\S+)$`).FindStringSubmatch(c)
	if found == nil {
		return false
	}
	folder := found[2]
	if !strings.HasPrefix(folder, "./") || folder == "./cluster" {
		_, rest, _ := strings.Cut(strings.Join(strings.Fields(text), " "), "`"+c+"`")
		in := regexp.MustCompile("^.{0,80}?\\bin `([\\w/]+)`").FindStringSubmatch(rest)
		if in == nil {
			t.Errorf("%s does not say the folder of %q", page, c)
			return true
		}
		folder = path.Join(in[1], folder)
	}
	source := packageSource(t, folder)
	if found[1] == "." && strings.Contains(source, "\nfunc Benchmark") {
		return true
	}
	for name := range strings.SplitSeq(strings.Trim(found[1], "$"), "|") {
		name, _, _ = strings.Cut(strings.ReplaceAll(name, "(OfTwo)?", ""), "/")
		if !regexp.MustCompile(`\nfunc Benchmark\w*` + name).MatchString(source) {
			t.Errorf("%s: %s has no benchmark %s", page, folder, name)
		}
	}
	return true
}
