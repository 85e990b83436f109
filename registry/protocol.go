// SPDX-License-Identifier: Apache-2.0

package registry

import "strings"

// Protocol is the application protocol of a port, in Istio's spelling.
type Protocol string

// The protocols that Istio 1.30 parses for ServiceEntry ports.
const (
	ProtocolTCP       Protocol = "TCP"
	ProtocolUDP       Protocol = "UDP"
	ProtocolGRPC      Protocol = "GRPC"
	ProtocolGRPCWeb   Protocol = "GRPC-Web"
	ProtocolHTTP      Protocol = "HTTP"
	ProtocolHTTPProxy Protocol = "HTTP_PROXY"
	ProtocolHTTP2     Protocol = "HTTP2"
	ProtocolHTTPS     Protocol = "HTTPS"
	ProtocolTLS       Protocol = "TLS"
	ProtocolMongo     Protocol = "Mongo"
	ProtocolRedis     Protocol = "Redis"
	ProtocolMySQL     Protocol = "MySQL"
	// ProtocolUnsupported is the protocol of a port without a protocol, or with an unknown one. A
	// proxy has to detect it.
	ProtocolUnsupported Protocol = "UnsupportedProtocol"
)

// ParseProtocol parses a protocol name in any letter case. An unknown or empty name is
// ProtocolUnsupported.
func ParseProtocol(s string) Protocol {
	switch strings.ToLower(s) {
	case "tcp":
		return ProtocolTCP
	case "udp":
		return ProtocolUDP
	case "grpc":
		return ProtocolGRPC
	case "grpc-web":
		return ProtocolGRPCWeb
	case "http":
		return ProtocolHTTP
	case "http_proxy":
		return ProtocolHTTPProxy
	case "http2":
		return ProtocolHTTP2
	case "https":
		return ProtocolHTTPS
	case "tls":
		return ProtocolTLS
	case "mongo":
		return ProtocolMongo
	case "redis":
		return ProtocolRedis
	case "mysql":
		return ProtocolMySQL
	default:
		return ProtocolUnsupported
	}
}

// IsHTTP reports whether the protocol is unencrypted HTTP of any version.
func (p Protocol) IsHTTP() bool {
	switch p {
	case ProtocolHTTP, ProtocolHTTP2, ProtocolHTTPProxy, ProtocolGRPC, ProtocolGRPCWeb:
		return true
	default:
		return false
	}
}

// IsHTTP2 reports whether the protocol is unencrypted HTTP/2.
func (p Protocol) IsHTTP2() bool {
	return p == ProtocolHTTP2 || p == ProtocolGRPC || p == ProtocolGRPCWeb
}

// IsTLS reports whether the application itself uses TLS.
func (p Protocol) IsTLS() bool { return p == ProtocolHTTPS || p == ProtocolTLS }
