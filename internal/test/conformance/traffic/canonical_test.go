// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"

	// The types that resources embed, so that they can be written as JSON.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// section is one part of a proxy's configuration.
type section string

const (
	clusters  section = "clusters"
	endpoints section = "endpoints"
	listeners section = "listeners"
	routes    section = "routes"
)

var sections = []section{clusters, endpoints, listeners, routes}

// tree is a JSON object: a resource, or a part of one.
type tree = map[string]any

// resources are the resources of a section.
type resources []tree

// name is the name that clients subscribe to.
func name(s section, r tree) string {
	if s == endpoints {
		return text(r, "clusterName")
	}
	return text(r, "name")
}

// canonical brings a resource of ours into the recorded form; nil if it is of those
// that are not recorded.
func canonical(s section, m proto.Message) (tree, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var r tree
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if s == clusters && !strings.HasPrefix(name(s, r), "outbound|") && !strings.HasPrefix(name(s, r), "outbound_.") {
		return nil, nil
	}
	reduce(s, r)
	order(s, r)
	return r, nil
}

// reduce drops unrecorded fields: README.md, section 4.
func reduce(s section, r tree) {
	each(r, func(o tree) {
		delete(o, "sdsConfig")
		if config, ok := o["typedConfig"].(tree); ok && len(config) == 1 {
			delete(o, "typedConfig")
		}
	})
	switch s {
	case clusters:
		reduceCluster(r)
	case endpoints:
		reduceAssignment(r)
	case listeners:
		reduceListener(r)
	case routes:
		reduceRoutes(r)
	}
}

func reduceCluster(r tree) {
	drop(r, "altStatName", "metadata", "filters", "trackClusterStats", "typedDnsResolverConfig")
	if service := text(object(r, "edsClusterConfig"), "serviceName"); service == "" || service == text(r, "name") {
		delete(r, "edsClusterConfig")
	} else {
		r["edsClusterConfig"] = tree{"serviceName": service}
	}
	breakers := object(r, "circuitBreakers")
	left := false
	for _, threshold := range objects(breakers, "thresholds") {
		for limit, v := range threshold {
			if v == float64(4294967295) || limit == "trackRemaining" {
				delete(threshold, limit)
			}
		}
		left = left || len(threshold) > 0
	}
	if !left {
		delete(r, "circuitBreakers")
	}
	if a := object(r, "loadAssignment"); a != nil {
		reduceAssignment(a)
	}
}

func reduceAssignment(r tree) {
	for _, locality := range objects(r, "endpoints") {
		delete(locality, "metadata")
		dropEmpty(locality, "locality")
		for _, e := range objects(locality, "lbEndpoints") {
			match := object(object(object(e, "metadata"), "filterMetadata"), "envoy.transport_socket_match")
			if delete(e, "metadata"); len(match) > 0 {
				e["metadata"] = tree{"filterMetadata": tree{"envoy.transport_socket_match": match}}
			}
		}
	}
}

func reduceListener(r tree) {
	drop(r, "trafficDirection", "accessLog", "maxConnectionsToAcceptPerSocketEvent", "metadata", "statPrefix")
	for _, f := range objects(r, "listenerFilters") {
		keepOnly(f, "name")
	}
	for _, chain := range append(objects(r, "filterChains"), object(r, "defaultFilterChain")) {
		drop(chain, "name", "metadata")
		if chain["transportSocketConnectTimeout"] == "15s" {
			delete(chain, "transportSocketConnectTimeout")
		}
		dropEmpty(chain, "filterChainMatch")
		keepObjects(chain, "filters", func(f tree) bool {
			return text(f, "name") != "istio.metadata_exchange" && text(f, "name") != "istio.stats"
		})
		for _, f := range objects(chain, "filters") {
			reduceNetworkFilter(object(f, "typedConfig"))
		}
	}
	reduceNetworkFilter(object(object(r, "apiListener"), "apiListener"))
}

func reduceNetworkFilter(config tree) {
	switch _, kind, _ := strings.Cut(text(config, "@type"), "/"); kind {
	case "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager":
		drop(config, "tracing", "accessLog", "statPrefix", "requestIdExtension", "proxy100Continue", "serverName")
		dropEmpty(config, "httpProtocolOptions")
		delete(object(config, "rds"), "configSource")
		keepObjects(config, "httpFilters", func(f tree) bool {
			if isAuthorization(text(f, "name")) || text(f, "name") == jwtauthn.Filter {
				return true
			}
			name, _ := strings.CutPrefix(text(f, "name"), "envoy.filters.http.")
			keepOnly(f, "name")
			return slices.Contains([]string{"fault", "cors", "grpc_web", "stateful_session", "router"}, name)
		})
	case "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy":
		drop(config, "statPrefix", "accessLog")
	}
}

