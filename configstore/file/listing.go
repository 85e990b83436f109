// SPDX-License-Identifier: Apache-2.0

package file

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// listing is the result of a walk through the directory. Paths are relative to the directory, with
// slashes; "." is the directory itself.
type listing struct {
	files map[string]fs.FileInfo
	dirs  map[string]fs.FileInfo
	// failed has the errors of unreadable directories and entries. Files at or below such a path
	// may still exist.
	failed map[string]error
	// linked means that a file is a symbolic link. Notifications of its changes have the name of another file.
	linked bool
}

// walker fills a listing.
type walker struct {
	root string
	// watch is called with each directory before it is read, so that nothing
	// that happens to it later goes unnoticed.
	watch func(dir string, info fs.FileInfo)
	// known reports whether files at or below a path have been loaded before.
	known func(name string) bool
	// visited holds the real paths of the directories seen: symbolic links may
	// lead to one twice, or in circles.
	visited map[string]bool
	listing listing
}

// list walks through the directory. The error is that of the directory itself.
func list(root string, watch func(string, fs.FileInfo), known func(string) bool) (listing, error) {
	w := walker{
		root: root, watch: watch, known: known, visited: map[string]bool{},
		listing: listing{
			files: map[string]fs.FileInfo{}, dirs: map[string]fs.FileInfo{}, failed: map[string]error{},
		},
	}
	err := func() error {
		resolved, err := filepath.EvalSymlinks(root)
		if err != nil {
			return err
		}
		info, err := os.Stat(root)
		if err != nil {
			return err
		}
		return w.dir(".", resolved, info)
	}()
	return w.listing, err
}

// dir walks through one directory.
func (w *walker) dir(name, resolved string, info fs.FileInfo) error {
	if w.visited[resolved] {
		return nil
	}
	w.visited[resolved] = true
	w.watch(name, info)
	entries, err := os.ReadDir(w.abs(name))
	if err != nil {
		return err
	}
	w.listing.dirs[name] = info
	for _, e := range entries {
		// Names with a leading dot are skipped: they belong to editors and version control, or are
		// the "..data" and "..<timestamp>" entries behind which kubelet keeps the files of a
		// mounted ConfigMap. The symbolic links next to these entries lead to each file once.
		if !strings.HasPrefix(e.Name(), ".") {
			w.entry(path.Join(name, e.Name()), filepath.Join(resolved, e.Name()), e)
		}
	}
	return nil
}

func (w *walker) entry(name, resolved string, e fs.DirEntry) {
	link := e.Type()&fs.ModeSymlink != 0
	info, err := os.Stat(w.abs(name))
	if err == nil && link && info.IsDir() {
		resolved, err = filepath.EvalSymlinks(w.abs(name))
	}
	switch {
	case err != nil:
	case info.IsDir():
		err = w.dir(name, resolved, info)
	case isManifest(name):
		w.listing.files[name], w.listing.linked = info, w.listing.linked || link
	}
	if err == nil || !link && os.IsNotExist(err) {
		// In the latter case it was removed since its directory was read.
		return
	}
	if e.IsDir() || isManifest(name) || w.known(name) {
		w.listing.failed[name] = err
	}
}

func (w *walker) abs(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

// missing reports whether a file that is not listed is known to be gone, rather
// than out of sight.
func (l listing) missing(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if _, ok := l.failed[name]; ok {
			return false
		}
	}
	return true
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
