// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/http"
	"net/netip"
	"strings"
)

// Protocol is the protocol of a Request.
type Protocol uint8

const (
	// HTTP is a request: HTTP/1.1, HTTP/2 or gRPC.
	HTTP Protocol = iota
	// TCP is a connection whose bytes are forwarded unread, TLS that is passed through included. It
	// has no method, authority, path or headers.
	TCP
)

// Request is a request as the proxy receives it, or a connection. Route only reads it.
type Request struct {
	// Protocol is the protocol of the client. A filter chain without HTTP forwards requests, too, as
	// bytes of a connection.
	Protocol Protocol
	// Port is the port that the proxy listens on. For a client workload it is the port that its
	// application calls.
	Port uint32
	// TLS says that the connection begins with a TLS handshake, with the server name ServerName,
	// which may be empty. Server names are compared in lower case.
	TLS        bool
	ServerName string
	// Method is in upper case, and empty means GET. Scheme is "http" or "https"; empty means by
	// TLS.
	Method, Scheme string
	// Authority is the Host header or :authority, with its port if the client sends one.
	Authority string
	// Path is the request target as the client sends it, escapes and query included. Empty means
	// "/".
	Path string
	// Headers are keyed in the canonical form of net/http. They may be nil.
	Headers http.Header
	// Principal is the identity in the client's verified certificate,
	// "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT", and empty without one.
	Principal string
	// Certificate says that the client has presented a verified certificate, even if it has no
	// Principal.
	Certificate bool
	// Source is the peer address of the connection, and Remote the original client as trusted
	// proxies report it, by default Source. Destination is the local address of the connection. A
	// zero address is unknown, and in no range.
	Source, Remote, Destination netip.Addr
	// Claims are the claims of a token whose signature the caller has verified with the keys of the
	// issuer, in the types of encoding/json. Nil means that the caller has verified none: a request
	// with a token where RequestAuthentications look for one is refused then.
	Claims map[string]any
	// InvalidToken says that the request has a token that no key of its issuer has signed.
	InvalidToken bool
	// Random chooses among weighted destinations, like the random number that an Envoy draws for a
	// request. Equal numbers choose equally.
	Random uint64
}

// FromHTTP returns the request that a server of net/http has received on a port. Principal and
// Certificate are those of a client certificate that crypto/tls has verified. The addresses and the
// random number are the caller's to add. The headers are shared.
func FromHTTP(r *http.Request, port uint32) Request {
	out := Request{Port: port, Method: r.Method, Authority: r.Host, Path: target(r), Headers: r.Header}
	if r.TLS != nil {
		out.TLS, out.ServerName = true, r.TLS.ServerName
		if out.Certificate = len(r.TLS.VerifiedChains) > 0; out.Certificate && len(r.TLS.PeerCertificates[0].URIs) > 0 {
			out.Principal = r.TLS.PeerCertificates[0].URIs[0].String()
		}
	}
	return out
}

// target returns the request target without the scheme and authority of an absolute form.
func target(r *http.Request) string {
	t := r.RequestURI
	if t == "" {
		return r.URL.RequestURI()
	}
	if _, rest, absolute := strings.Cut(t, "://"); absolute && t[0] != '/' {
		i := strings.IndexAny(rest, "/?")
		switch {
		case i < 0:
			return "/"
		case rest[i] == '?':
			return "/" + rest[i:]
		default:
			return rest[i:]
		}
	}
	return t
}
