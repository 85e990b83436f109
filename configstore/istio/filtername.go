// SPDX-License-Identifier: Apache-2.0

package istio

const (
	// httpConnectionManager is the network filter that HTTP filters are part of.
	httpConnectionManager       = "envoy.filters.network.http_connection_manager"
	deprecatedConnectionManager = "envoy.http_connection_manager"
)

// warnDeprecatedFilter warns of a name that filters no longer have.
func warnDeprecatedFilter(at *field, name string) {
	if replacement := filterName(name); replacement != "" {
		at.warn("is %q, which is deprecated; use %s", name, replacement)
	}
}

// filterName returns the current name of an Envoy filter with a deprecated name, or "" if the name
// is not deprecated. The names are those of Envoy's version history for 1.14, which renamed its
// extensions.
func filterName(deprecated string) string {
	switch deprecated {
	case "envoy.buffer", "envoy.cors", "envoy.csrf", "envoy.fault", "envoy.grpc_http1_bridge", "envoy.grpc_json_transcoder",
		"envoy.grpc_web", "envoy.gzip", "envoy.health_check", "envoy.ip_tagging", "envoy.lua", "envoy.router", "envoy.squash":
		return "envoy.filters.http." + deprecated[len("envoy."):]
	case "envoy.http_dynamo_filter":
		return "envoy.filters.http.dynamo"
	case "envoy.rate_limit":
		return "envoy.filters.http.ratelimit"
	case "envoy.ext_authz":
		return "envoy.filters.http.ext_authz or envoy.filters.network.ext_authz"
	case "envoy.listener.http_inspector", "envoy.listener.original_dst", "envoy.listener.original_src",
		"envoy.listener.proxy_protocol", "envoy.listener.tls_inspector":
		return "envoy.filters." + deprecated[len("envoy."):]
	case "envoy.client_ssl_auth", deprecatedConnectionManager, "envoy.mongo_proxy", "envoy.ratelimit", "envoy.redis_proxy",
		"envoy.tcp_proxy":
		return "envoy.filters.network." + deprecated[len("envoy."):]
	default:
		return ""
	}
}
