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
	listed   = regexp.MustCompile(`(?m)^//\t(\S+)\.(\w+) +(\d+)  (\S.*)$`)
	tests    = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestCatalogue: the package comment has every size, with its value and with tests that exist.
func TestCatalogue(t *testing.T) {
	var want, got []string
	known := make(map[string]bool)
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
		for _, m := range declared.FindAllSubmatch(text, -1) {
			want = append(want, fmt.Sprintf("%s.%s %s", folder, m[1], m[2]))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
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
