// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net"
	"strconv"
)

// object is a JSON object.
type object = map[string]any

// bootstrap returns the bootstrap of an Envoy that serves as a gateway: its identity, and the
// address of its control plane. docs/envoy.md describes further settings. The bootstrap sets no
// limit for regular expressions, because the demonstration exceeds Envoy's default limit.
func bootstrap(server string, sotw bool) ([]byte, error) {
	host, text, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	protocol := "DELTA_GRPC"
	if sotw {
		protocol = "GRPC"
	}
	ads := object{"ads": object{}, "resource_api_version": "V3"}
	return json.MarshalIndent(object{
		"node": object{
			// The ID has the type of the proxy, its address, its name and its namespace.
			"id":       "router~127.0.0.2~edge.ingress~ingress.svc.cluster.local",
			"cluster":  "edge",
			"metadata": object{"NAMESPACE": "ingress", "LABELS": object{"app": "edge"}},
		},
		"admin": object{"address": socketAddress("127.0.0.1", 0)},
		"dynamic_resources": object{
			"ads_config": object{
				"api_type": protocol, "transport_api_version": "V3",
				"grpc_services": []any{object{"envoy_grpc": object{"cluster_name": "xds"}}},
			},
			"lds_config": ads, "cds_config": ads,
		},
		"static_resources": object{"clusters": []any{serverCluster("xds", host, port)}},
	}, "", "  ")
}

// serverCluster returns the cluster of the control plane, which uses HTTP/2.
func serverCluster(name, host string, port int) object {
	return object{
		"name": name, "type": "STATIC", "connect_timeout": "1s",
		"load_assignment": object{
			"cluster_name": name,
			"endpoints":    []any{object{"lb_endpoints": []any{object{"endpoint": object{"address": socketAddress(host, port)}}}}},
		},
		"typed_extension_protocol_options": object{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
				"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
				"explicit_http_config": object{"http2_protocol_options": object{}},
			},
		},
	}
}

func socketAddress(ip string, port int) object {
	return object{"socket_address": object{"address": ip, "port_value": port}}
}
