// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

const (
	clusterType  = envoy.ClusterType
	endpointType = envoy.LoadAssignmentType
)

// verified returns the context of a call of a client whose certificate TLS has verified.
func verified(t *testing.T, leaf *x509.Certificate) context.Context {
	t.Helper()
	return overTLS(t, tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}},
	})
}

// presented returns that of one whose certificate it has not.
func presented(t *testing.T, leaf *x509.Certificate) context.Context {
	t.Helper()
	return overTLS(t, tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}})
}

func overTLS(t *testing.T, state tls.ConnectionState) context.Context {
	t.Helper()
	return peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
}

// authorized returns a context with values of the header authorization.
func authorized(ctx context.Context, values ...string) context.Context {
	return metadata.NewIncomingContext(ctx, metadata.MD{"authorization": values})
}

// unwrapped returns the innermost error.
func unwrapped(err error) error {
	for next := err; next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// tlsState is that of a client without a certificate.
func tlsState() tls.ConnectionState { return tls.ConnectionState{HandshakeComplete: true} }

func textLogger(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
