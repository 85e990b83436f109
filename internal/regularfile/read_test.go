// SPDX-License-Identifier: Apache-2.0

//go:build unix

package regularfile

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRead: a path that leads to anything but a regular file is an error with the type, and the
// test does not block.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(path("file"), []byte("12345"), 0o600))
	must(os.Symlink("file", path("link")))
	must(os.Symlink("circle", path("circle")))
	must(os.Symlink("/dev/zero", path("device")))
	must(syscall.Mkfifo(path("pipe"), 0o600))
	must(os.WriteFile(path("sparse"), nil, 0o600))
	must(os.Truncate(path("sparse"), 1<<40))
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path("socket"))
	must(err)
	defer func() { _ = socket.Close() }()
	for _, tt := range []struct {
		name, want, err string
		limit           int
	}{
		{name: "file", want: "12345", limit: 5},
		{name: "file", want: "12345", limit: -1},
		{name: "file", err: "larger than the limit of 4 bytes", limit: 4},
		{name: "link", want: "12345", limit: 5},
		{name: "circle", err: "too many", limit: 5},
		{name: "missing", err: "no such file", limit: 5},
		{name: "device", err: "a device", limit: 5},
		{name: "pipe", err: "a named pipe", limit: 5},
		{name: "socket", err: "a socket", limit: 5},
		{name: ".", err: "a directory", limit: 5},
		{name: "sparse", err: "larger than the limit", limit: 1 << 20},
	} {
		data, _, err := Read(path(tt.name), tt.limit)
		switch {
		case tt.err == "" && (err != nil || string(data) != tt.want):
			t.Errorf("%s: %q, %v, want %q", tt.name, data, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), path(tt.name))):
			t.Errorf("%s: error %v, want %q and the path", tt.name, err, tt.err)
		}
	}
}

// TestReplacedBeforeItIsOpened: a file that has become a named pipe since it was
// looked at is recognized by its descriptor.
func TestReplacedBeforeItIsOpened(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()
	if _, _, err := readOpen(read, -1); err == nil || !strings.Contains(err.Error(), "a named pipe") {
		t.Errorf("error %v, want: a named pipe", err)
	}
}
