// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Edge predicts the handling of calls by a gateway, by its listeners and route configurations, as Envoy
// is documented to read them. It is for one goroutine.
type Edge struct {
	Listeners []*listenerv3.Listener
	Routes    map[string]*routev3.RouteConfiguration
	// Signatures may be nil, see Gate.
	Signatures *Signatures

	gates map[*listenerv3.FilterChain]*edgeChain
}

// edgeChain is a filter chain with its filters decoded. Either manager or forwarder is set.
type edgeChain struct {
	gate      *Gate
	socket    *tls.DownstreamTlsContext // nil: plain text
	manager   *hcm.HttpConnectionManager
	forwarder *tcpproxy.TcpProxy
	asked     []string // by the call that is decided now
}

// Handling is the handling of a call.
type Handling struct {
	// Closed: the connection ends without a response.
	Closed bool
	// Refused is the filter that refuses the call, or "the path". A closed connection has it, too.
	Refused string
	// Asked are the clusters of the external authorization services that are asked. All admit.
	Asked []string
	// Connection: only Targets of the outcome are set.
	Connection bool
	// Passed and Query are the headers and the query of a request after the filters.
	Passed map[string]string
	Query  string
	// Outcome is the outcome of a call that is not refused.
	Outcome
}

// Handle predicts the handling of a call. Encrypted says that its connection begins with a TLS
// handshake. Content that is not known here is an error.
func (e *Edge) Handle(c Call, encrypted bool) (Handling, error) {
	chain := e.Chain(c)
	if chain == nil {
		return Handling{Closed: true, Refused: "no filter chain"}, nil
	}
	x, err := e.read(chain)
	if err != nil {
		return Handling{}, err
	}
	if x.socket != nil && (!encrypted || x.socket.GetRequireClientCertificate().GetValue() && c.Certificate == nil) {
		return Handling{Closed: true, Refused: "the handshake"}, nil
	}
	if x.socket.GetCommonTlsContext().GetValidationContextType() == nil {
		c.Certificate = nil // nobody asks for one
	}
	if x.manager == nil {
		c.Request = nil
	}
	return e.through(x, c, encrypted)
}

// through predicts the handling of a call in a filter chain.
func (e *Edge) through(x *edgeChain, c Call, encrypted bool) (Handling, error) {
	if c.Request != nil && x.manager.GetStripTrailingHostDot() {
		own := *c.Request
		name, port := own.split()
		own.Authority = strings.TrimSuffix(name, ".") + port
		c.Request = &own
	}
	x.asked = nil
	decision, err := x.gate.Decide(c)
	out := Handling{Asked: x.asked}
	if err != nil || !decision.Admitted {
		out.Refused, out.Closed = decision.By, c.Request == nil || strings.HasPrefix(decision.By, "envoy.filters.network.")
		return out, err
	}
	if c.Request == nil {
		out.Connection, out.Targets = true, map[string]uint32{}
		if to := x.forwarder.GetCluster(); to != "" {
			out.Targets[to] = 1
		}
		for _, w := range x.forwarder.GetWeightedClusters().GetClusters() {
			out.Targets[w.GetName()] += w.GetWeight()
		}
		return out, nil
	}
	r := *c.Request
	out.Passed = decision.Headers
	_, out.Query, _ = strings.Cut(decision.Path, "?")
	r.Query = maps.Clone(r.Query)
	maps.DeleteFunc(r.Query, func(name, _ string) bool { return !strings.Contains("&"+out.Query, "&"+name+"=") })
	r.Headers, r.Claims = decision.Headers, FlatClaims("", decision.Claims, map[string][]string{})
	r.Path, _ = x.gate.paths.Of(r.Path)
	r.Path, _, _ = strings.Cut(r.Path, "?")
	r.Path, _, _ = strings.Cut(r.Path, "#")
	r.TLS = encrypted
	if x.manager.GetXffNumTrustedHops() > 0 && r.Headers["x-forwarded-proto"] != "" {
		r.TLS = r.Headers["x-forwarded-proto"] == "https"
	}
	out.Outcome = Envoy(e.routesOf(x.manager), r)
	return out, nil
}

func (e *Edge) routesOf(m *hcm.HttpConnectionManager) *routev3.RouteConfiguration {
	if m.GetRouteConfig() != nil {
		return m.GetRouteConfig()
	}
	return e.Routes[m.GetRds().GetRouteConfigName()]
}

// ConfigOf returns the routes of a filter chain, which may be missing, and whether it serves HTTP.
func (e *Edge) ConfigOf(chain *listenerv3.FilterChain) (config *routev3.RouteConfiguration, http bool) {
	x, err := e.read(chain)
	if err != nil || x.manager == nil {
		return nil, false
	}
	return e.routesOf(x.manager), true
}

// Encrypted reports whether a filter chain terminates TLS.
func Encrypted(chain *listenerv3.FilterChain) bool { return chain.GetTransportSocket() != nil }

// API returns the routes of the listener of a gRPC client, or nil if it is none.
func (e *Edge) API(l *listenerv3.Listener) *routev3.RouteConfiguration {
	m := &hcm.HttpConnectionManager{}
	if l.GetApiListener().GetApiListener().UnmarshalTo(m) != nil {
		return nil
	}
	return e.routesOf(m)
}

