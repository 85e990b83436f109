// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const token = "eyJhbGciOi.J9.very-secret"

// bearer holds the credentials that a client adds to its calls.
type bearer struct {
	header string
	plain  bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": b.header}, nil
}

func (b bearer) RequireTransportSecurity() bool { return !b.plain }

// tokens knows one token, of the namespace a.
func tokens(_ context.Context, given string) (authn.Identity, error) {
	if given != token {
		return authn.Identity{}, fmt.Errorf("the token %s is not known", given)
	}
	return authn.Identity{Namespace: "a", ServiceAccount: "web"}, nil
}

// withToken returns a connection of a client with a token, and certificates for names if
// there are any.
func (p *plane) withToken(header string, names ...string) *grpc.ClientConn {
	p.t.Helper()
	config := p.config()
	if len(names) > 0 {
		config = p.config(p.authority.Pair(names...))
	}
	return p.dialWith(credentials.NewTLS(config), grpc.WithPerRPCCredentials(bearer{header: header}))
}

// TestToken: a client without a certificate has the identity of its token, in its namespace alone;
// a client with a certificate has that of its certificate.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{authn: authn.Options{Token: tokens}, tls: authn.TLSOptions{CertificateOptional: true}})
		for name, c := range map[string]struct {
			conn  *grpc.ClientConn
			claim string
			want  string // the namespace of the resources that the client gets
			code  codes.Code
			text  string
		}{
			"token":                        {p.withToken("Bearer " + token), "a", "a", codes.OK, ""},
			"lower case":                   {p.withToken("bearer " + token), "a", "a", codes.OK, ""},
			"another namespace":            {p.withToken("Bearer " + token), "b", "", codes.PermissionDenied, "spiffe://example.org/ns/a/sa/web"},
			"another token":                {p.withToken("Bearer " + token + "x"), "a", "", codes.Unauthenticated, "not accepted"},
			"another scheme":               {p.withToken("Basic " + token), "a", "", codes.Unauthenticated, "bearer token"},
			"no token":                     {p.withToken("Bearer "), "a", "", codes.Unauthenticated, "bearer token"},
			"two words":                    {p.withToken("Bearer " + token + " " + token), "a", "", codes.Unauthenticated, "bearer token"},
			"a huge token":                 {p.withToken("Bearer " + strings.Repeat("a", 20<<10)), "a", "", codes.Unauthenticated, "bearer token"},
			"nothing":                      {p.dial(), "a", "", codes.Unauthenticated, "neither a certificate nor a token"},
			"a certificate of b":           {p.withToken("Bearer "+token, spiffe("b")), "b", "b", codes.OK, ""},
			"a certificate of b, claims a": {p.withToken("Bearer "+token, spiffe("b")), "a", "", codes.PermissionDenied, spiffe("b")},
			"a certificate of nobody":      {p.withToken("Bearer "+token, "web.example.com"), "a", "", codes.Unauthenticated, "URIs"},
		} {
			got, err := p.clusters(p.context(), c.conn, in(c.claim))
			said := status.Convert(err)
			if said.Code() != c.code || !strings.Contains(said.Message(), c.text) || strings.Contains(said.Message(), "secret") {
				t.Errorf("%s: %v, want %v with %q", name, err, c.code, c.text)
			}
			if c.want != "" {
				check(t, name, got, seen(c.want))
			}
		}
		if said := p.log.take(); strings.Contains(said, "secret") {
			t.Errorf("the log has the token: %s", said)
		}
	})
}

// TestTokenWithoutTLS: such a token is not even looked at.
func TestTokenWithoutTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{noTLS: true, authn: authn.Options{Token: func(context.Context, string) (authn.Identity, error) {
			t.Error("Token is called")
			return authn.Identity{}, nil
		}}})
		conn := p.dialWith(insecure.NewCredentials(), grpc.WithPerRPCCredentials(bearer{"Bearer " + token, true}))
		if got, err := p.clusters(p.context(), conn, in("a")); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "without TLS") {
			t.Errorf("%v, %v", got, err)
		}
		check(t, "refusals", p.clients.Refusals()[authn.CauseToken], uint64(1))
	})
}

