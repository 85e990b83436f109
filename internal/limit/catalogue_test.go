// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

var (
	declared = regexp.MustCompile(`(?m)^\s*(?:const )?(\w+)\s+limit\.Size = (\d+)`)
	// other finds sizes that tests cannot lower, by their names or as a number in a comparison.
	other  = regexp.MustCompile(`(?m)^\s*(?:const )?(?:few\w*|least[A-Z]\w*|sweep\w*|chunk\w*|\w+Chunk|max(?:Spare|Kept|Shared|Unlisted|Expected|Age|Room)\w*|min(?:Room|Leaf)\w*)\s*=\s*\d+.*$|.*\b(?:len|cap|Len)\([^)]*\)\)? *[<>]=? *\d{2,}.*$`)
	listed = regexp.MustCompile(`(?m)^//\t(\S+)\.(\w+) +(\d+)  (\S.*)$`)
	tests  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// noSizes are the places that other finds and that stay, with the reason.
var noSizes = map[string]string{
	"xdsupdate/traffic: const leastBytes = 256": "a limit of a budget",
}

// TestCatalogue: the package comment has every size, with its value and with tests that exist.
func TestCatalogue(t *testing.T) {
	var want, got []string
	known, seen := make(map[string]bool), make(map[string]bool)
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range tests.FindAllSubmatch(text, -1) {
				known[folder+"."+string(m[1])] = true
			}
			return nil
		}
		product := !strings.HasPrefix(folder, "internal/test") && !strings.HasPrefix(folder, "examples")
		for _, m := range other.FindAll(text, -1) {
			place := folder + ": " + strings.TrimSpace(string(m))
			if seen[place] = true; product && noSizes[place] == "" {
				t.Errorf("%s is not a Size", place)
			}
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			want = append(want, fmt.Sprintf("%s.%s %s", folder, m[1], m[2]))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for place := range noSizes {
		if !seen[place] {
			t.Errorf("%s is no longer there", place)
		}
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range listed.FindAllStringSubmatch(string(doc), -1) {
		got = append(got, fmt.Sprintf("%s.%s %s", m[1], m[2], m[3]))
		for test := range strings.FieldsSeq(m[4]) {
			if !strings.Contains(test, ".") {
				test = m[1] + "." + test
			}
			if !known[test] {
				t.Errorf("%s.%s is crossed by %s, which does not exist", m[1], m[2], test)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("sizes in the package comment (-declared +listed):\n%s", diff)
	}
}
