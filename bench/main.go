// SPDX-License-Identifier: Apache-2.0

// Command bench does the same work with pilotkit and with other Go modules, and writes one table for
// each kind of work.
//
//	go -C bench run . -out RESULTS.md     all rows, about five minutes
//	go -C bench run . -only Store         rows whose name matches, on the standard output
//	go -C bench run . -scale 1 -out SCALE.md   a large mesh instead, two minutes and 8 GB
//
// The subjects of a row are measured in turns, several times, and the median counts.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is the same work for several subjects.
type row struct {
	name  string
	sizes []int
	// about describes differences between the subjects, such as the reason why one is behind. It may
	// be empty.
	about string
	// of returns the subjects for a size; the first one is pilotkit.
	of func(n int) []subject
}

type subject struct {
	name string
	run  func(b *testing.B)
}

// figure is the median of the rounds of a subject.
type figure struct {
	time   time.Duration
	allocs int64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	testing.Init()
	out := flag.String("out", "", "the file to write; the standard output without one")
	only := flag.String("only", "", "a pattern that the name of a row has to match")
	rounds := flag.Int("rounds", 3, "how often each subject is measured")
	each := flag.String("each", "300ms", "how long a subject is measured in a round, as -benchtime of go test")
	part := flag.Int("scale", 0, "measure a large mesh instead, divided by this number")
	flag.Parse()
	if *part > 0 {
		var text strings.Builder
		return errors.Join(scale(&text, whole().part(*part)), write(*out, text.String()))
	}
	pattern, err := regexp.Compile(*only)
	if err == nil {
		err = flag.Set("test.benchtime", *each)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	writeHead(&text, strings.Join(os.Args[1:], " "))
	for _, r := range rows() {
		if !pattern.MatchString(r.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, r.name)
		if err := r.write(&text, *rounds); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if pattern.MatchString("End to end") {
		endToEnd(&text, []int{1_000, 10_000}, 200)
	}
	return write(*out, text.String())
}

func write(file, text string) error {
	if file == "" {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page
}

func rows() []row { return slices.Concat(storeRows(), eventRows(), serveRows()) }

// write measures a row and writes its table.
func (r row) write(w io.Writer, rounds int) error {
	fmt.Fprintf(w, "\n## %s\n\n", r.name)
	if r.about != "" {
		fmt.Fprintf(w, "%s\n\n", r.about)
	}
	table := make(map[string][]figure)
	var names []string
	for _, n := range r.sizes {
		subjects := r.of(n)
		measured := make(map[string][]figure)
		for range rounds {
			for _, s := range subjects {
				result := testing.Benchmark(s.run)
				if result.N == 0 {
					return errors.New(s.name + " has failed")
				}
				runtime.GC()
				measured[s.name] = append(measured[s.name], figure{time.Duration(result.NsPerOp()), result.AllocsPerOp()})
			}
		}
		names = names[:0]
		for _, s := range subjects {
			names = append(names, s.name)
			table[s.name] = append(table[s.name], median(measured[s.name]))
		}
	}
	fmt.Fprint(w, "| |")
	for _, n := range r.sizes {
		fmt.Fprintf(w, " n=%d |", n)
	}
	fmt.Fprintf(w, " growth |\n|---|%s---|\n", strings.Repeat("---|", len(r.sizes)))
	for _, name := range names {
		fmt.Fprintf(w, "| %s |", name)
		for i, f := range table[name] {
			own := table[names[0]][i]
			fmt.Fprintf(w, " %v, %d allocs%s |", round(f.time), f.allocs, ratio(f, own, name != names[0]))
		}
		first, last := table[name][0], table[name][len(r.sizes)-1]
		fmt.Fprintf(w, " %.1f × |\n", float64(last.time)/float64(max(1, first.time)))
	}
	return nil
}

// ratio says how many times as long a peer takes.
func ratio(f, own figure, peer bool) string {
	if !peer {
		return ""
	}
	times := float64(f.time) / float64(max(1, own.time))
	if times < 10 {
		return fmt.Sprintf(": **%.1f ×**", times)
	}
	return fmt.Sprintf(": **%.0f ×**", times)
}

func median(list []figure) figure {
	slices.SortFunc(list, func(a, b figure) int { return cmp.Compare(a.time, b.time) })
	return list[len(list)/2]
}

// round leaves three digits of a time.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// writeHead writes the machine, the versions and the command.
func writeHead(w io.Writer, args string) {
	fmt.Fprintf(w, "# The same work with other Go modules\n\n`go -C bench run . %s`\n\n", args)
	fmt.Fprintf(w, "%s %s/%s, %d processors, with these versions:\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/hashicorp/go-memdb", "github.com/cilium/statedb", "k8s.io/client-go", "github.com/envoyproxy/go-control-plane", "google.golang.org/grpc":
				fmt.Fprintf(w, "- `%s` %s\n", d.Path, d.Version)
			}
		}
	}
	fmt.Fprint(w, "\nEach row has the time and the allocations of one operation, in the median of the rounds; the subjects take turns. A\n"+
		"subject with \"2 ×\" takes twice as long as pilotkit. Growth is the ratio of the last size to the first.\n")
}
