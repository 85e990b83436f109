// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// inboundCall explains a call to a gRPC server.
func (x *explaining) inboundCall() {
	if x.proxy.Role != objects.GRPCClient {
		x.out.Outcome = "what comes to sidecars is not configured here: no policy is enforced"
		return
	}
	if len(x.proxy.server) == 0 && x.call.Destination.IsValid() {
		server := *x.proxy // the server is not connected, or had no workload at its address when it connected
		server.server = []string{x.call.Destination.Unmap().String()}
		x.proxy = &server
	}
	for _, address := range x.proxy.server {
		at, err := netip.ParseAddr(address)
		if err != nil || x.call.Port > math.MaxUint16 || x.call.Destination.IsValid() && at != x.call.Destination.Unmap() {
			continue
		}
		name := xdsbuild.InboundName(netip.AddrPortFrom(at, uint16(x.call.Port))) //nolint:gosec // it is not greater
		of, left := x.without(func(listener string) bool {
			asked, _, ok := xdsbuild.ParseInboundName(listener)
			return ok && asked.Port() == uint16(x.call.Port) //nolint:gosec // it is not greater
		})
		if l, problems := x.listener(of, name); l != nil {
			x.call.Destination = at
			x.call.Remote = x.call.Source // gRPC servers ignore forwarding proxies (gRFC A41)
			x.served(l, append(left, problems...))
			return
		}
	}
	x.out.Outcome = fmt.Sprintf("no service of the namespace %q sends calls to port %d at an address of the server, so that it gets no listener", x.proxy.Namespace, x.call.Port)
}

// served explains a call to a gRPC server by its listener.
func (x *explaining) served(l *route.Listener, problems []error) {
	all := x.workloads.At(x.proxy.Namespace, x.proxy.server)
	i := slices.IndexFunc(all, func(w mesh.Workload) bool { return servesOn(w, x.call.Port) })
	x.out.Service = all[i].Service.Attributes.Namespace + "/" + string(all[i].Service.Hostname)
	by, _ := x.mutualTLSBy(x.proxy.Namespace, labelsOf(all), x.call.Port)
	words := "the server takes mutual TLS alone, and the caller has no certificate"
	if by.Mode == objects.Permissive {
		words = "the workload has the label " + tlsModeLabel + ": " + tlsModeIstio + ", so that " + words
	}
	r := x.call.request()
	d := l.Route(r, nil)
	if d.Reason == route.UnexpectedTLS {
		r.TLS = false
		d = l.Route(r, nil)
	}
	x.decided(d, decider{modeRule(by), words}, problems)
	if x.out.Decision.Allowed {
		x.out.Outcome = outcomeServed
	}
}

// modeRule returns the field that sets a mode, or zero if the mode is a default.
func modeRule(m objects.PeerMode) PolicyRule {
	switch {
	case m.Of == nil:
		return PolicyRule{}
	case m.Port:
		return PolicyRule{istio.PeerAuthentication.Kind, m.Of.String(), "spec.portLevelMtls"}
	default:
		return PolicyRule{istio.PeerAuthentication.Kind, m.Of.String(), "spec.mtls"}
	}
}
