// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// istioALPN returns the ALPN protocols that Istio's sidecars offer for mutual TLS.
func istioALPN() []string {
	return []string{"istio", "istio-h2", "istio-http/1.0", "istio-http/1.1", peerExchange}
}

// ServerNames returns the server names of a filter chain for hosts: lower case, without a dot at the
// end, which no client sends (RFC 6066), sorted, without duplicates. They are empty, which matches
// every connection, if "*" is among the hosts. The result is false if Envoy cannot match any of the
// hosts: it supports full names and "*.SUFFIX", and rejects a whole listener with other wildcards.
func ServerNames(hosts []string) (names []string, ok bool) {
	for _, h := range hosts {
		h = strings.TrimSuffix(strings.ToLower(h), ".")
		if h == "*" {
			return nil, true
		}
		if h != "" && !strings.Contains(strings.TrimPrefix(h, "*."), "*") {
			names = append(names, h)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) > 0
}

// handshakeTimeout bounds the duration of a client's TLS handshake, as in Istio 1.30. Envoy's
// default is no limit.
const handshakeTimeout = 15 * time.Second

// FilterChain returns the filter chain for connections to server names (see ServerNames). It
// terminates TLS if tls is not nil. A connection passes the filters before in order, and then the
// filter last, which handles it.
func FilterChain(
	serverNames []string, tls *tlsv3.DownstreamTlsContext, last *listenerv3.Filter, before ...*listenerv3.Filter,
) *listenerv3.FilterChain {
	chain := &listenerv3.FilterChain{Filters: append(slices.Clone(before), last)}
	if len(serverNames) > 0 {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: serverNames}
	}
	if tls != nil {
		chain.TransportSocket = socketOf(tlsSocket, tls)
		chain.TransportSocketConnectTimeout = durationpb.New(handshakeTimeout)
	}
	return chain
}

// MatchRanges returns a copy of a filter chain that matches only connections to these names and
// destination ranges, from these source ranges. An invalid range matches all addresses, and the
// name "" all names.
func MatchRanges(c *listenerv3.FilterChain, names []string, destinations, sources []netip.Prefix) *listenerv3.FilterChain {
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	m := &listenerv3.FilterChainMatch{
		ServerNames: names, ApplicationProtocols: c.GetFilterChainMatch().GetApplicationProtocols(),
		PrefixRanges: cidrRanges(destinations), SourcePrefixRanges: cidrRanges(sources),
	}
	if len(m.ServerNames)+len(m.ApplicationProtocols)+len(m.PrefixRanges)+len(m.SourcePrefixRanges) == 0 {
		m = nil
	}
	return &listenerv3.FilterChain{
		FilterChainMatch: m, Filters: c.GetFilters(),
		TransportSocket: c.GetTransportSocket(), TransportSocketConnectTimeout: c.GetTransportSocketConnectTimeout(),
	}
}

func cidrRanges(ranges []netip.Prefix) []*core.CidrRange {
	var out []*core.CidrRange
	for _, r := range ranges {
		if r.IsValid() {
			out = append(out, &core.CidrRange{AddressPrefix: r.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(r.Bits()))})
		}
	}
	return out
}

// AutoPassthroughChain returns the filter chain that forwards mutual TLS of Istio's sidecars to the
// cluster whose name is the server name.
func AutoPassthroughChain(name string) *listenerv3.FilterChain {
	chain := FilterChain([]string{strings.ToLower(name)}, nil, TCPProxy{Cluster: name}.Filter())
	chain.FilterChainMatch.ApplicationProtocols = istioALPN()
	return chain
}
