// SPDX-License-Identifier: Apache-2.0

// Command run passes the tests of all modules of this repository. ./test.sh calls it, and
// says how it is used.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the program is the caller
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "test.sh:", err)
		}
		os.Exit(1)
	}
}

// errFailed means that tests failed, which the report has said.
var errFailed = errors.New("tests failed")

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	folders, err := modules(".")
	if err != nil {
		return err
	}
	packages, err := list(ctx, folders, o.patterns)
	if err != nil {
		return err
	}
	report := newReport(os.Stdout, o.verbose)
	calls := o.calls(o.tested(packages, report))
	if err := ready(ctx, calls); err != nil {
		return err
	}
	if o.budget > 0 {
		return o.rotate(ctx, calls)
	}
	if err := together(ctx, calls, report, o.atOnce()); err != nil {
		return err
	}
	return report.close()
}

// together makes the calls in their order, a few at the same time.
func together(ctx context.Context, calls []call, r *report, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, c := range calls {
		group.Go(func() error { return c.test(ctx, r) })
	}
	return group.Wait()
}