func reduceRoutes(r tree) {
	for _, vh := range objects(r, "virtualHosts") {
		for _, route := range objects(vh, "routes") {
			drop(route, "metadata", "decorator")
		}
	}
}

// order sorts unordered lists: README.md, section 3. Sections are sorted by comparing them by name.
func order(s section, r tree) {
	switch s {
	case clusters:
		orderAssignment(object(r, "loadAssignment"))
	case endpoints:
		orderAssignment(r)
	case listeners:
		for _, chain := range objects(r, "filterChains") {
			match := object(chain, "filterChainMatch")
			sortTexts(match, "serverNames")
			sortTexts(match, "applicationProtocols")
		}
		sortObjects(r, "filterChains", func(c tree) any { return object(c, "filterChainMatch") })
	case routes:
		sortObjects(r, "virtualHosts", func(vh tree) any { return vh["name"] })
		for _, vh := range objects(r, "virtualHosts") {
			sortTexts(vh, "domains")
			for _, route := range objects(vh, "routes") {
				match := object(route, "match")
				for _, matchers := range []string{"headers", "queryParameters", "dynamicMetadata"} {
					sortObjects(match, matchers, func(m tree) any { return m })
				}
			}
		}
	}
}

func orderAssignment(r tree) {
	for _, locality := range objects(r, "endpoints") {
		for _, e := range objects(locality, "lbEndpoints") {
			if weight(e) == 1 {
				delete(e, "loadBalancingWeight") // it is what Envoy takes an absent weight for
			}
		}
		sortObjects(locality, "lbEndpoints", func(e tree) any { return e })
	}
	sortObjects(r, "endpoints", func(l tree) any {
		where := object(l, "locality")
		priority, _ := l["priority"].(float64)
		return []any{priority, text(where, "region"), text(where, "zone"), text(where, "subZone"), l}
	})
}

// The functions below read and change trees. Missing parts are empty.

func object(o tree, field string) tree {
	out, _ := o[field].(tree)
	return out
}

func objects(o tree, field string) []tree {
	list, _ := o[field].([]any)
	out := make([]tree, 0, len(list))
	for _, v := range list {
		if one, ok := v.(tree); ok {
			out = append(out, one)
		}
	}
	return out
}

func setObjects(o tree, field string, list []tree) {
	if len(list) == 0 {
		delete(o, field)
		return
	}
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
	}
	o[field] = out
}

func keepObjects(o tree, field string, keep func(tree) bool) {
	if o[field] != nil {
		setObjects(o, field, slices.DeleteFunc(objects(o, field), func(one tree) bool { return !keep(one) }))
	}
}

// sortObjects sorts by the JSON of a key.
func sortObjects(o tree, field string, key func(tree) any) {
	if list := objects(o, field); len(list) > 1 {
		slices.SortStableFunc(list, func(a, b tree) int { return cmp.Compare(compact(key(a)), compact(key(b))) })
		setObjects(o, field, list)
	}
}

func text(o tree, field string) string {
	out, _ := o[field].(string)
	return out
}

func texts(o tree, field string) []string {
	list, _ := o[field].([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func setTexts(o tree, field string, list []string) {
	if len(list) == 0 {
		delete(o, field)
		return
	}
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
	}
	o[field] = out
}

func sortTexts(o tree, field string) {
	list := texts(o, field)
	slices.Sort(list)
	setTexts(o, field, list)
}

func drop(o tree, fields ...string) {
	for _, f := range fields {
		delete(o, f)
	}
}

func dropEmpty(o tree, field string) {
	if v, ok := o[field].(tree); ok && len(v) == 0 {
		delete(o, field)
	}
}

func keepOnly(o tree, field string) {
	for f := range o {
		if f != field {
			delete(o, f)
		}
	}
}

// each visits an object and all objects in it, the inner ones first.
func each(v any, visit func(tree)) {
	switch v := v.(type) {
	case tree:
		for _, inner := range v {
			each(inner, visit)
		}
		visit(v)
	case []any:
		for _, inner := range v {
			each(inner, visit)
		}
	}
}

// compact returns the JSON of a value, with sorted keys.
func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// clone returns a deep copy.
func clone(r tree) tree { return copied(r).(tree) }

func copied(v any) any {
	switch v := v.(type) {
	case tree:
		out := make(tree, len(v))
		for field, inner := range v {
			out[field] = copied(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = copied(inner)
		}
		return out
	default:
		return v
	}
}
