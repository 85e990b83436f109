// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// stdinPath is the argument for the standard input, stdinName its name in findings.
const (
	stdinPath = "-"
	stdinName = "<stdin>"
)

// input is one file to check.
type input struct {
	// name is the name of the file in findings.
	name string
	// stdin is set for the standard input.
	stdin bool
	// err is the reason why the file cannot be read, if it is known already.
	err error
}

// read returns the content. A file that is larger than the limit of package manifest is truncated
// one byte above the limit, so that it is rejected.
func (in input) read(stdin io.Reader) ([]byte, error) {
	if in.err != nil {
		return nil, in.err
	}
	from := stdin
	if !in.stdin {
		f, err := os.Open(in.name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	return io.ReadAll(io.LimitReader(from, manifest.DefaultMaxBytes+1))
}

// finder collects the distinct files of paths.
type finder struct {
	found []input
	// seen has the real paths of files and directories, because they may be named twice, and
	// symbolic links may be circular.
	seen map[string]bool
}

// findInputs returns the files of the arguments, in their order. The files of a directory are
// sorted by name.
func findInputs(paths []string) []input {
	f := finder{seen: map[string]bool{}}
	for _, path := range paths {
		if path == stdinPath {
			if !f.seen[stdinPath] {
				f.found = append(f.found, input{name: stdinName, stdin: true})
			}
			f.seen[stdinPath] = true
			continue
		}
		f.add(path, func(os.FileInfo) bool { return true })
	}
	return f.found
}

// add adds a file if it is wanted, or the files below a directory.
func (f *finder) add(path string, wanted func(os.FileInfo) bool) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && !wanted(info) {
		return
	}
	var resolved string
	if err == nil {
		resolved, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	switch {
	case err != nil:
		f.found = append(f.found, input{name: path, err: err})
	case f.seen[resolved]:
	case info.IsDir():
		f.seen[resolved] = true
		f.directory(path)
	default:
		f.seen[resolved] = true
		f.found = append(f.found, input{name: path})
	}
}

// directory adds the files that package configstore/file would read in a directory.
func (f *finder) directory(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		f.found = append(f.found, input{name: path, err: err})
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f.add(filepath.Join(path, e.Name()), func(info os.FileInfo) bool {
			return info.Mode().IsRegular() && isManifest(e.Name())
		})
	}
}

func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
