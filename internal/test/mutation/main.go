// SPDX-License-Identifier: Apache-2.0

// Command mutation breaks the product in the ways of its catalogue, one at a time, and shows
// which test fails then. Run it at the root of the repository:
//
//	go run ./internal/test/mutation                     every entry, the default tier
//	go run ./internal/test/mutation -tier full          every entry, the full tier
//	go run ./internal/test/mutation -only aggregate     entries whose title or file matches
//	go run ./internal/test/mutation -list               what there is, without running it
//
// It exits with 1 if a fault survives, or does not compile. The catalogue is in files of the
// folder of the same name: see parse for what an entry consists of. No file of the repository is changed.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	r := runner{root: ".", full: *tier == "full", timeout: *timeout}
	failed := 0
	for _, e := range entries {
		v := verdict{}
		start := time.Now()
		switch {
		case *list:
		case e.full != "" && !r.full:
			v.text = "left to the full tier: " + e.full
		default:
			if v, err = r.try(ctx, e); err != nil {
				return err
			}
		}
		if v.alive {
			failed++
		}
		fmt.Printf("%-45s %-75s %s %.0fs\n", e.file, e.title, v.text, time.Since(start).Seconds())
	}
	fmt.Printf("%d entries\n", len(entries))
	if failed > 0 {
		return fmt.Errorf("%d of %d were not killed", failed, len(entries))
	}
	return nil
}
