// SPDX-License-Identifier: Apache-2.0

// Command discovery is a small control plane that is complete: sources, registries, xDS
// with TLS, MCP, what an operator looks at, warm start, and a stop in the right order.
//
//	go run . -dir ../quickstart/config
//
// The README shows a run of two replicas. A file is one of the program's parts:
//
//	settings.go   flags, and the file that they may come from
//	sources.go    where configs and services come from
//	plane.go      what becomes of them
//	serve.go      xDS, and MCP, over gRPC
//	admin.go      probes, metrics, debug pages and profiles, over HTTP
//	readiness.go  whether it serves, and what it waits for
//	lifecycle.go  the order in which all of it starts and stops
package main

import (
	"context"
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
		fmt.Fprintln(os.Stderr, "discovery:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// run returns when ctx has ended and everything has stopped; asking for help is no error.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, help, err := parse(args)
	switch {
	case err != nil:
		return err
	case help != "":
		_, err := io.WriteString(out, help)
		return err
	}
	p, err := newPlane(ctx, s, out)
	if err != nil {
		return err
	}
	return p.run(ctx)
}
