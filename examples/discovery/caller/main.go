// SPDX-License-Identifier: Apache-2.0

// Command caller is a gRPC client of the two control planes in the README, and the backend that it
// calls. It prints the number of calls and of failed calls each second.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pilotkit/pilotkit/examples/discovery/internal/calls"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "caller:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("caller", flag.ContinueOnError)
	flags.SetOutput(out)
	replicas := flags.String("replicas", "127.0.0.1:15010,127.0.0.1:15011", "`addresses` of the control planes, separated by commas")
	backend := flags.String("backend", "127.0.0.1:9090", "`address` to serve on what is called")
	target := flags.String("target", "xds:///echo.example.com:80", "`target` to call")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	client, err := calls.New(*target, strings.Split(*replicas, ","))
	if err != nil {
		return err
	}
	served, err := calls.Listen(ctx, *backend)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	failed := make(chan error, 1)
	running.Go(func() { failed <- served.Run(ctx) })
	running.Go(func() { client.Run(ctx) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
			fmt.Fprintln(out, client)
		}
	}
}
