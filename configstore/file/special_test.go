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

// What is no regular file is not read, which could take forever, and is reported
// once. It hinders no other file, and keeps what the file held before.
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

// A file that says that it is empty is not read: those of /proc do, and reading
// this one would wait for the next message of the kernel.
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

// Beside a named pipe, changes of the other files are followed.
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
