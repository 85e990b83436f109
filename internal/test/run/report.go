// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// report shows results as they come: a line for each package, and the output of failures. At its
// end it lists the skipped tests and the slowest ones. Concurrent calls may add to it.
type report struct {
	verbose bool

	mu      sync.Mutex
	out     io.Writer
	lines   map[string][]string // the output of each test that has not ended, by package and test
	reasons map[string][]string // packages by the reason for skipping tests
	seconds map[string]float64  // of each package
	failed  []string            // packages
	tests   map[string]int      // by how they ended
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{
		out: out, verbose: verbose, lines: make(map[string][]string), reasons: make(map[string][]string),
		seconds: make(map[string]float64), tests: make(map[string]int),
	}
}

func (r *report) print(text string) { fmt.Fprint(r.out, text) }

// line handles a line of the output of go test -json: an event, or a line that is shown unchanged.
func (r *report) line(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		r.print(string(line))
		return
	}
	r.add(e)
}

// add takes the next event.
func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output(key, e)
	case "build-output":
		r.print(e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.test(key, e)
		} else {
			r.pkg(e)
		}
	}
}

// noise is output that repeats information of the report.
var noise = regexp.MustCompile(`(?m)^(=== (RUN|PAUSE|CONT|NAME)|PASS$|FAIL$|\? |testing: warning: no tests to run)`)

func (r *report) output(key string, e event) {
	switch {
	case r.verbose:
		r.print(e.Output)
	case noise.MatchString(e.Output) || strings.Contains(e.Output, "[no tests to run]"):
	case e.Test == "":
		r.print(e.Output)
	default:
		r.lines[key] = append(r.lines[key], e.Output)
	}
}

// place is how the line of a skip begins.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

func (r *report) test(key string, e event) {
	r.tests[e.Action]++
	switch e.Action {
	case "fail":
		r.print(strings.Join(r.lines[key], ""))
	case "skip":
		for _, line := range r.lines[key] {
			if place.MatchString(line) {
				reason := strings.TrimSpace(place.ReplaceAllString(line, ""))
				r.skip(reason, e.Package)
			}
		}
	}
	delete(r.lines, key)
}

func (r *report) skip(reason, where string) { r.reasons[reason] = append(r.reasons[reason], where) }

func (r *report) pkg(e event) {
	r.seconds[e.Package] += e.Elapsed
	if e.Action != "fail" {
		return
	}
	r.failed = append(r.failed, e.Package)
	// The tests that had not ended tell why.
	for _, key := range slices.Sorted(maps.Keys(r.lines)) {
		if strings.HasPrefix(key, e.Package+" ") {
			r.print(strings.Join(r.lines[key], ""))
			delete(r.lines, key)
		}
	}
}

// ended records that a call of go test has failed, regardless of its events.
func (r *report) ended(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) == 0 {
		r.failed = append(r.failed, "the module "+c.module)
	}
}

// summary names packages, or how many they are.
func summary(packages []string) string {
	if len(packages) > 3 {
		return fmt.Sprintf("%d packages", len(packages))
	}
	names := make([]string, len(packages))
	for i, name := range packages {
		names[i] = trimmed(name)
	}
	return strings.Join(names, ", ")
}

// trimmed is the name of a package without that of the repository.
func trimmed(name string) string { return strings.TrimPrefix(name, "github.com/pilotkit/pilotkit/") }

// longest is how many packages the report names at its end.
const longest = 10

// close prints what stands at the end, and returns errFailed if something failed.
func (r *report) close() error {
	if r.verbose {
		r.reasons = nil // they have been shown
	}
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		packages := r.reasons[reason]
		slices.Sort(packages)
		fmt.Fprintf(r.out, "skipped: %s (%d in %s)\n", reason, len(packages), summary(slices.Compact(packages)))
	}
	names := slices.SortedFunc(maps.Keys(r.seconds), func(a, b string) int { return cmp.Compare(r.seconds[b], r.seconds[a]) })
	if len(names) > longest {
		r.print("longest:")
		for _, name := range names[:longest] {
			fmt.Fprintf(r.out, " %s %.0fs", trimmed(name), r.seconds[name])
		}
		r.print("\n")
	}
	for _, name := range r.failed {
		fmt.Fprintf(r.out, "failed: %s\n", name)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.tests["pass"], max(r.tests["fail"], len(r.failed)), r.tests["skip"])
	if len(r.failed) > 0 {
		return errFailed
	}
	return nil
}
