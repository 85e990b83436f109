// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
)

// client calls a server without xDS, so that nothing but the server decides.
type client struct {
	t    *testing.T
	conn *grpc.ClientConn
	// waits: calls wait for a connection.
	waits bool
}

// plain is a client that speaks plain text.
func plain(t *testing.T, address string) *client {
	t.Helper()
	return dial(t, address, insecure.NewCredentials())
}

// of is a client with the certificate of an identity.
func of(t *testing.T, address string, issuer *authority.Authority, identity string) *client {
	t.Helper()
	return dial(t, address, credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{issuer.Pair(identity)}, InsecureSkipVerify: true, //nolint:gosec // the server is what is tried
	}))
}

func dial(t *testing.T, address string, creds credentials.TransportCredentials, more ...grpc.DialOption) *client {
	t.Helper()
	backoff := grpc.ConnectParams{MinConnectTimeout: 5 * time.Second}
	backoff.Backoff.BaseDelay, backoff.Backoff.MaxDelay, backoff.Backoff.Multiplier = time.Millisecond, time.Millisecond, 1
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithConnectParams(backoff), grpc.WithAuthority("quotes.shop:9000")}, more...)
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn}
}

// The outcomes of calls.
const (
	allowed = codes.OK
	denied  = codes.PermissionDenied
	closed  = codes.Unavailable
)

// call calls a method with headers and returns the outcome.
func (c *client) call(method string, headers ...string) codes.Code {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(c.t.Context(), headers...), 5*time.Second)
	defer cancel()
	return status.Code(c.conn.Invoke(ctx, "/quotes.Quotes/"+method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(c.waits)))
}

// becomes waits until a call has an outcome.
func (c *client) becomes(want codes.Code, method string, headers ...string) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := c.call(method, headers...)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s %v: %v, want %v", method, headers, got, want)
		}
	}
}
