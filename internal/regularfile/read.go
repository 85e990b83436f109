// SPDX-License-Identifier: Apache-2.0

// Package regularfile reads files that others may replace by anything: named
// pipes, devices, files without end.
package regularfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the content of a file and its state before it was read. It never waits for a writer:
// a file that is not regular is not even opened, because opening alone may have side effects, and
// at most the reported size is read, because the files of /proc report a size of zero. Symbolic
// links are followed. A file of more than limit bytes is an error; a negative limit means no limit.
func Read(path string, limit int) (data []byte, info fs.FileInfo, err error) {
	if info, err = os.Stat(path); err != nil {
		return nil, nil, err
	}
	if err := check(info); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	// Not to block, should it have been replaced in between.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // The path is the program's.
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // the file was opened for reading only
	return readOpen(f, limit)
}

// readOpen reads a file that is open, and may be anything.
func readOpen(f *os.File, limit int) (data []byte, info fs.FileInfo, err error) {
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if err := check(info); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	if limit >= 0 && info.Size() > int64(limit) {
		err := fmt.Errorf("the file is larger than the limit of %d bytes", limit)
		return nil, nil, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	data = make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // ReadFull returns them bare.
		err = nil // It has been truncated.
	}
	return data[:n], info, err
}

// check returns an error with the type of a file that is not regular.
func check(info fs.FileInfo) error {
	what := "not a regular file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a directory, not a file"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe, not a file"
	case mode&fs.ModeSocket != 0:
		what = "a socket, not a file"
	case mode&fs.ModeDevice != 0:
		what = "a device, not a file"
	}
	return fmt.Errorf("is %s", what)
}
