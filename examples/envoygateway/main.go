// SPDX-License-Identifier: Apache-2.0

// Command envoygateway runs a gateway: an Envoy that is configured by a directory of Istio YAML and
// certificates.
//
// It writes such a directory, serves it, starts an Envoy, and shows the results of HTTPS requests
// to two hosts while endpoints move, a route is switched between services, a certificate is
// rotated, and one of the hosts gets a route that the Envoy rejects. Everything is on the loopback
// interface and in a temporary directory, and ends with the program.
//
// The Envoy is the one of the flag -envoy, or of the environment variable PILOTKIT_ENVOY, or the
// newest in .cache/envoy of the working directory, or envoy on the PATH. Without any, the program
// prints a bootstrap and how to get an Envoy, and serves until it is interrupted, so that an Envoy
// can be started by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "envoygateway:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// options are the flags.
type options struct {
	envoy      string
	sotw, keep bool
}

// run returns an error if the program has failed. A request for help is not an error, nor is an
// interruption, which ends ctx.
func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("envoygateway", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints the error
	flags.StringVar(&o.envoy, "envoy", "", "`path` of the Envoy to run")
	flags.BoolVar(&o.sotw, "sotw", false, "the Envoy uses the state-of-the-world protocol, not the incremental one")
	flags.BoolVar(&o.keep, "keep", false, "after the demonstration serve until interrupted")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		flags.Usage()
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q; -h shows what there is", flags.Arg(0))
	}
	program, err := findEnvoy(o.envoy)
	if err != nil {
		return err
	}
	if err = demonstrate(ctx, o, program, out); ctx.Err() == nil {
		return err
	}
	_, err = fmt.Fprintln(out, "\ninterrupted") // the interruption is the reason of the error
	return err
}
