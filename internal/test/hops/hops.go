// SPDX-License-Identifier: Apache-2.0

// Package hops records at run time which parts of the library a change passes.
//
// A part that keeps a change, or makes something else of it, allocates. Record therefore compares two
// profiles of all allocations, before and after a change, and returns the stacks of the difference. A hop
// is a package in a stage:
//
//   - A stage begins with a goroutine, or with a queue: a notify.Queue, or the calls of package xdsupdate. Its
//     name is the function that the goroutine runs, or that has the queue deliver.
//   - Each stage counts a package that allocates there once. A queue counts by its type.
//   - The packages of declarations, of pure functions and of data structures (helper) do not count, because
//     they return the result to their caller. A package below the folder internal of its caller is a part of
//     the caller.
//
// The walks of docs/architecture.md have one row for each hop (Documented).
package hops

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pilotkit/pilotkit/"

// Hop is a package in a stage.
type Hop struct{ Stage, Package string }

// String returns "package in stage".
func (h Hop) String() string { return h.Package + " in " + h.Stage }

// Stacks are the stacks of all allocations of a change, each from the start of its goroutine to the
// allocation.
type Stacks [][]string

// Record returns the stacks of the allocations while change runs, which returns when the library is
// idle again. It leaves out stacks with code of tests, and goroutines that read the answers of clients.
func Record(tb testing.TB, change func()) Stacks {
	tb.Helper()
	rate := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = rate }()
	before := allocations(tb)
	runtime.MemProfileRate = 1 // each allocation
	change()
	runtime.MemProfileRate = rate
	var out Stacks
	for stack, n := range allocations(tb) {
		if frames := strings.Split(stack, "\n"); n > before[stack] && ofLibrary(frames) {
			out = append(out, frames)
		}
	}
	return out
}

// ofLibrary reports whether the library allocates on a goroutine that a test has at most started.
func ofLibrary(frames []string) bool {
	foreign := func(f string) bool {
		return strings.Contains(f, "_test.") || strings.Contains(f, "/xdstest.") || strings.HasSuffix(f, "ads.(*stream).receive")
	}
	return slices.ContainsFunc(frames, isLibrary) && !slices.ContainsFunc(frames, foreign)
}

func isLibrary(frame string) bool {
	return strings.HasPrefix(frame, module) && !strings.HasPrefix(frame, module+"internal/test/")
}

// allocations returns the number of allocations by stack.
func allocations(tb testing.TB) map[string]int {
	tb.Helper()
	for range 2 {
		runtime.GC() // the profile has the allocations before the last cycle but one
	}
	var text bytes.Buffer
	if err := pprof.Lookup("allocs").WriteTo(&text, 1); err != nil {
		tb.Fatal(err)
	}
	out := map[string]int{}
	for block := range strings.SplitSeq(text.String(), "\n\n") {
		var live, size, allocated, total int
		var frames []string
		for line := range strings.Lines(block) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && strings.HasPrefix(fields[1], "0x") {
				name, _, _ := strings.Cut(fields[2], "+0x")
				frames = append(frames, name)
			} else if len(frames) == 0 {
				_, _ = fmt.Sscanf(line, "%d: %d [%d: %d]", &live, &size, &allocated, &total)
			}
		}
		if len(frames) > 0 {
			slices.Reverse(frames)
			out[strings.Join(frames, "\n")] += allocated
		}
	}
	return out
}

// helper reports whether a package returns its results to the caller and has no state of its own.
func helper(pkg string) bool {
	switch pkg {
	// Declarations, validators, pure functions.
	case "configstore", "configstore/internal/rules", "configstore/istio", "registry", "xdsupdate/envoy":
		return true
	default:
		return strings.HasPrefix(pkg, "internal/")
	}
}

// Hops returns the hops, sorted. Stages that begin in different ways count apart, also if they have one name.
func (s Stacks) Hops() []Hop {
	found := map[string]Hop{}
	for _, frames := range s {
		var stage, start, way, caller, last string // start is the way to the stage; the others are functions, and a package
		for _, frame := range frames {
			name := strings.TrimPrefix(frame, module)
			pkg, queue := partOf(name)
			if !isLibrary(frame) || !queue && helper(pkg) {
				continue
			}
			if owner, _, inside := strings.Cut(pkg, "/internal/"); inside && !helper(owner) {
				pkg = owner
			}
			if stage == "" {
				stage, start = plain(name), name
			}
			if queue && last != pkg {
				stage, start = plain(caller), way
				found[start+pkg] = Hop{stage, pkg}
			}
			caller, last, way = name, pkg, way+name+"\n"
		}
		if last != "" {
			found[start+last] = Hop{stage, last}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Hop) int { return strings.Compare(a.String(), b.String()) })
}

// partOf returns the package of a function without the module, or its type if that is a queue.
func partOf(name string) (part string, queue bool) {
	for _, queue := range []string{"internal/notify.(*Queue[...])", "xdsupdate.(*calls[...])"} {
		if strings.HasPrefix(name, queue) {
			return decoration.ReplaceAllString(queue, ""), true
		}
	}
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + pkg, false
}

var (
	decoration = regexp.MustCompile(`\[\.\.\.\]|[(*)]|\.func[0-9].*$|^.*/`)
	row        = regexp.MustCompile("(?m)^\\| [0-9]+ \\| `([^`]+)` \\| `([^`]+)` \\|")
)

// plain returns "package.Type.Method" of the name of a function.
func plain(name string) string { return decoration.ReplaceAllString(name, "") }

// Frames returns the largest number of frames between two functions on a stack, with the second one and without
// the first one, or 0 if there is no such stack.
func (s Stacks) Frames(from, to string) int {
	most := 0
	for _, frames := range s {
		first := slices.Index(frames, module+from)
		if last := slices.Index(frames, module+to); first >= 0 && last > first {
			most = max(most, last-first)
		}
	}
	return most
}

// Documented returns the hops of a walk of docs/architecture.md, sorted: the first table after a line that begins with
// heading.
func Documented(tb testing.TB, file, heading string) []Hop {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	_, text, found := bytes.Cut(text, []byte("\n"+heading))
	_, text, table := bytes.Cut(text, []byte("\n\n|"))
	text, _, _ = bytes.Cut(text, []byte("\n\n"))
	if !found || !table {
		tb.Fatalf("%s has no table after %q", file, heading)
	}
	var out []Hop
	for _, m := range row.FindAllSubmatch(text, -1) {
		out = append(out, Hop{string(m[1]), string(m[2])})
	}
	slices.SortFunc(out, func(a, b Hop) int { return strings.Compare(a.String(), b.String()) })
	return out
}
