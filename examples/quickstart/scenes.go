// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// shareTraffic demonstrates a VirtualService with weights, a header match and a fault.
func (d *demonstration) shareTraffic(ctx context.Context) error {
	const host = "web.demo.internal:80"
	conn, err := dial(d.address, host)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	const calls = 500
	fmt.Fprintf(d.out, "\nCalling xds:///%s, where VirtualService demo/web shares traffic 90 to 10:\n", host)
	if err := d.count(ctx, conn, calls, "one", "two"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  with the header x-version: v2\n")
	if err := d.count(metadata.AppendToOutgoingContext(ctx, "x-version", "v2"), conn, 10, "two"); err != nil {
		return err
	}
	_, err = who(metadata.AppendToOutgoingContext(ctx, "x-fault", "abort"), conn)
	if status.Code(err) != codes.Unavailable {
		return fmt.Errorf("a call with the header x-fault: %w, want the fault", err)
	}
	fmt.Fprintf(d.out, "  with the header x-fault: abort\n  the call failed: %s: %s\n", status.Code(err), status.Convert(err).Message())
	return nil
}

// failOver stops the backend in the zone of the client.
func (d *demonstration) failOver(ctx context.Context) error {
	const host = "near.demo.internal:80"
	conn, err := dial(d.address, host)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fmt.Fprintf(d.out, "\nCalling xds:///%s from eu/a, with backend one in eu/a and backend two in eu/b:\n", host)
	if err := d.count(ctx, conn, 10, "one"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  stopping backend one\n")
	d.backends[0].stop()
	return d.count(ctx, conn, 10, "two")
}

// count makes a number of calls, and expects responses from all of the given backends and from no
// others.
func (d *demonstration) count(ctx context.Context, conn grpc.ClientConnInterface, calls int, backends ...string) error {
	counts := map[string]int{}
	for range calls {
		name, err := who(ctx, conn)
		if err != nil {
			return fmt.Errorf("call: %w", err)
		}
		counts[name]++
	}
	for _, name := range backends {
		if counts[name] == 0 {
			return fmt.Errorf("backend %s did not answer: %v", name, counts)
		}
		calls -= counts[name]
		fmt.Fprintf(d.out, "  backend %-5s answered %3d calls\n", name, counts[name])
	}
	if calls > 0 {
		return fmt.Errorf("%d calls were answered by others: %v", calls, counts)
	}
	return nil
}
