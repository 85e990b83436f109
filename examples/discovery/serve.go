// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
)

// xds is the port that proxies and other control planes connect to.
type xds struct {
	listener net.Listener
	grpc     *grpc.Server
	patience time.Duration
	// tls and clients are nil without TLS. Then the claims of clients are trusted.
	tls     *authn.TLS
	clients *authn.Authenticator
	// operators is the namespace of the clients that may use CSDS.
	operators string
}

// listenXDS listens on the port. Services has the labels of clients.
func listenXDS(ctx context.Context, s *settings, services registry.ServiceDiscovery, log *slog.Logger) (*xds, error) {
	x, options := &xds{patience: s.patience, operators: s.operators}, ads.ServerOptions()
	if s.cert != "" {
		var err error
		x.tls, err = authn.NewTLS(authn.TLSOptions{
			Files: authn.Files{Certificate: s.cert, Key: s.key, Authorities: s.clientCA}, Logger: log,
		})
		if err != nil {
			return nil, fmt.Errorf("-tls-cert, -tls-key, -tls-client-ca: %w", err)
		}
		options = append(options, grpc.Creds(x.tls.Credentials()))
		x.clients = authn.New(authn.Options{TrustDomains: []string{s.trustDomain}, Services: services, Logger: log})
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	x.listener, x.grpc = listener, grpc.NewServer(options...)
	return x, nil
}

// proxy returns ads.Options.Proxy.
func (x *xds) proxy() func(context.Context, *core.Node) (*registry.Proxy, error) {
	if x.clients == nil {
		return nil
	}
	return x.clients.Proxy
}

// isOperator authorizes the callers of CSDS: clients in the namespace operators, or without TLS
// clients on this machine.
func (x *xds) isOperator(ctx context.Context) error {
	if x.clients == nil {
		if caller, ok := peer.FromContext(ctx); ok {
			if address, isTCP := caller.Addr.(*net.TCPAddr); isTCP && address.IP.IsLoopback() {
				return nil
			}
		}
		return status.Error(codes.PermissionDenied, "without TLS only callers on this machine may ask")
	}
	identity, err := x.clients.Identity(ctx)
	if err == nil && identity.Namespace != x.operators {
		return status.Errorf(codes.PermissionDenied, "only namespace %s may ask, this is %s", x.operators, identity)
	}
	return err
}

// run serves until stop is closed. Then it accepts no new connections, asks clients to reconnect
// elsewhere, and ends their streams. It closes the connections of clients that do not read after
// half of the patience.
func (x *xds) run(server *ads.Server, stop <-chan struct{}) error {
	server.Register(x.grpc)
	csds.New(server, csds.Options{Authorize: x.isOperator}).Register(x.grpc)
	var running sync.WaitGroup
	stopStreams := make(chan struct{})
	running.Go(func() { server.Run(stopStreams) })
	if x.tls != nil {
		running.Go(func() { x.tls.Run(stopStreams) })
	}
	served := make(chan error, 1)
	go func() { served <- x.grpc.Serve(x.listener) }()
	var err error
	select {
	case err = <-served: // the server has failed
	case <-stop:
		cut := time.AfterFunc(x.patience/2, x.grpc.Stop)
		defer cut.Stop()
		running.Go(x.grpc.GracefulStop)
	}
	close(stopStreams)
	running.Wait()
	return err
}
