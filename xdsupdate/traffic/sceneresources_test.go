// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// send returns what a new client is sent of a type by name; nil: nothing.
func (s *scene) send(n *core.Node, typeURL, name string) proto.Message {
	s.t.Helper()
	return s.ask(n, typeURL, name).resources[name]
}

// ineffective returns what of the objects has no effect, as text.
func (s *scene) ineffective() []string {
	var out []string
	for _, e := range s.policies.Ineffective() {
		out = append(out, e.String())
	}
	return out
}

// explain returns what becomes of a call of a client.
func (s *scene) explain(n *core.Node, call traffic.Call) traffic.Explanation {
	s.t.Helper()
	return s.policies.Explain(s.view(n), call)
}

// reason returns why a field of an object has no effect; "": it has.
func (s *scene) reason(name, field string) string {
	for _, e := range s.policies.Ineffective() {
		if e.Name == name && e.Field == field {
			return e.Reason
		}
	}
	return ""
}

// routeConfigs returns route configurations by name.
func (s *scene) routeConfigs(n *core.Node, names ...string) map[string]*routev3.RouteConfiguration {
	s.t.Helper()
	out := make(map[string]*routev3.RouteConfiguration)
	for name, m := range s.ask(n, envoy.RouteType, names...).resources {
		out[name] = m.(*routev3.RouteConfiguration)
	}
	return out
}

func (s *scene) cluster(n *core.Node, name string) *clusterv3.Cluster {
	s.t.Helper()
	m, _ := s.send(n, envoy.ClusterType, name).(*clusterv3.Cluster)
	return m
}

func (s *scene) assignment(n *core.Node, name string) *endpointv3.ClusterLoadAssignment {
	s.t.Helper()
	m, _ := s.send(n, envoy.LoadAssignmentType, name).(*endpointv3.ClusterLoadAssignment)
	return m
}

func (s *scene) listener(n *core.Node, name string) *listenerv3.Listener {
	s.t.Helper()
	m, _ := s.send(n, envoy.ListenerType, name).(*listenerv3.Listener)
	return m
}

func (s *scene) routes(n *core.Node, name string) *routev3.RouteConfiguration {
	s.t.Helper()
	m, _ := s.send(n, envoy.RouteType, name).(*routev3.RouteConfiguration)
	return m
}

// connectionManager returns that of the first filter chain of a listener.
func (s *scene) connectionManager(l *listenerv3.Listener) *hcm.HttpConnectionManager {
	s.t.Helper()
	var m hcm.HttpConnectionManager
	for _, f := range l.GetFilterChains()[0].GetFilters() {
		if f.GetTypedConfig().MessageIs(&m) {
			s.must(f.GetTypedConfig().UnmarshalTo(&m))
			return &m
		}
	}
	s.t.Fatalf("no connection manager in %v", l)
	return nil
}

// hostOf returns the virtual host that Envoy chooses for the host of a request: exact
// domains first, then the longest that begins with "*", then "*". Nil: none.
func hostOf(rc *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	var found *routev3.VirtualHost
	length := -1
	for _, vh := range rc.GetVirtualHosts() {
		for _, d := range vh.GetDomains() {
			if d == host {
				return vh
			}
			if rest, ok := cutWildcard(d); ok && len(host) > len(rest) && host[len(host)-len(rest):] == rest && len(rest) > length {
				found, length = vh, len(rest)
			}
		}
	}
	return found
}

func cutWildcard(domain string) (string, bool) {
	if domain == "" || domain[0] != '*' {
		return "", false
	}
	return domain[1:], true
}

// clusterOf returns where the first route for the host of a request leads to; "" for
// no cluster.
func clusterOf(rc *routev3.RouteConfiguration, host string) string {
	routes := hostOf(rc, host).GetRoutes()
	if len(routes) == 0 {
		return ""
	}
	return routes[0].GetRoute().GetCluster()
}
