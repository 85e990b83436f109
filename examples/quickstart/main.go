// SPDX-License-Identifier: Apache-2.0

// Command quickstart serves a directory of Istio YAML to xDS clients.
//
// Without arguments it demonstrates the complete data path on the loopback interface and exits: it
// serves a copy of its own config folder, calls backends through a gRPC client that is configured
// by xDS, edits the copy, and observes that the calls follow. With -config and -listen it serves
// the user's directory until it is interrupted, and with -debug it serves debug pages, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// run returns an error if the program has failed. A request for help is not an error.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints the error
	config := flags.String("config", "", "serve this `directory` of Istio YAML; without it a demonstration runs")
	listen := flags.String("listen", "127.0.0.1:15010", "`address` to serve xDS on, with -config")
	pages := flags.String("debug", "", "serve pages about what there is on this `address`, with -config; anybody who reaches it sees them")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return nil
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q; -h shows what there is", flags.Arg(0))
	case given["config"] && *config == "":
		return errors.New("-config names no directory")
	case given["listen"] && !given["config"]:
		return errors.New("-listen is of use with -config only: the demonstration chooses its address")
	case given["debug"] && !given["config"]:
		return errors.New("-debug is of use with -config only")
	case *config == "":
		return demonstrate(ctx, out)
	}
	return serve(ctx, *config, *listen, *pages, out)
}

// serve serves a directory until ctx ends, and debug pages if pages is not empty.
func serve(ctx context.Context, dir, address, pages string, out io.Writer) error {
	// Initial problems are in the error or in the report; the log has only later ones.
	var level slog.LevelVar
	level.Set(slog.LevelError + 1)
	p := newPipeline(dir, slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: &level})))
	s, err := p.start(ctx, address)
	if err != nil {
		return err
	}
	defer s.stop()
	level.Set(slog.LevelInfo)
	fmt.Fprintf(out, "serving %s on %s\n", dir, s.address)
	if pages != "" {
		where, stop, err := p.servePages(ctx, pages)
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(out, "pages on http://%s/\n", where)
	}
	p.report(out)
	<-ctx.Done()
	return nil
}
