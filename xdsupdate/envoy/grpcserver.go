// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// inboundPrefix begins the names of the listeners of gRPC servers, as bootstraps of Istio say
// (server_listener_resource_name_template).
const inboundPrefix = "xds.istio.io/grpc/lds/inbound/"

// InboundName returns the name of the listener that a gRPC server asks for that listens at an address.
func InboundName(at netip.AddrPort) string { return inboundPrefix + at.String() }

// ParseInboundName returns where a gRPC server listens that asks for a listener
// "xds.istio.io/grpc/lds/inbound/ADDRESS:PORT". Inbound: the name is for a server, whatever follows; ok:
// it says an IP address and a port.
func ParseInboundName(name string) (at netip.AddrPort, inbound, ok bool) {
	rest, inbound := strings.CutPrefix(name, inboundPrefix)
	if !inbound {
		return netip.AddrPort{}, false, false
	}
	at, err := netip.ParseAddrPort(rest)
	return at, true, err == nil && at.Port() != 0 && at.Addr().Zone() == ""
}

// GRPCServer is what a gRPC server that speaks xDS is to do with connections to a port.
type GRPCServer struct {
	// MutualTLS: connections are TLS with the certificates of the server's bootstrap
	// (certificate provider "default"), and clients must have one of the same authorities. Else they are
	// plain text.
	MutualTLS bool
	// Filters are those that calls pass, in their order, such as those of authorization; nil:
	// none.
	Filters []*hcm.HttpFilter
}

// Listener returns the listener of a server, of a name and the address at which it listens: one filter chain for all
// connections. A server that refuses the listener does not start, or keeps what it has.
func (s GRPCServer) Listener(name string, at netip.AddrPort) *listenerv3.Listener {
	manager := &hcm.HttpConnectionManager{
		StatPrefix: s.statPrefix(),
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "inbound",
			VirtualHosts: []*routev3.VirtualHost{{Name: "inbound", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
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
		Name: name,
		Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
			Address: at.Addr().String(), PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}}},
		FilterChains: []*listenerv3.FilterChain{chain},
	}
}

// statPrefix is another one for each transport, so that the filters are: a running server of grpc-js compares those of a new listener first, and
// transport sockets wrongly (grpc-js-xds 1.14, filterChainsEquivalent). It would not see that mutual TLS goes, and end by an exception when it comes.
func (s GRPCServer) statPrefix() string {
	if s.MutualTLS {
		return "inbound_mutual_tls"
	}
	return "inbound"
}
