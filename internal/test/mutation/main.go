// SPDX-License-Identifier: Apache-2.0

// Command mutation breaks the product in the ways of its catalogue, one at a time, and shows
// which test fails then. Run it at the root of the repository:
//
//	go run ./internal/test/mutation                     every entry, the default tier
//	go run ./internal/test/mutation -tier full          every entry, the full tier
//	go run ./internal/test/mutation -only aggregate     entries whose title or file matches
//	go run ./internal/test/mutation -list               list the entries without running them
//
// It exits with 1 if a fault survives, or does not compile. The format of the catalogue's files is
// documented at parse. No file of the repository is changed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the life of the program
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutation", flag.ExitOnError)
	only := flags.String("only", "", "a pattern that the title or the file of an entry has to match")
	tier := flags.String("tier", "default", "the tier of the tests: default or full")
	list := flags.Bool("list", false, "list the entries")
	timeout := flags.Duration("timeout", 10*time.Minute, "how long the tests of a package may take")
	_ = flags.Parse(args) // an error exits
	if *tier != "default" && *tier != "full" || flags.NArg() > 0 {
		return errors.New("-tier is default or full, and there are no arguments")
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	entries, err := read(".")
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !pattern.MatchString(e.title) && !pattern.MatchString(e.file) })
	if *list {
		for _, e := range entries {
			fmt.Fprintf(os.Stdout, "%-18s %-50s %s\n", e.at, e.file, e.title)
		}
		return nil
	}
	return runner{root: ".", full: *tier == "full", timeout: *timeout}.all(ctx, entries)
}

// all tries the entries, and prints a row of each. It is an error if one is alive.
func (r runner) all(ctx context.Context, entries []entry) error {
	alive := 0
	for _, e := range entries {
		v := verdict{text: "left to the full tier: " + e.full}
		start := time.Now()
		if e.full == "" || r.full {
			var err error
			if v, err = r.try(ctx, e); err != nil {
				return err
			}
		}
		if v.alive {
			alive++
		}
		fmt.Fprintf(os.Stdout, "%-50s %-80s %4.0fs %s\n", e.file, e.title, time.Since(start).Seconds(), v.text)
	}
	fmt.Fprintf(os.Stdout, "%d entries\n", len(entries))
	if alive > 0 {
		return fmt.Errorf("%d of %d are alive", alive, len(entries))
	}
	return nil
}
