// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// disk is what writing a file needs of the operating system.
type disk interface {
	create(path string) (diskFile, error)
	rename(from, to string) error
	syncDir(path string) error
	remove(path string) error
}

// diskFile is a file that is being written.
type diskFile interface {
	io.WriteCloser
	Sync() error
}

// replaceFile writes a file in one step. At any later time, including after a crash at any point, a
// reader of path finds either the previous content or everything that content writes. After
// replaceFile has returned nil, it is the new content.
//
//  1. The content goes to a temporary file in the same directory, which overwrites any leftover of
//     an earlier attempt.
//  2. Its bytes are on the disk before its name is that of the file.
//  3. Its name is on the disk before that counts as done.
func replaceFile(d disk, path string, content func(io.Writer) error) (err error) {
	temporary := path + ".new"
	f, err := d.create(temporary)
	if err != nil {
		return err //nolint:wrapcheck // it has the path
	}
	if err := fill(f, content); err != nil {
		_ = d.remove(temporary) // which may be impossible for the same reason
		return fmt.Errorf("write %s: %w", temporary, err)
	}
	if err := d.rename(temporary, path); err != nil {
		_ = d.remove(temporary)
		return err //nolint:wrapcheck // it has the paths
	}
	return d.syncDir(filepath.Dir(path))
}

// fill writes, syncs and closes a file.
func fill(f diskFile, content func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(f, 1<<16)
	err := content(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// osDisk is the disk.
type osDisk struct{}

func (osDisk) create(path string) (diskFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec,wrapcheck // the program's path; the error has it
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) } //nolint:wrapcheck // it has the paths
func (osDisk) remove(path string) error     { return os.Remove(path) }     //nolint:wrapcheck // it has the path

func (osDisk) syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the program's path
	if err != nil {
		return err //nolint:wrapcheck // it has the path
	}
	defer func() { _ = dir.Close() }() // the directory was opened for reading only
	return dir.Sync()                  //nolint:wrapcheck // it has the path
}
