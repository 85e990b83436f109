// SPDX-License-Identifier: Apache-2.0

package grpccall

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
)

// startGo makes calls with grpc-go in this process.
func (c *Caller) startGo(bootstrap []byte) func(Call) error {
	c.tb.Helper()
	builder, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		c.tb.Fatal(err)
	}
	creds, err := xdscreds.NewClientCredentials(xdscreds.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		c.tb.Fatal(err)
	}
	conns := make(map[string]*grpc.ClientConn)
	ctx, cancel := context.WithCancel(c.tb.Context())
	var running sync.WaitGroup
	c.tb.Cleanup(func() {
		cancel()
		running.Wait()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return func(call Call) error {
		if conns[call.Target] == nil {
			conn, err := grpc.NewClient(call.Target, grpc.WithResolvers(builder), grpc.WithTransportCredentials(creds))
			if err != nil {
				return err
			}
			conns[call.Target] = conn
		}
		conn := conns[call.Target]
		running.Go(func() { c.answers <- invoke(ctx, conn, call) })
		return nil
	}
}

func invoke(ctx context.Context, conn *grpc.ClientConn, call Call) Answer {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, metadata.New(call.Headers)), time.Duration(call.Timeout)*time.Millisecond)
	defer cancel()
	start := time.Now()
	var header metadata.MD
	err := conn.Invoke(ctx, call.Path, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Header(&header), grpc.WaitForReady(call.Waits))
	out := Answer{ID: call.ID, Code: status.Code(err), Error: status.Convert(err).Message(), Micros: time.Since(start).Microseconds()}
	if names := header.Get("backend"); err == nil && len(names) > 0 {
		out.Backend = names[0]
	}
	return out
}
