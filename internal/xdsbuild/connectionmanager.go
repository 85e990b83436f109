// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	fault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcweb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/registry"
)

// HTTPOptions are the host's options for the HTTP of a gateway. The zero value is good.
type HTTPOptions struct {
	// HTTP10 accepts HTTP/1.0 requests with a Host header. By default Envoy responds with 426.
	HTTP10 bool
	// Filters are HTTP filters that precede the filters of VirtualServices, in order, such as
	// filters for authorization. Nil means none.
	Filters []*hcm.HttpFilter
	// Internal are the addresses of clients whose x-envoy headers count. Nil means none.
	Internal []netip.Prefix
}

// GatewayConnectionManager returns the network filter of a gateway that serves HTTP with a route
// configuration. The mesh determines the path normalization, the number of trusted proxies in front
// of the gateway, the forwarding of client certificates (gatewayTopology in its defaultConfig), and
// headers (proxyHeaders: server, requestId, envoyDebugHeaders and xForwardedPort). A nil mesh has
// Istio's defaults. A GRPC-Web port translates GRPC-Web. The trailing dot of a host is removed, for
// the routes and for the upstream.
func GatewayConnectionManager(
	routeConfig string, protocol registry.Protocol, mesh *meshconfig.MeshConfig, options HTTPOptions,
) *listenerv3.Filter {
	topology := mesh.GetDefaultConfig().GetGatewayTopology()
	m := &hcm.HttpConnectionManager{
		StatPrefix: routeConfig,
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{
			ConfigSource: ADS(), RouteConfigName: routeConfig,
		}},
		HttpFilters: append(slices.Clone(options.Filters), httpFilters(protocol, mesh.GetDefaultConfig().GetProxyHeaders())...),
		// A gateway is the first proxy on the path, so the remote address is the client's and
		// X-Forwarded-For is ignored, except behind trusted proxies.
		UseRemoteAddress:         wrapperspb.Bool(true),
		XffNumTrustedHops:        topology.GetNumTrustedProxies(),
		ForwardClientCertDetails: forwardClientCert(topology.GetForwardClientCertDetails()),
		// Idle connections are closed after an hour, which is Envoy's default.
		RequestHeadersTimeout: durationpb.New(requestHeadersTimeout),
		// Streams may be idle without limit, because WebSockets and gRPC streams often are.
		StreamIdleTimeout: durationpb.New(0),
		UpgradeConfigs:    []*hcm.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		// The domains of gateways have no trailing dot.
		StripTrailingHostDot: true,
	}
	if options.HTTP10 {
		m.HttpProtocolOptions = &core.Http1ProtocolOptions{AcceptHttp_10: true}
	}
	switch m.GetForwardClientCertDetails() {
	case hcm.HttpConnectionManager_APPEND_FORWARD, hcm.HttpConnectionManager_SANITIZE_SET:
		m.SetCurrentClientCertDetails = &hcm.HttpConnectionManager_SetCurrentClientCertDetails{
			Subject: wrapperspb.Bool(true), Cert: true, Dns: true, Uri: true,
		}
	default:
	}
	if ranges := cidrRanges(options.Internal); len(ranges) > 0 {
		m.InternalAddressConfig = &hcm.HttpConnectionManager_InternalAddressConfig{CidrRanges: ranges}
	}
	setProxyHeaders(m, mesh.GetDefaultConfig().GetProxyHeaders())
	normalizePaths(m, mesh.GetPathNormalization().GetNormalization())
	return NetworkFilter("envoy.filters.network.http_connection_manager", m)
}

// requestHeadersTimeout bounds the time until a client of a gateway has sent the headers of a
// request. Envoy's default is no limit.
const requestHeadersTimeout = 15 * time.Second

// setProxyHeaders sets the headers that a gateway adds.
func setProxyHeaders(m *hcm.HttpConnectionManager, h *meshconfig.ProxyConfig_ProxyHeaders) {
	name := h.GetServer().GetValue()
	switch {
	case h.GetServer().GetDisabled().GetValue():
		m.ServerHeaderTransformation = hcm.HttpConnectionManager_PASS_THROUGH
	case !strings.ContainsFunc(name, unicode.IsControl): // Envoy rejects some, and clients reject responses with others
		m.ServerName = name
	}
	if h.GetRequestId().GetDisabled().GetValue() {
		m.GenerateRequestId = wrapperspb.Bool(false)
	}
	m.AppendXForwardedPort = h.GetXForwardedPort().GetEnabled().GetValue()
}

// httpFilters returns the filters that the routes of VirtualServices use.
func httpFilters(protocol registry.Protocol, headers *meshconfig.ProxyConfig_ProxyHeaders) []*hcm.HttpFilter {
	var filters []*hcm.HttpFilter
	if protocol == registry.ProtocolGRPCWeb {
		filters = append(filters, HTTPFilter("envoy.filters.http.grpc_web", &grpcweb.GrpcWeb{}))
	}
	return append(filters,
		HTTPFilter("envoy.filters.http.fault", &fault.HTTPFault{}),
		HTTPFilter("envoy.filters.http.cors", &cors.Cors{}),
		HTTPFilter("envoy.filters.http.router", &router.Router{
			SuppressEnvoyHeaders: headers.GetEnvoyDebugHeaders().GetDisabled().GetValue(),
		}),
	)
}

// HTTPFilter returns an HTTP filter.
func HTTPFilter(name string, config proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: packed(config)}}
}

// NetworkFilter returns a network filter.
func NetworkFilter(name string, config proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(config)}}
}

// forwardClientCert converts the handling of the X-Forwarded-Client-Cert header. By default a
// gateway replaces the header.
func forwardClientCert(d meshconfig.ForwardClientCertDetails) hcm.HttpConnectionManager_ForwardClientCertDetails {
	n, known := hcm.HttpConnectionManager_ForwardClientCertDetails_value[d.String()] // by the same names
	if !known {
		return hcm.HttpConnectionManager_SANITIZE_SET
	}
	return hcm.HttpConnectionManager_ForwardClientCertDetails(n)
}

// normalizePaths sets the path normalization. Routes match the normalized path.
func normalizePaths(m *hcm.HttpConnectionManager, n meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType) {
	m.NormalizePath = wrapperspb.Bool(n != meshconfig.MeshConfig_ProxyPathNormalization_NONE)
	m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_KEEP_UNCHANGED
	switch n {
	case meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES:
		m.MergeSlashes = true
	case meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES:
		m.MergeSlashes = true
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_UNESCAPE_AND_FORWARD
	default:
	}
}