// TestTokenErrors: errors and panic values of the host's function are neither sent nor logged.
func TestTokenErrors(t *testing.T) {
	ctx := authorized(overTLS(t, tlsState()), "Bearer "+token)
	for name, c := range map[string]struct {
		answer func() (authn.Identity, error)
		code   codes.Code
		cause  authn.Cause
	}{
		"error":  {func() (authn.Identity, error) { return authn.Identity{}, errors.New(token) }, codes.Unauthenticated, authn.CauseToken},
		"denied": {func() (authn.Identity, error) { return authn.Identity{}, status.Error(codes.PermissionDenied, token) }, codes.Unauthenticated, authn.CauseToken},
		"away":   {func() (authn.Identity, error) { return authn.Identity{}, status.Error(codes.Unavailable, token) }, codes.Unavailable, authn.CauseTokenUnchecked},
		"away, wrapped": {func() (authn.Identity, error) {
			return authn.Identity{}, fmt.Errorf("x: %w", status.Error(codes.Internal, token))
		}, codes.Unavailable, authn.CauseTokenUnchecked},
		"late":     {func() (authn.Identity, error) { return authn.Identity{}, context.DeadlineExceeded }, codes.Unavailable, authn.CauseTokenUnchecked},
		"panic":    {func() (authn.Identity, error) { panic(token) }, codes.Unavailable, authn.CauseTokenUnchecked},
		"nobody":   {func() (authn.Identity, error) { return authn.Identity{}, nil }, codes.Unauthenticated, authn.CauseToken},
		"no label": {func() (authn.Identity, error) { return authn.Identity{Namespace: "a.b", ServiceAccount: "web"}, nil }, codes.Unauthenticated, authn.CauseToken},
		"foreign": {func() (authn.Identity, error) {
			return authn.Identity{TrustDomain: "evil.example", Namespace: "a", ServiceAccount: "web"}, nil
		}, codes.PermissionDenied, authn.CauseTrustDomain},
	} {
		var log lockedBuffer
		clients := authn.New(authn.Options{Logger: textLogger(&log), TrustDomains: []string{"example.org"}, Token: func(_ context.Context, given string) (authn.Identity, error) {
			check(t, "token", given, token)
			return c.answer()
		}})
		_, err := clients.Identity(ctx)
		if status.Code(err) != c.code || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %v", name, err, c.code)
		}
		check(t, name, clients.Refusals()[c.cause], uint64(1))
		if said := log.take(); strings.Contains(said, "secret") || (name == "panic") != strings.Contains(said, "TestTokenErrors") {
			t.Errorf("%s: the log says %q", name, said)
		}
	}
	clients := authn.New(authn.Options{Token: tokens})
	if _, err := clients.Identity(authorized(ctx, "Bearer "+token, "Bearer "+token)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("two headers: %v", err)
	}
	if id, err := clients.Identity(ctx); err != nil || id.TrustDomain != "cluster.local" {
		t.Errorf("the default: %v, %v", id, err)
	}
	if _, err := authn.New().Identity(ctx); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "tokens are not accepted") {
		t.Errorf("without Token: %v", err)
	}
}

// TestTokenIsRevoked: ReviewProxies ends the streams of tokens that are not accepted any more.
func TestTokenIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accepted := make(chan struct{})
		p := startPlane(t, planeOptions{tls: authn.TLSOptions{CertificateOptional: true}, authn: authn.Options{
			Token: func(ctx context.Context, given string) (authn.Identity, error) {
				select {
				case <-accepted:
					return authn.Identity{}, errors.New("revoked")
				default:
					return tokens(ctx, given)
				}
			},
		}})
		c := xdstest.NewClient(p.withToken("Bearer "+token), xdstest.ClientOptions{Node: in("a")})
		defer c.Close()
		if err := errors.Join(c.Connect(p.context()), c.Subscribe(clusterType)); err != nil {
			t.Fatal(err)
		}
		p.awaitClusters(c)
		close(accepted)
		p.ReviewProxies(func(s ads.ProxyStatus) bool { return s.ID == in("a").GetId() })
		synctest.Wait()
		if status.Code(c.Err()) != codes.Unauthenticated {
			t.Errorf("the stream: %v", c.Err())
		}
	})
}

// TestForeignAuthorityWithToken: a certificate that does not hold is no way around the
// handshake, where certificates are optional too.
func TestForeignAuthorityWithToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{authn: authn.Options{Token: tokens}, tls: authn.TLSOptions{CertificateOptional: true}})
		conn := p.dialWith(credentials.NewTLS(p.config(authority.New(t).Pair(spiffe("a")))), grpc.WithPerRPCCredentials(bearer{header: "Bearer " + token}))
		if got, err := p.clusters(p.context(), conn, in("a")); status.Code(err) != codes.Unavailable {
			t.Errorf("%v, %v", got, err)
		}
	})
}
