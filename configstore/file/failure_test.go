// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
)

// An unreadable directory is not treated as empty.
func TestDirectoryThatDisappears(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.remove(".")
	if err := f.source.Reload(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Reload = %v, want ErrNotExist", err)
	}
	if f.source.HasSynced() {
		t.Error("HasSynced before the directory was ever read")
	}
	f.write("a.yaml", entry("a", "one"))
	f.reload()
	if !f.source.HasSynced() {
		t.Error("HasSynced is false after a complete scan")
	}
	f.rename(".", "../away")
	for range 2 {
		if err := f.source.Reload(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Reload = %v, want ErrNotExist", err)
		}
	}
	f.wantStore("ns/a=one")
	f.wantErrors(f.dir + ": no such file")
	if want := `msg="manifest error" file=` + f.dir + ` error=`; !strings.Contains(f.log.String(), want) {
		t.Errorf("the log has no %q, so it names a document or an object:\n%s", want, f.log)
	}
	if !f.source.HasSynced() {
		t.Error("HasSynced went back to false")
	}
	gone := f.source.SourceState()
	if gone.Freshness != configstore.Stale || gone.StaleSince.Before(gone.Content) || !errors.Is(gone.Err, fs.ErrNotExist) || len(gone.Problems) > 0 {
		t.Errorf("state of a directory that is away: %+v", gone)
	}
	f.rename("../away", ".")
	f.write("a.yaml", entry("a", "two"))
	f.reload()
	f.wantEvents("update ns/a=two")
	f.wantErrors()
	if s := f.source.SourceState(); s.Freshness != configstore.FreshnessUnknown || !s.StaleSince.IsZero() || !s.Content.After(gone.Content) || s.Err != nil {
		t.Errorf("state of a directory that is back: %+v", s)
	}

	// After a new creation of the directory, the store has its current content.
	f.remove(".")
	f.write("b.yaml", entry("b", "one"))
	f.reload()
	f.wantEvents("add ns/b=one", "delete ns/a=two")
	f.remove(".")
	f.mkdir(".")
	f.reload()
	f.wantEvents("delete ns/b=one")
}

func TestDirectoryIsAFile(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", entry("a", "one"))
	f.reload()
	f.rename(".", "../away")
	f.must(os.WriteFile(f.dir, []byte("not a directory"), 0o600))
	if err := f.source.Reload(); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("Reload = %v, want: not a directory", err)
	}
	f.wantStore("ns/a=one")
}

// Everything below the directory that cannot be read keeps its objects, and the
// rest goes on.
func TestUnreadable(t *testing.T) {
	for _, tt := range []struct {
		name           string
		broke, restore func(f *fixture)
		want           string
	}{
		{
			name: "link in circles instead of a file", want: "sub/a.yaml: too many",
			broke:   func(f *fixture) { f.rename("sub/a.yaml", "kept"); f.symlink("a.yaml", "sub/a.yaml") },
			restore: func(f *fixture) { f.remove("sub/a.yaml"); f.rename("kept", "sub/a.yaml") },
		},
		{
			name: "link to nowhere instead of a file", want: "sub/a.yaml: no such file",
			broke:   func(f *fixture) { f.rename("sub/a.yaml", "kept"); f.symlink("nowhere", "sub/a.yaml") },
			restore: func(f *fixture) { f.remove("sub/a.yaml"); f.rename("kept", "sub/a.yaml") },
		},
		{
			name: "link in circles instead of a directory", want: "sub: too many",
			broke:   func(f *fixture) { f.rename("sub", "../kept"); f.symlink("sub", "sub") },
			restore: func(f *fixture) { f.remove("sub"); f.rename("../kept", "sub") },
		},
		{
			name: "too large", want: "sub/a.yaml: the file is larger",
			broke:   func(f *fixture) { f.write("sub/a.yaml", entry("a", "two")+strings.Repeat("#\n", 3000)) },
			restore: func(f *fixture) { f.write("sub/a.yaml", entry("a", "one")) },
		},
		{
			name: "file mode", want: "sub/a.yaml: permission denied",
			broke:   func(f *fixture) { f.must(os.Chmod(f.path("sub/a.yaml"), 0)) },
			restore: func(f *fixture) { f.must(os.Chmod(f.path("sub/a.yaml"), 0o600)) },
		},
		{
			name: "directory mode", want: "sub: permission denied",
			broke:   func(f *fixture) { f.must(os.Chmod(f.path("sub"), 0)) },
			restore: func(f *fixture) { f.must(os.Chmod(f.path("sub"), 0o700)) }, //nolint:gosec // A directory needs its x bit.
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasSuffix(tt.name, "mode") && os.Geteuid() == 0 {
				t.Skip("modes do not bind the superuser")
			}
			f := newFixture(t, file.Options{MaxFileBytes: 4096})
			f.write("sub/a.yaml", entry("a", "one"))
			f.write("b.yaml", entry("b", "one"))
			f.reload()
			tt.broke(f)
			f.write("b.yaml", entry("b", "two"))
			f.reload()
			f.wantEvents("update ns/b=two")
			f.wantErrors(tt.want)
			// An object that moves out of an unreadable file is not stuck.
			f.write("c.yaml", entry("a", "moved"))
			f.reload()
			f.wantEvents("update ns/a=moved")
			f.wantErrors(tt.want)
			f.remove("c.yaml")
			tt.restore(f)
			f.reload()
			f.wantErrors()
			f.wantStore("ns/a=one", "ns/b=two")
			f.remove("sub")
			f.reload()
			f.wantEvents("delete ns/a=one")
		})
	}
}
