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

// protocol is the meaning of a port's protocol name. The names are those of Istio 1.30, in any
// letter case.
type protocol int

const (
	// protocolUnset: the proxy detects the protocol.
	protocolUnset protocol = iota
	protocolUnknown
	protocolTCP
	protocolUDP
	protocolGRPC
	protocolGRPCWeb
	protocolHTTP
	protocolHTTPProxy
	protocolHTTP2
	protocolHTTPS
	protocolTLS
	protocolMongo
	protocolRedis
	protocolMySQL
)

const protocolNames = "TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL"

func parseProtocol(name string) protocol {
	// ToUpper allocates nothing for names that are in upper case already.
	switch strings.ToUpper(name) {
	case "":
		return protocolUnset
	case "TCP":
		return protocolTCP
	case "UDP":
		return protocolUDP
	case "GRPC":
		return protocolGRPC
	case "GRPC-WEB":
		return protocolGRPCWeb
	case "HTTP":
		return protocolHTTP
	case "HTTP_PROXY":
		return protocolHTTPProxy
	case "HTTP2":
		return protocolHTTP2
	case "HTTPS":
		return protocolHTTPS
	case "TLS":
		return protocolTLS
	case "MONGO":
		return protocolMongo
	case "REDIS":
		return protocolRedis
	case "MYSQL":
		return protocolMySQL
	default:
		return protocolUnknown
	}
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
