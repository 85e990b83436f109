// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"slices"
	"time"
)

// racyWindow is how long after its last change a file may change again without
// a difference in its times, on the coarsest file systems in use.
const racyWindow = 2 * time.Second

// content is the parsed state of one file. It is replaced as a whole when the file changes; the
// sections of unchanged texts are reused.
type content struct {
	file *fileName
	// info is the file as it was when it was read; trusted means that a later
	// change will show in it.
	info     fs.FileInfo
	trusted  bool
	sections []*section
	// rest holds the definitions of objects that are kept although the file does not
	// name them any more.
	rest *section
	// failure is the reason why the file as a whole cannot be read, or nil.
	failure *Error
	// emptied is when the file was first seen without content that it had
	// before; zero if it is not waited for.
	emptied time.Time
	// reported are the sections with findings to report. For a file that cannot be read, they are
	// from the last successful read.
	reported []*section
}

// unchanged reports whether a file need not be read again.
func (c *content) unchanged(info fs.FileInfo) bool {
	return c.trusted && c.emptied.IsZero() &&
		c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime()) && os.SameFile(c.info, info)
}

// unseen reports whether the file cannot be read because of its directory.
func (c *content) unseen() bool { return c.info == nil && c.failure == nil }

// hasObjects reports whether there is anything to lose.
func (c *content) hasObjects() bool {
	return slices.ContainsFunc(c.definitions(), func(def *definition) bool { return def.config != nil })
}

// definitions returns all definitions of the file.
func (c *content) definitions() []*definition {
	return definitionsOf(append(slices.Clip(c.sections), c.rest))
}

// stamp notes when the file was read.
func (c *content) stamp(info fs.FileInfo) {
	c.info, c.trusted, c.emptied = info, time.Since(info.ModTime()) > racyWindow, time.Time{}
}

// holds reports whether the file consists of the texts with these hashes.
func (c *content) holds(hashes [][sha256.Size]byte) bool {
	if c.failure != nil || c.unseen() || len(c.sections) != len(hashes) {
		return false
	}
	for i, s := range c.sections {
		if s.hash != hashes[i] {
			return false
		}
	}
	return true
}
