// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme: the code in the README is the beginning of Example, to the letter.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(code, "```")
	if !found || code == "" {
		t.Fatal("the README has no Go code")
	}
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); !strings.Contains(string(example), line) {
			t.Errorf("the README has %q, which is not in example_test.go", line)
		}
	}
}
