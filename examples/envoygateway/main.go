// SPDX-License-Identifier: Apache-2.0

// Command envoygateway runs a gateway: an Envoy that a directory of Istio YAML and
// certificates configures.
//
// It writes such a directory, serves it, starts an Envoy with it, and shows what
// becomes of requests by HTTPS to two hosts while endpoints move, a route is led from
// service to service, a certificate is rotated, and one of the hosts gets a route that
// the Envoy refuses. Everything is on the loopback interface and in a temporary
// directory, and ends with the program.
//
// The Envoy is the one that -envoy names, or else the environment variable
// PILOTKIT_ENVOY, or the newest in .cache/envoy of the working directory, or envoy on
// the PATH. Without any, the program prints the bootstrap for one and how to get one,
// and serves until it is interrupted, so that an Envoy can be started by hand.
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

// run returns an error if the program has failed; asking for help is none, nor is an
// interruption, with which ctx ends.
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
	_, err = fmt.Fprintln(out, "\ninterrupted") // which is why it failed
	return err
}
