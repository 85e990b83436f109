// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modules returns the folders of the repository's modules, sorted, but for modules of other
// programs: those in testdata.
func modules(root string) (dirs []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if name == "go.mod" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	slices.Sort(dirs)
	return dirs, err
}

// pkg is a package of the repository.
type pkg struct {
	module string // the folder of its module
	dir    string // its folder, from the root of the repository
}

// argument is the package as go test is given it in the folder of its module.
func (p pkg) argument() string { return "./" + filepath.ToSlash(must(filepath.Rel(p.module, p.dir))) }

// list returns the packages of the modules that the patterns stand for. A pattern without
// any package is an error.
func list(ctx context.Context, modules, patterns []string) (found []pkg, err error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		out, err := output(ctx, module, "list", "-f", "{{.Dir}}", "./...")
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", module, err)
		}
		for dir := range strings.Lines(out) {
			found = append(found, pkg{module: module, dir: must(filepath.Rel(root, strings.TrimSpace(dir)))})
		}
	}
	used := make(map[string]bool)
	found = slices.DeleteFunc(found, func(p pkg) bool {
		none := true
		for _, pattern := range patterns {
			if covers(pattern, p.dir) {
				used[pattern], none = true, false
			}
		}
		return none
	})
	for _, pattern := range patterns {
		if !used[pattern] {
			return nil, fmt.Errorf("no package matches %s", pattern)
		}
	}
	return found, nil
}

// covers reports whether a pattern stands for the package in a folder.
func covers(pattern, dir string) bool {
	below, tree := strings.CutSuffix(pattern, "/...")
	folder := filepath.Clean(below)
	return dir == folder || tree && (folder == "." || strings.HasPrefix(dir, folder+string(filepath.Separator)))
}

// output returns the output of a go command. The error is the first line of its error output.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, line)
	}
	return string(out), nil
}

// must is for functions that fail only for folders outside of the repository.
func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}
