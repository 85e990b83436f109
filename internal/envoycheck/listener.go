// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"fmt"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
)

const (
	routerFilter = "envoy.filters.http.router"
	tlsInspector = "envoy.filters.listener.tls_inspector"
)

func (r *report) listener(l *listenerv3.Listener) {
	if api := l.GetApiListener().GetApiListener(); api != nil {
		manager, ok := unpackTo(api, &hcm.HttpConnectionManager{})
		if !ok {
			r.fail("an API listener of type %s", api.GetTypeUrl())
			return
		}
		r.manager(manager)
		return
	}
	if r.grpc {
		r.forServer(l)
	}
	r.bind(l.GetAddress())
	if len(l.GetFilterChains()) == 0 && l.GetDefaultFilterChain() == nil {
		r.fail("no filter chain")
	}
	inspects := false
	for _, f := range l.GetListenerFilters() {
		inspects = inspects || f.GetName() == tlsInspector
	}
	matches := make(map[string]int)
	for i, chain := range l.GetFilterChains() {
		// nil and an empty match are the same
		match := &listenerv3.FilterChainMatch{}
		if chain.GetFilterChainMatch() != nil {
			match = chain.GetFilterChainMatch()
		}
		r.chainMatch(i, match, inspects)
		for _, key := range keysOf(match) {
			if other, taken := matches[key]; taken {
				r.fail("filter chains %d and %d have one match, %s", other, i, key)
			}
			matches[key] = i
		}
		r.chain(i, chain)
	}
}

// forServer checks the additional requirements of gRPC servers for a listener.
func (r *report) forServer(l *listenerv3.Listener) {
	if l.GetAddress().GetSocketAddress() == nil {
		r.fail("neither an API listener nor an address for gRPC")
	}
	if len(l.GetListenerFilters()) > 0 || l.GetUseOriginalDst().GetValue() {
		r.fail("listener filters for gRPC")
	}
	for i, chain := range l.GetFilterChains() {
		if len(chain.GetFilters()) != 1 || !chain.GetFilters()[0].GetTypedConfig().MessageIs(&hcm.HttpConnectionManager{}) {
			r.fail("filter chain %d: no HTTP connection manager alone for gRPC", i)
		}
		s := chain.GetTransportSocket()
		if s == nil {
			continue
		}
		context, ok := unpackTo(s.GetTypedConfig(), &tlsv3.DownstreamTlsContext{})
		if !ok || s.GetName() != tlsName {
			r.fail("filter chain %d: transport socket %s for gRPC", i, s.GetName())
			continue
		}
		r.providers(context.GetCommonTlsContext())
	}
}

// bind checks the address of a listener.
func (r *report) bind(a *core.Address) {
	switch path := a.GetPipe().GetPath(); {
	case a == nil:
		r.fail("no address")
	case len(path) > maxUnixPath:
		r.fail("a unix socket of %d bytes", len(path))
	case a.GetSocketAddress() != nil:
		if err := ipaddr.CheckBind(a.GetSocketAddress().GetAddress()); err != nil {
			r.fail("address %q: %w", a.GetSocketAddress().GetAddress(), err)
		}
	}
}

// keysOf returns the match once for each combination of server name, application protocol and
// address range. Two chains must not share any of them.
func keysOf(m *listenerv3.FilterChainMatch) []string {
	one := proto.CloneOf(m)
	if one != nil {
		one.ServerNames, one.ApplicationProtocols, one.PrefixRanges, one.SourcePrefixRanges = nil, nil, nil, nil
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(one)
	if err != nil {
		text = []byte(err.Error())
	}
	out := []string{string(text)}
	for _, list := range [][]string{
		m.GetServerNames(), m.GetApplicationProtocols(), rangesOf(m.GetPrefixRanges()), rangesOf(m.GetSourcePrefixRanges()),
	} {
		var longer []string
		for _, key := range out {
			for _, value := range orEmpty(list) {
				longer = append(longer, value+" "+key)
			}
		}
		out = longer
	}
	return out
}

func rangesOf(list []*core.CidrRange) []string {
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue()))
	}
	return out
}

func orEmpty(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

func (r *report) chainMatch(i int, m *listenerv3.FilterChainMatch, inspects bool) {
	if len(m.GetServerNames()) > 0 && !inspects {
		r.fail("filter chain %d matches server names, but nothing reads them", i)
	}
	for _, n := range m.GetServerNames() {
		if rest := strings.TrimPrefix(n, "*."); rest == "" || strings.Contains(rest, "*") {
			r.fail("filter chain %d: server name %q", i, n)
		}
	}
}

// chain checks that the last filter, and only the last one, terminates the connection.
func (r *report) chain(i int, c *listenerv3.FilterChain) {
	if len(c.GetFilters()) == 0 {
		r.fail("filter chain %d without filters", i)
	}
	for j, f := range c.GetFilters() {
		manager, http := unpackTo(f.GetTypedConfig(), &hcm.HttpConnectionManager{})
		terminal := http || strings.HasSuffix(f.GetTypedConfig().GetTypeUrl(), "TcpProxy")
		if terminal != (j == len(c.GetFilters())-1) {
			r.fail("filter chain %d: filter %d, %s, ends it: %t", i, j, f.GetName(), terminal)
		}
		if http {
			r.manager(manager)
		}
	}
	if s := c.GetTransportSocket(); s != nil {
		r.downstream(i, s)
	}
}

func (r *report) downstream(i int, s *core.TransportSocket) {
	context, ok := unpackTo(s.GetTypedConfig(), &tlsv3.DownstreamTlsContext{})
	if !ok {
		return
	}
	common := context.GetCommonTlsContext()
	if len(common.GetTlsCertificates())+len(common.GetTlsCertificateSdsSecretConfigs()) == 0 && common.GetTlsCertificateProviderInstance() == nil {
		r.fail("filter chain %d: TLS without a certificate", i)
	}
	if context.GetRequireClientCertificate().GetValue() && common.GetValidationContextType() == nil {
		r.fail("filter chain %d: client certificates that nothing verifies", i)
	}
	r.hashes(common)
}

// manager checks an HTTP connection manager: its last filter, and only that, must be the router.
func (r *report) manager(m *hcm.HttpConnectionManager) {
	if m.GetRouteSpecifier() == nil {
		r.fail("a connection manager without routes")
	}
	if config := m.GetRouteConfig(); config != nil {
		r.routes(config)
	}
	last := len(m.GetHttpFilters()) - 1
	if last < 0 {
		r.fail("a connection manager without filters")
	}
	names := make(map[string]bool)
	for i, f := range m.GetHttpFilters() {
		if (f.GetName() == routerFilter) != (i == last) {
			r.fail("HTTP filter %d of %d is %s", i+1, last+1, f.GetName())
		}
		if r.grpc && names[f.GetName()] { // Envoys accept duplicates
			r.fail("HTTP filter %s twice", f.GetName())
		}
		names[f.GetName()] = true
	}
	if r.grpc && (m.GetXffNumTrustedHops() != 0 || len(m.GetOriginalIpDetectionExtensions()) > 0) {
		r.fail("gRPC clients refuse trusted hops")
	}
}
