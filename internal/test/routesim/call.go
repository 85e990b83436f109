// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"net/netip"
	"strings"
)

// Call is a request, or a connection of which no request is known, as a server or a gateway
// sees it.
type Call struct {
	// Request is nil for a connection.
	*Request
	// From is the address that the connection came from, and Client that of the client, as
	// proxies in between have said.
	From, Client netip.Addr
	// To is the address of the connection at who serves it.
	To netip.AddrPort
	// ServerName is that of the TLS handshake.
	ServerName string
	// Certificate is that of the other side; nil: it has shown none.
	Certificate *Certificate
	// Claims are those of a token that was found good, or, where a filter verifies tokens, of one that it is to verify; nil: there is
	// none. Values are texts, numbers, booleans, lists and objects, as of encoding/json.
	Claims map[string]any
	// Metadata is what other filters have found out: texts or lists of them, by filter and key.
	Metadata map[string]map[string]any
}

// Certificate has the names that a certificate is for.
type Certificate struct {
	URIs, DNSNames []string
	Subject        string
}

// names returns what an identity can be.
func (c *Certificate) names() []string {
	if c == nil {
		return nil
	}
	return append(append(append([]string(nil), c.URIs...), c.DNSNames...), c.Subject)
}

// header returns a header; a connection has none.
func (c Call) header(name string) (value string, ok bool) {
	if c.Request == nil {
		return "", false
	}
	if strings.EqualFold(name, "host") {
		name = ":authority"
	}
	return c.Request.header(name)
}

// path returns the path of a request.
func (c Call) path() string {
	if c.Request == nil {
		return ""
	}
	path, _, _ := strings.Cut(c.Path, "?")
	path, _, _ = strings.Cut(path, "#")
	return path
}

// Answer is what a service says that is asked about calls.
type Answer int

const (
	// Admits lets a call in.
	Admits Answer = iota
	// Refuses does not.
	Refuses
	// Fails is that there is no answer.
	Fails
)
