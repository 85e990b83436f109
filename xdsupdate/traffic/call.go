// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// Call is an HTTP or gRPC request of a client, or a connection that a gateway passes on without knowing of requests.
type Call struct {
	// Host is the authority without the port. It is also the name that a client asks for in a TLS handshake, unless ServerName is
	// another.
	Host registry.Hostname
	// Port is the one that the client calls: that of the service, or of the server
	// of a Gateway; of an inbound call that of the workload.
	Port uint32
	// Inbound: the call is one that the client of the view gets as a gRPC server, and not one that it makes. What comes to a
	// gateway is inbound anyway.
	Inbound bool
	// Method is upper case, Scheme "http" or "https"; empty: GET, of an inbound call POST, and http.
	Method, Scheme string
	// Path begins with "/" and may have a query; empty: "/". It is what the client asks for: a gateway normalizes it before policies
	// and routes see it (pathNormalization of the mesh configuration), and so is done here.
	Path string
	// Headers are by name in lower case. The header "host" is the authority with its port; without it the authority is Host.
	Headers map[string]string

	// The rest is what policies look at.

	// Principal is the identity in the certificate of the caller, "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT", also without the
	// scheme; empty: the caller has no certificate. It is known where mutual TLS is taken. It is one, as certificates of workloads have
	// exactly one (SPIFFE's X.509-SVIDs). A certificate with several has all of them: an identity is matched if one of them does, so that
	// each can be explained by itself, but what a rule excludes is excluded for all.
	Principal string
	// ServerName is that of the TLS handshake; empty: Host.
	ServerName string
	// Claims are those of the token of the request, values as of encoding/json, and it is signed by a key of its issuer;
	// nil: there is no token. It is where the rules for its issuer look for it.
	Claims map[string]any
	// InvalidToken: the request has a token that nobody takes, because it is forged or malformed.
	InvalidToken bool
	// Source is where the connection comes from, Remote who has sent the request, as proxies in between say, and Destination where
	// the connection arrives. What is zero is not known, and in no range; but Remote is Source then, and the Destination of an inbound
	// call is that of the server, and the Remote its Source.
	Source, Remote, Destination netip.Addr
}

// complete returns the call with what stands for empty fields.
func (c Call) complete() Call {
	method := http.MethodGet
	if c.Inbound {
		method = http.MethodPost
	}
	c.Path, c.Method, c.Scheme = cmp.Or(c.Path, "/"), cmp.Or(c.Method, method), cmp.Or(c.Scheme, "http")
	c.ServerName = cmp.Or(c.ServerName, string(lower(c.Host)))
	if c.Principal != "" && !strings.Contains(c.Principal, "://") {
		c.Principal = "spiffe://" + c.Principal
	}
	if !c.Remote.IsValid() {
		c.Remote = c.Source
	}
	return c
}
