// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"net/netip"
	"strings"
)

// Call is a request, or a connection without a known request, as a server or a gateway sees it.
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
	// Certificate is the certificate of the peer, nil if it has presented none.
	Certificate *Certificate
	// Claims are the claims of a verified token or, where a filter verifies tokens, of the token
	// that it is to verify, nil without a token. Values are strings, numbers, booleans, lists and
	// objects, as in encoding/json.
	Claims map[string]any
	// Metadata is the dynamic metadata of other filters: strings or lists of them, by filter and
	// key.
	Metadata map[string]map[string]any
}

// Certificate has the names that a certificate is for.
type Certificate struct {
	URIs, DNSNames []string
	Subject        string
}

// names returns the possible identities of a certificate.
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

// Answer is the response of an external authorization service.
type Answer int

const (
	// Admits lets a call in.
	Admits Answer = iota
	// Refuses does not.
	Refuses
	// Fails is that there is no answer.
	Fails
)