// read decodes a filter chain.
func (e *Edge) read(chain *listenerv3.FilterChain) (*edgeChain, error) {
	if chain == nil {
		return nil, errors.New("no filter chain")
	}
	if x := e.gates[chain]; x != nil {
		return x, nil
	}
	gate, err := NewGate(chain)
	if err != nil {
		return nil, err
	}
	x := &edgeChain{gate: gate}
	gate.Signatures = e.Signatures
	gate.Ask = func(cluster string, _ Call) Answer {
		x.asked = append(x.asked, cluster)
		return Admits
	}
	if socket := chain.GetTransportSocket(); socket != nil {
		x.socket = &tls.DownstreamTlsContext{}
		if err := socket.GetTypedConfig().UnmarshalTo(x.socket); err != nil {
			return nil, err
		}
	}
	for _, f := range chain.GetFilters() {
		config, err := f.GetTypedConfig().UnmarshalNew()
		if err != nil {
			return nil, err
		}
		switch m := config.(type) {
		case *hcm.HttpConnectionManager:
			x.manager = m
		case *tcpproxy.TcpProxy:
			x.forwarder = m
		}
	}
	if (x.manager == nil) == (x.forwarder == nil) {
		return nil, fmt.Errorf("the filter chain %v is not known here", chain)
	}
	if e.gates == nil {
		e.gates = make(map[*listenerv3.FilterChain]*edgeChain)
	}
	e.gates[chain] = x
	return x, nil
}

// Chain returns the filter chain of a call, or nil. Of the chains whose conditions it meets, those
// stay that are the most specific by destination address, then by server name, then by application
// protocol, then by source address. A listener on the address of the call precedes one on all
// addresses.
func (e *Edge) Chain(c Call) *listenerv3.FilterChain {
	var at *listenerv3.Listener
	for _, l := range e.Listeners {
		s := l.GetAddress().GetSocketAddress()
		bound, err := netip.ParseAddr(s.GetAddress())
		if err != nil || s.GetPortValue() != uint32(c.To.Port()) || bound != c.To.Addr() && !bound.IsUnspecified() {
			continue
		}
		if at == nil || !bound.IsUnspecified() {
			at = l
		}
	}
	serverName := ""
	if slices.ContainsFunc(at.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool {
		return strings.HasSuffix(f.GetName(), "tls_inspector")
	}) {
		serverName = strings.ToLower(c.ServerName)
	}
	left := at.GetFilterChains()
	for _, specificity := range []func(*listenerv3.FilterChainMatch) int{
		func(m *listenerv3.FilterChainMatch) int { return longestRange(m.GetPrefixRanges(), c.To.Addr()) },
		func(m *listenerv3.FilterChainMatch) int { return longestName(m.GetServerNames(), serverName) },
		func(m *listenerv3.FilterChainMatch) int { return -min(1, len(m.GetApplicationProtocols())) },
		func(m *listenerv3.FilterChainMatch) int { return longestRange(m.GetSourcePrefixRanges(), c.From) },
	} {
		best := none
		for _, chain := range left {
			best = max(best, specificity(chain.GetFilterChainMatch()))
		}
		left = slices.DeleteFunc(slices.Clone(left), func(chain *listenerv3.FilterChain) bool {
			s := specificity(chain.GetFilterChainMatch())
			return s == none || s < best
		})
	}
	if len(left) == 0 {
		return nil
	}
	return left[0]
}

// none stands for the specificity of a filter chain with an unmet condition.
const none = -1000

func longestName(names []string, name string) int {
	if len(names) == 0 {
		return 0
	}
	best := none
	for _, n := range names {
		if rank := domainRank(n, name); name != "" && rank > 0 {
			best = max(best, rank)
		}
	}
	return best
}

func longestRange(ranges []*core.CidrRange, a netip.Addr) int {
	if len(ranges) == 0 {
		return -1
	}
	best := none
	for _, r := range ranges {
		if within, err := inRange(r, a); err == nil && within {
			best = max(best, int(r.GetPrefixLen().GetValue()))
		}
	}
	return best
}

// FlatClaims adds claims in the form of Request.Claims.
func FlatClaims(prefix string, claims map[string]any, out map[string][]string) map[string][]string {
	for name, value := range claims {
		switch v := value.(type) {
		case string:
			out[prefix+name] = []string{v}
		case []any:
			out[prefix+name] = []string{"", ""} // a list, however long it is
			for _, one := range v {
				if text, ok := one.(string); ok {
					out[prefix+name] = append(out[prefix+name], text)
				}
			}
		case map[string]any:
			FlatClaims(prefix+name+".", v, out)
		default:
			out[prefix+name] = nil // it is there
		}
	}
	return out
}

// RoutesOf returns the names of the route configurations that a listener refers to.
func RoutesOf(l *listenerv3.Listener) (out []string) {
	for _, chain := range l.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			m := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(m) == nil && m.GetRds() != nil {
				out = append(out, m.GetRds().GetRouteConfigName())
			}
		}
	}
	return out
}
