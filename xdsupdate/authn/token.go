// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// maxToken is the maximum length of a token, in bytes.
const maxToken = 16 << 10

// ofToken returns the identity of the token of an RPC. Its errors contain no part of the token.
func (a *Authenticator) ofToken(ctx context.Context, overTLS bool) (Identity, error) {
	values := metadata.ValueFromIncomingContext(ctx, "authorization")
	switch {
	case len(values) == 0 && a.options.Token == nil:
		return Identity{}, a.refused.refuse(CauseNoIdentity, "the client has no certificate")
	case len(values) == 0:
		return Identity{}, a.refused.refuse(CauseNoIdentity, "the client has neither a certificate nor a token (authorization: Bearer TOKEN)")
	case a.options.Token == nil:
		return Identity{}, a.refused.refuse(CauseNoIdentity, "the client has no certificate, and tokens are not accepted")
	case !overTLS:
		return Identity{}, a.refused.refuse(CauseToken, "the client's token came without TLS, and counts as known to others")
	}
	token, ok := bearer(values)
	if !ok {
		return Identity{}, a.refused.refuse(CauseToken, "the client's authorization must be one bearer token of at most %d bytes", maxToken)
	}
	return a.ask(ctx, token)
}

// bearer returns the token of an authorization header (RFC 6750).
func bearer(values []string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, len(values) == 1 && strings.EqualFold(scheme, "Bearer") &&
		consistsOf(token, maxToken, func(c byte) bool { return ' ' < c && c < 0x7f })
}

// ask calls the host's Token function.
func (a *Authenticator) ask(ctx context.Context, token string) (id Identity, err error) {
	panicked := guard.Call(func() { id, err = a.options.Token(ctx, token) })
	if panicked != nil && a.limiter.Allow("panic", "token") {
		// The value of the panic is not logged, because it may contain the token. The stack has
		// addresses only.
		_ = guard.Call(func() { a.options.Logger.Error("the Token function panicked", slog.String("stack", panicked.Stack)) })
	}
	switch {
	case panicked != nil || isTemporary(err):
		return Identity{}, a.refused.refuse(CauseTokenUnchecked, "the client's token cannot be checked now")
	case err != nil:
		return Identity{}, a.refused.refuse(CauseToken, "the client's token is not accepted")
	}
	if id.TrustDomain == "" {
		id.TrustDomain = a.options.TrustDomains[0]
	}
	if id.check() != nil {
		return Identity{}, a.refused.refuse(CauseToken, "the client's token is of nobody who can be a client")
	}
	return id, nil
}

// isTemporary reports whether an error means that the host could not verify the token.
func isTemporary(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.Internal:
		return true
	default:
		return false
	}
}
