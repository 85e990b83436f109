// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// echo is a backend that answers every method with its name in a header. Headers of a call control
// it: "fail: N" fails every attempt but the (N+1)th with UNAVAILABLE, "wait: MS" delays the answer.
type echo struct {
	port  uint32
	calls atomic.Int64
}

func startEcho(t *testing.T, name string) *echo {
	t.Helper()
	listener := testserver.Listen(t, "127.0.0.1:0")
	b := &echo{port: testserver.Port(listener)}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		b.calls.Inc()
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		md, _ := metadata.FromIncomingContext(stream.Context())
		if n := number(md, "fail"); n > number(md, "grpc-previous-rpc-attempts") {
			return status.Error(codes.Unavailable, "as was asked for")
		}
		select {
		case <-time.After(time.Duration(number(md, "wait")) * time.Millisecond):
		case <-stream.Context().Done():
			// The client's deadline is known here as well, and may be over here first.
			return status.FromContextError(stream.Context().Err()).Err()
		}
		if err := stream.SetHeader(metadata.Pairs("backend", name)); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	testserver.Serve(t, listener, server)
	return b
}

// number is that of a header, or 0.
func number(md metadata.MD, name string) int {
	values := md.Get(name)
	if len(values) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(values[0])
	return n
}
