// SPDX-License-Identifier: Apache-2.0

//go:build unix

package file_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore/file"
)

// reloadInTime fails the test if a reload hangs.
func (f *fixture) reloadInTime() {
	f.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.reload()
	}()
	select {
	case <-done:
	case <-time.After(maxWait):
		f.Fatal("Reload hangs")
	}
}

// A file that is not regular is not read, which could block forever, and is reported once. It does
// not affect other files, and keeps the previous objects of its name.
func TestSpecialFiles(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		make       func(f *fixture, name string)
	}{
		{"named pipe", "a named pipe, not a file", func(f *fixture, name string) { f.must(syscall.Mkfifo(f.path(name), 0o600)) }},
		{"link to a named pipe", "a named pipe, not a file", func(f *fixture, name string) {
			f.must(syscall.Mkfifo(f.path("../pipe"), 0o600))
			f.symlink(f.path("../pipe"), name)
		}},
		{"link to a device", "a device, not a file", func(f *fixture, name string) { f.symlink("/dev/zero", name) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write("a.yaml", entry("a", "one"))
			f.write("b.yaml", entry("b", "one"))
			f.reload()
			f.remove("a.yaml")
			tt.make(f, "a.yaml")
			for _, host := range []string{"two", "three"} {
				f.write("b.yaml", entry("b", host))
				f.reloadInTime()
				f.wantStore("ns/a=one", "ns/b="+host)
				f.wantErrors("a.yaml: is " + tt.want)
			}
			if n := strings.Count(f.log.String(), tt.want); n != 1 {
				t.Errorf("reported %d times, want once:\n%s", n, f.log)
			}
			f.remove("a.yaml")
			f.reloadInTime()
			f.wantStore("ns/b=three")
			f.wantErrors()
		})
	}
}

// A file of reported size zero is not read: the files of /proc report zero, and reading this one
// would block until the next message of the kernel.
func TestFileThatSaysItIsEmpty(t *testing.T) {
	if _, err := os.Stat("/proc/kmsg"); err != nil {
		t.Skip("there is no /proc/kmsg")
	}
	f := newFixture(t, file.Options{})
	f.symlink("/proc/kmsg", "a.yaml")
	f.write("b.yaml", entry("b", "one"))
	f.reloadInTime()
	f.wantStore("ns/b=one")
}

// Changes of other files are followed in the presence of a named pipe.
func TestWatchBesideNamedPipe(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) {
		f.must(syscall.Mkfifo(f.path("pipe.yaml"), 0o600))
		f.write("a.yaml", entry("a", "one"))
	})
	w.await("add ns/a=one")
	w.write("a.yaml", entry("a", "two"))
	w.await("update ns/a=two")
	w.wantErrors("pipe.yaml: is a named pipe")
}
