// SPDX-License-Identifier: Apache-2.0

package envoy

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

// istioALPN are the protocols by which Istio's sidecars ask for mutual TLS.
func istioALPN() []string {
	return []string{"istio", "istio-h2", "istio-http/1.0", "istio-http/1.1", peerExchange}
}

// ServerNames returns the names by which a filter chain is chosen for hosts: in
// lower case, sorted, each once. They are empty, which stands for every
// connection, if "*" is among the hosts. It is not ok if hosts has nothing that
// Envoy can match: it knows full names and "*.SUFFIX", and refuses a whole
// listener over other wildcards.
func ServerNames(hosts []string) (names []string, ok bool) {
	for _, h := range hosts {
		h = strings.ToLower(h)
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

// handshakeTimeout is how long a client has for its part of a TLS handshake, as in Istio 1.30: Envoy's default is no limit.
const handshakeTimeout = 15 * time.Second

// FilterChain returns the filter chain for connections to the names of ServerNames.
// With a TLS context it terminates TLS; nil: it does not. A connection passes the filters before, in
// their order, and then the last one, which handles it.
func FilterChain(
	serverNames []string, tls *tlsv3.DownstreamTlsContext, last *listenerv3.Filter, before ...*listenerv3.Filter,
) *listenerv3.FilterChain {
	chain := &listenerv3.FilterChain{Filters: append(slices.Clone(before), last)}
	if len(serverNames) > 0 {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: serverNames}
	}
	if tls != nil {
		chain.TransportSocket = &core.TransportSocket{
			Name:       "envoy.transport_sockets.tls",
			ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: packed(tls)},
		}
		chain.TransportSocketConnectTimeout = durationpb.New(handshakeTimeout)
	}
	return chain
}

// MatchRanges returns a filter chain for connections to some names, to some ranges of
// addresses, from some, and else like another. Ranges that are not valid stand for all
// addresses, and the name "" for all names.
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

// AutoPassthroughChain returns the filter chain that passes mutual TLS of Istio's
// sidecars on to the cluster that the server name says: both have the name given. A connection passes
// the filters before first.
func AutoPassthroughChain(name string, before ...*listenerv3.Filter) *listenerv3.FilterChain {
	chain := FilterChain([]string{strings.ToLower(name)}, nil, TCPProxy{Cluster: name}.Filter(), before...)
	chain.FilterChainMatch.ApplicationProtocols = istioALPN()
	return chain
}
