// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamesAreUsed requires a use of each exported function and type: in another package, in a test or an example that
// imports the package, on a page, or in the declaration of another exported name. Without one, nobody can need it.
// Constants and variables, which are values of vocabularies and errors, are not listed.
func TestNamesAreUsed(t *testing.T) {
	t.Parallel()
	used := usedNames(t)
	api, err := os.ReadFile("testdata/api.txt")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`^(?:func|type) ([A-Z]\w*)`)
	word := regexp.MustCompile(`\b[A-Z]\w*`)
	names, declarations := map[string]string{}, map[string]int{} // folders by name; in how many declarations a name is
	folder := ""
	for line := range strings.Lines(string(api)) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			folder = strings.TrimSpace(title)
		}
		if found := declared.FindStringSubmatch(line); found != nil {
			names[found[1]] = folder
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(word.FindAllString(line, -1)))) {
			declarations[name]++
		}
	}
	if len(names) < 300 {
		t.Errorf("only %d names were found", len(names))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if folders := used[name]; declarations[name] == 1 && (len(folders) == 0 || len(folders) == 1 && folders[names[name]]) {
			t.Errorf("%s exports %s, which nothing outside uses", names[name], name)
		}
	}
}

// usedNames returns the folders that use a name: of programs that have it behind the name of a package, and of pages.
func usedNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	used := map[string]map[string]bool{}
	qualified, word := regexp.MustCompile(`\b\w+\.([A-Z]\w*)`), regexp.MustCompile(`\b([A-Z]\w*)`)
	if err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "node_modules") {
			return filepath.SkipDir
		}
		pattern, folder := qualified, filepath.ToSlash(filepath.Dir(file))
		switch {
		case strings.HasSuffix(name, ".md"):
			pattern, folder = word, file
		case strings.HasSuffix(name, "_test.go"):
			folder += "_test"
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		data, err := os.ReadFile(file)
		for _, found := range pattern.FindAllSubmatch(data, -1) {
			name := string(found[1])
			if used[name] == nil {
				used[name] = map[string]bool{}
			}
			used[name][folder] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return used
}
