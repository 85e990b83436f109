// SPDX-License-Identifier: Apache-2.0

package istio

import "strings"

const maxPort = 65535

// checkPortNumber refuses numbers that no port has.
func checkPortNumber(at *field, number uint32) {
	if number < 1 || number > maxPort {
		at.refuse("must be 1–65535, is %d", number)
	}
}

// checkPortNumberIfSet is checkPortNumber where 0 means unset.
func checkPortNumberIfSet(at *field, number uint32) {
	if number > maxPort {
		at.refuse("must be 0 (unset) or 1–65535, is %d", number)
	}
}

// protocol is a port's protocol in upper case. The names are those of Istio 1.30, in any letter case.
type protocol string

const (
	// protocolUnset: the proxy detects the protocol.
	protocolUnset     protocol = ""
	protocolUnknown   protocol = "?"
	protocolTCP       protocol = "TCP"
	protocolUDP       protocol = "UDP"
	protocolGRPC      protocol = "GRPC"
	protocolGRPCWeb   protocol = "GRPC-WEB"
	protocolHTTP      protocol = "HTTP"
	protocolHTTPProxy protocol = "HTTP_PROXY"
	protocolHTTP2     protocol = "HTTP2"
	protocolHTTPS     protocol = "HTTPS"
	protocolTLS       protocol = "TLS"
	protocolMongo     protocol = "MONGO"
	protocolRedis     protocol = "REDIS"
	protocolMySQL     protocol = "MYSQL"
)

const protocolNames = "TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL"

func parseProtocol(name string) protocol {
	// ToUpper allocates nothing for names that are in upper case already.
	p := protocol(strings.ToUpper(name))
	if p == protocolUnset || p == protocolUDP || p.isHTTP() || p.isTCP() {
		return p
	}
	return protocolUnknown
}

// isHTTP reports whether the port carries plain HTTP of any version.
func (p protocol) isHTTP() bool {
	switch p {
	case protocolHTTP, protocolHTTP2, protocolHTTPProxy, protocolGRPC, protocolGRPCWeb:
		return true
	default:
		return false
	}
}

// isTLS reports whether the port carries TLS from the client on.
func (p protocol) isTLS() bool { return p == protocolHTTPS || p == protocolTLS }

// isTCP reports whether the port is routed by connection rather than by request.
func (p protocol) isTCP() bool {
	switch p {
	case protocolTCP, protocolHTTPS, protocolTLS, protocolMongo, protocolRedis, protocolMySQL:
		return true
	default:
		return false
	}
}

// checkProtocol refuses unknown names; the empty one is fine.
func checkProtocol(at *field, name string) {
	if parseProtocol(name) == protocolUnknown {
		at.refuse("must be empty or one of %s, is %q", protocolNames, name)
	}
}
