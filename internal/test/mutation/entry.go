// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// entry is one fault of the catalogue.
type entry struct {
	at       string   // where the entry begins, as file:line
	title    string   // what breaks
	file     string   // the file that is changed, from the root of the repository
	tests    []string // the folders of the packages whose tests have to fail, from the root
	run      string   // the tests that fail soonest, as a pattern of go test -run; empty for all
	race     bool     // only the race detector sees it
	full     string   // the tests of the full tier that kill it; empty if tests of the default tier do
	old, new string   // the text that is replaced, and by what
}

// parse reads a file of the catalogue. An entry begins with its title. Lines that begin with
// - and + are the text that is replaced and the text in its place, as in a patch. What begins
// with # is a comment.
func parse(name, text string) (entries []entry, err error) {
	var e *entry
	var before, after []string
	end := func() {
		if e != nil {
			e.old, e.new = strings.Join(before, "\n"), strings.Join(after, "\n")
			before, after = nil, nil
		}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" || line[0] == '#':
		case key == "title":
			end()
			entries = append(entries, entry{at: fmt.Sprintf("%s:%d", filepath.Base(name), n), title: value})
			e = &entries[len(entries)-1]
		case e == nil:
			return nil, fmt.Errorf("%s:%d: %q is before the first title", name, n, line)
		case line[0] == '-':
			before = append(before, line[1:])
		case line[0] == '+':
			after = append(after, line[1:])
		case key == "file":
			e.file = value
		case key == "tests":
			e.tests = strings.Fields(value)
		case key == "run":
			e.run = value
		case key == "full":
			e.full = value
		case line == "race":
			e.race = true
		default:
			return nil, fmt.Errorf("%s:%d: %q is none of the lines of an entry", name, n, line)
		}
	}
	end()
	return entries, nil
}

// read returns the catalogue of the repository at root, in the order of its files.
func read(root string) (entries []entry, err error) {
	files, err := filepath.Glob(filepath.Join(root, "internal", "test", "mutation", "catalogue", "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no catalogue in %s, which has to be the root of the repository", root)
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, err
		}
		more, err := parse(file, string(text))
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// comment is a comment at the end of a line of code.
var comment = regexp.MustCompile(`(?m)(\S)[ \t]+//.*$`)

// mutated returns the text of the entry's file with the fault in it. The text that it
// replaces has to be there once. Comments at the ends of lines are not compared, because a
// better wording must not break an entry.
func (e entry) mutated(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, e.file))
	if err != nil {
		return "", err
	}
	if e.old == "" || e.old == e.new {
		return "", fmt.Errorf("%s: the entry changes nothing", e.at)
	}
	code := comment.ReplaceAllString(string(text), "$1")
	if n := strings.Count(code, e.old); n != 1 {
		return "", fmt.Errorf("%s: the text to replace is %d times in %s", e.at, n, e.file)
	}
	return strings.Replace(code, e.old, e.new, 1), nil
}
