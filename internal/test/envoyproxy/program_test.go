// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program writes one that says that it is an Envoy.
func program(t *testing.T, dir, name, version string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\necho\necho '%s  version: 9e55/%s/Clean/RELEASE/BoringSSL'\n", path, version)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFindGiven: the variable names all that there is, and releases are compared as
// numbers.
func TestFindGiven(t *testing.T) {
	dir := t.TempDir()
	ten, nine, dev := program(t, dir, "ten", "1.10.0"), program(t, dir, "nine", "1.9.12"), program(t, dir, "dev", "1.41.0-dev")
	t.Setenv(programsVariable, strings.Join([]string{ten, dev, nine}, string(os.PathListSeparator)))
	got, err := Find(t.Context())
	want := []Program{{nine, "1.9.12"}, {ten, "1.10.0"}, {dev, "1.41.0-dev"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
}

// TestFindNoEnvoy: a configured path that is not an Envoy is an error with the path.
func TestFindNoEnvoy(t *testing.T) {
	for _, path := range []string{program(t, t.TempDir(), "other", "none"), filepath.Join(t.TempDir(), "absent")} {
		t.Setenv(programsVariable, path)
		if got, err := Find(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, error %v, want one about %s", got, err, path)
		}
	}
}
