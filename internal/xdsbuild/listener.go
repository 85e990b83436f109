// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// APIListener returns the listener for gRPC clients that speak xDS and dial a port of a service.
// The name is the result of ListenerName, or the bare host name. The listener references the route
// configuration of GRPCRoutes. The result is nil for a host or port that cannot be part of a
// resource name.
func APIListener(name string, svc *registry.Service, port *registry.Port) *listenerv3.Listener {
	if name == "" || !usable(svc.Hostname, port) {
		return nil
	}
	return &listenerv3.Listener{
		// gRPC clients reject a list of filters whose last one is not the router.
		Name: name, ApiListener: apiListener(name, envoy.ClusterName(port.Number, svc.Hostname), HTTPFilter(routerFilter, &router.Router{})),
	}
}

func apiListener(name, routes string, filters ...*hcm.HttpFilter) *listenerv3.ApiListener {
	return &listenerv3.ApiListener{ApiListener: packed(&hcm.HttpConnectionManager{
		StatPrefix:     name,
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{ConfigSource: ADS(), RouteConfigName: routes}},
		HttpFilters:    filters,
	})}
}

// GRPCListener returns a listener for gRPC clients that speak xDS. It references a route
// configuration whose routes may inject faults. The client does not use the address, which is the
// apparent destination of calls.
func GRPCListener(name, routes, address string, port uint32) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: name, Address: socketAddress(address, port),
		ApiListener: apiListener(name, routes, HTTPFilter(faultFilter, &httpfault.HTTPFault{}), HTTPFilter(routerFilter, &router.Router{})),
	}
}

// packed wraps a message that this package built. Encoding fails for strings that are not UTF-8. In
// that case the result contains such a string itself, so that encoding the resource fails, wherever
// in it the message is.
func packed(m proto.Message) *anypb.Any {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return &anypb.Any{TypeUrl: typeURL(m) + notUTF8}
	}
	return &anypb.Any{TypeUrl: typeURL(m), Value: value}
}

const notUTF8 = "\xff"

func typeURL(m proto.Message) string {
	return "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
}
