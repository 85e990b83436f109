// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	inspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/proto"
)

// unixScheme is the prefix of a bind that is a Unix domain socket.
const unixScheme = "unix://"

// GatewayListener is a listener of a gateway.
type GatewayListener struct {
	// Bind is an IP address, or "unix://PATH" with port 0.
	Bind string
	Port uint32
	// TLS is set if some filter chain is selected by the server name of TLS.
	TLS bool
	// ProxyProtocol is set if connections begin with the header of the PROXY protocol.
	ProxyProtocol bool
}

// Name returns "BIND_PORT".
func (g GatewayListener) Name() string { return g.Bind + "_" + strconv.FormatUint(uint64(g.Port), 10) }

// Build returns the listener with filter chains. No two chains may have the same match, because
// Envoy rejects such a listener. The result is nil without chains.
func (g GatewayListener) Build(chains []*listenerv3.FilterChain) *listenerv3.Listener {
	if len(chains) == 0 {
		return nil
	}
	l := &listenerv3.Listener{
		Name: g.Name(), Address: g.address(), FilterChains: chains,
		TrafficDirection: core.TrafficDirection_OUTBOUND,
	}
	// The header of the PROXY protocol precedes everything else.
	if g.ProxyProtocol {
		l.ListenerFilters = append(l.ListenerFilters,
			listenerFilter("envoy.filters.listener.proxy_protocol", &proxyprotocol.ProxyProtocol{}))
	}
	if g.TLS {
		l.ListenerFilters = append(l.ListenerFilters,
			listenerFilter("envoy.filters.listener.tls_inspector", &inspector.TlsInspector{}))
	}
	return l
}

func (g GatewayListener) address() *core.Address {
	if path, ok := strings.CutPrefix(g.Bind, unixScheme); ok {
		return &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: path}}}
	}
	return socketAddress(g.Bind, g.Port)
}

func listenerFilter(name string, config proto.Message) *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{
		Name: name, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(config)},
	}
}
