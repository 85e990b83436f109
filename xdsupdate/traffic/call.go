// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// Call is an HTTP or gRPC request of a client, or a connection that a gateway forwards without
// parsing requests.
type Call struct {
	// Host is the authority without the port. It is also the server name of a TLS handshake, unless
	// ServerName is set.
	Host registry.Hostname
	// Port is the called port: the port of the service, or of the Gateway's server, or for an
	// inbound call the port of the workload.
	Port uint32
	// Inbound says that the client of the view receives the call as a gRPC server instead of making
	// it. Calls to a gateway are always inbound.
	Inbound bool
	// Method is in upper case. Its default is GET, or POST for an inbound call. Scheme is "http" or
	// "https", by default "http".
	Method, Scheme string
	// Path begins with "/" and may have a query. The default is "/". It is the path as the client
	// sends it: the gateway's path normalization (pathNormalization of the mesh configuration) is
	// applied before policies and routes are evaluated.
	Path string
	// Headers are keyed by name in lower case. The header "host" is the authority with its port.
	// Without it, the authority is Host.
	Headers map[string]string

	// The remaining fields are inputs of policies.

	// Principal is the identity in the caller's certificate,
	// "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT", with or without the scheme. It is empty if the
	// caller has no certificate. Policies see it only where mutual TLS is accepted. There is one
	// principal, because certificates of workloads have exactly one (SPIFFE's X.509-SVIDs). For a
	// certificate with several identities, explain a call for each: a policy matches an identity if
	// one of them matches, but an exclusion applies to all of them together.
	Principal string
	// ServerName is the server name of the TLS handshake. The default is Host.
	ServerName string
	// Claims are the claims of the request's token, decoded as by encoding/json. The token is
	// assumed to be signed by a key of its issuer, and to be where the rules for its issuer look
	// for it. Nil means that the request has no token.
	Claims map[string]any
	// InvalidToken says that the request has a forged or malformed token, which no rule accepts.
	InvalidToken bool
	// Source is the peer address of the connection. Remote is the original client as trusted
	// proxies report it, by default Source. Destination is the local address of the connection, by
	// default the server's address for an inbound call. A zero address is unknown and in no range.
	Source, Remote, Destination netip.Addr
}

// complete returns the call with the defaults of its empty fields.
func (c Call) complete() Call {
	method := http.MethodGet
	if c.Inbound {
		method = http.MethodPost
	}
	c.Path, c.Method, c.Scheme = cmp.Or(c.Path, "/"), cmp.Or(c.Method, method), cmp.Or(c.Scheme, "http")
	c.ServerName = cmp.Or(c.ServerName, string(hostname.Lower(c.Host)))
	if c.Principal != "" && !strings.Contains(c.Principal, "://") {
		c.Principal = "spiffe://" + c.Principal
	}
	if !c.Remote.IsValid() {
		c.Remote = c.Source
	}
	return c
}
