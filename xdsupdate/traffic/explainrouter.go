// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// routerCall explains a call to a router by its listeners.
func (x *explaining) routerCall() {
	x.out.AuthorizationPolicies = x.askedFirst(x.proxy)
	port := x.proxy.listeningPort(x.call.Port)
	listening := false
	for _, name := range slices.Sorted(maps.Keys(x.routerOf(x.proxy).listeners)) {
		l := x.routerOf(x.proxy).listeners[name]
		if bind, err := netip.ParseAddr(l.Bind); l.Port != port || err == nil && !bind.IsUnspecified() && x.call.Destination.IsValid() && bind != x.call.Destination {
			continue
		}
		of, problems := x.without(func(listener string) bool { return listener == name })
		compiled, closed := x.listener(of, name)
		if compiled == nil {
			continue
		}
		listening = true
		r := x.call.request()
		r.TLS = compiled.TLS
		var record *made
		d := compiled.Route(r, func(name string) (table *route.Table) {
			table, record = x.table(name)
			return table
		})
		if d.Reason == route.NoFilterChain {
			continue
		}
		if d.Reason != route.LeftOut {
			closed = x.protectionOf(of).problems // ignore other problems of the listener
		}
		x.decided(d, decider{mutual: "the server of the Gateway takes connections of callers with a certificate alone, and the caller has none"},
			append(problems, closed...))
		x.passed(d, record)
		return
	}
	x.out.Outcome = fmt.Sprintf("no server of a Gateway takes such connections on port %d: they are closed", x.call.Port)
	if !listening {
		x.out.Outcome = fmt.Sprintf("no Gateway that selects the proxy has an HTTP server on port %d", x.call.Port)
	}
}

// passed explains the routing of a call that the policies of a router allow.
func (x *explaining) passed(d route.Decision, record *made) {
	switch {
	case !x.out.Decision.Allowed:
	case record == nil: // a connection without HTTP
		x.out.Outcome = outcomePassedOn
		for _, to := range d.Rule.Destinations {
			x.addDestination(to.Cluster, to.Weight)
		}
	case d.Reason == route.NoVirtualHost:
		x.out.Outcome = "no VirtualService of a Gateway has the host: 404"
	case d.Reason == route.NoRule:
		for _, v := range record.virtualServices(d.VirtualHost) {
			x.consider(v, "none of its rules matches")
		}
		x.out.Outcome = "no rule matches: 404"
	case d.Reason == route.RedirectedToTLS:
		x.out.Outcome = "redirected to HTTPS, which the Gateway demands"
	default:
		x.routed(d)
		for _, v := range record.virtualServices(d.VirtualHost) {
			if v.String() == x.out.VirtualService {
				x.consider(v, "")
			}
		}
	}
}
