// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// routerCall explains a call to a router: first its policies, then its routes.
func (x *explaining) routerCall() {
	x.out.AuthorizationPolicies = x.askedFirst(x.proxy)
	port := x.proxy.listeningPort(x.call.Port)
	listening := false
	for _, name := range slices.Sorted(maps.Keys(x.routerOf(x.proxy).listeners)) {
		l := x.routerOf(x.proxy).listeners[name]
		if bind, err := netip.ParseAddr(l.Bind); l.Port != port || err == nil && !bind.IsUnspecified() && x.call.Destination.IsValid() && bind != x.call.Destination {
			continue
		}
		of, left := x.without(func(listener string) bool { return listener == name })
		m, problems := x.gatewayListener(of, name)
		listening = listening || m != nil
		d := x.newDeciding(port)
		if l.TLS {
			d.see.ServerName = x.call.ServerName
		}
		chain := chainFor(m, &d.see)
		if chain == nil {
			continue
		}
		d.mutualWords = "the server of the Gateway takes connections of callers with a certificate alone, and the caller has none"
		d.decide(chain)
		if d.to.GetCluster() != envoy.BlackHole {
			problems = x.protectionOf(of).problems // ignore other problems of the listener
		}
		x.decided(d, append(left, problems...))
		x.call.Path = d.call.Path // routes see the same normalized path as policies
		if d.to != nil {
			x.passedOn(d)
		} else if d.out.Allowed {
			x.gatewayCall()
		}
		return
	}
	if !listening {
		x.gatewayCall()
		return
	}
	x.out.Outcome = fmt.Sprintf("no server of a Gateway takes such connections on port %d: they are closed", x.call.Port)
}

// passedOn records the destinations of a connection that is forwarded without HTTP.
func (x *explaining) passedOn(d *deciding) {
	if !d.out.Allowed {
		return
	}
	x.out.Outcome = outcomePassedOn
	if cluster := d.to.GetCluster(); cluster != "" {
		x.addConnection(cluster, 0)
	}
	for _, w := range d.to.GetWeightedClusters().GetClusters() {
		x.addConnection(w.GetName(), w.GetWeight())
	}
}

// addConnection records a cluster that connections are forwarded to.
func (x *explaining) addConnection(cluster string, weight uint32) {
	if _, _, _, ok := envoy.ParseSubsetClusterName(cluster); ok {
		x.addDestination(cluster, weight)
		return
	}
	out := ExplainedDestination{Cluster: cluster, Weight: weight} // an SNI cluster, which sidecars of other networks ask for by name
	if u, endpoints := x.upstream(x.proxy, cluster); u != nil {
		u.Endpoints = slices.Collect(endpoints.All())
		out.Endpoints = endpointsOf(u)
	}
	x.out.Destinations = append(x.out.Destinations, out)
}
