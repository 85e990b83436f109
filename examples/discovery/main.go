// SPDX-License-Identifier: Apache-2.0

// Command discovery is a complete small control plane: sources, registries, xDS with TLS, MCP,
// ports for operators, warm start, and an ordered shutdown.
//
//	go run . -dir ../quickstart/config
//
// The README shows a run of two replicas. Each file is one part of the program:
//
//	settings.go   flags, and the file that they may come from
//	sources.go    sources of configs and services
//	plane.go      registries, policies, secrets and the server; order of start and shutdown
//	serve.go      xDS, and MCP, over gRPC
//	admin.go      probes, metrics, debug pages and profiles, over HTTP
//	readiness.go  readiness, and the sources it waits for
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

// run returns when ctx has ended and everything has stopped. A request for help is not an error.
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
