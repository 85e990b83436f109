// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// inboundPrefix is the prefix of the names of gRPC servers' listeners in Istio's bootstraps
// (server_listener_resource_name_template).
const inboundPrefix = "xds.istio.io/grpc/lds/inbound/"

// InboundName returns the name of the listener that a gRPC server at an address subscribes to.
func InboundName(at netip.AddrPort) string { return inboundPrefix + at.String() }

// ParseInboundName returns the address of a gRPC server that subscribes to the listener
// "xds.istio.io/grpc/lds/inbound/ADDRESS:PORT". The result inbound reports whether the name has the
// prefix of servers, ok whether an IP address and a port follow.
func ParseInboundName(name string) (at netip.AddrPort, inbound, ok bool) {
	rest, inbound := strings.CutPrefix(name, inboundPrefix)
	if !inbound {
		return netip.AddrPort{}, false, false
	}
	at, err := netip.ParseAddrPort(rest)
	return at, true, err == nil && at.Port() != 0 && at.Addr().Zone() == ""
}

// GRPCServer configures how a gRPC server that speaks xDS handles connections to a port.
type GRPCServer struct {
	// MutualTLS requires mutual TLS with the certificates of the server's bootstrap (certificate
	// provider "default"). Clients must have a certificate of the same authorities. Without
	// MutualTLS connections are plain text.
	MutualTLS bool
	// Filters are HTTP filters that calls pass in order, such as filters for authorization. Nil
	// means none.
	Filters []*hcm.HttpFilter
}

// Listener returns the listener, with the given name, of a server that listens at an address. It
// has one filter chain for all connections. A server that rejects the listener does not start, or
// keeps its last accepted one.
func (s GRPCServer) Listener(name string, at netip.AddrPort) *listenerv3.Listener {
	manager := &hcm.HttpConnectionManager{
		StatPrefix: s.statPrefix(),
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "inbound",
			VirtualHosts: []*routev3.VirtualHost{{Name: "inbound", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  everyPath(),
				Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
			}}}},
		}},
		HttpFilters: append(append([]*hcm.HttpFilter(nil), s.Filters...), HTTPFilter(routerFilter, &router.Router{})),
	}
	chain := &listenerv3.FilterChain{
		Name: "inbound", Filters: []*listenerv3.Filter{NetworkFilter("envoy.filters.network.http_connection_manager", manager)},
	}
	if s.MutualTLS {
		common := providerContext(&tls.CertificateValidationContext{})
		chain.TransportSocket = socketOf(tlsSocket, &tls.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(true)})
	}
	return &listenerv3.Listener{
		Name: name, Address: socketAddress(at.Addr().String(), uint32(at.Port())), FilterChains: []*listenerv3.FilterChain{chain},
	}
}

// statPrefix differs by transport, and thereby makes the filters differ, because of a bug in
// grpc-js. A running server of grpc-js compares the filters of a new listener before the transport
// sockets, and compares the sockets incorrectly (grpc-js-xds 1.14, filterChainsEquivalent).
// Otherwise it would not notice that mutual TLS is removed, and would crash with an exception when
// it is added.
func (s GRPCServer) statPrefix() string {
	if s.MutualTLS {
		return "inbound_mutual_tls"
	}
	return "inbound"
}
