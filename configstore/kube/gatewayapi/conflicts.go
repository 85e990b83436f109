// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// transport returns the protocol that all listeners of one port must share.
func transport(p gatewayv1.ProtocolType) string {
	if p == gatewayv1.HTTPSProtocolType {
		return string(gatewayv1.TLSProtocolType)
	}
	return string(p)
}

// clash returns the conflict between two listeners.
func clash(a, b *listener) problem {
	switch {
	case a.view.Port != b.view.Port, a.unsupported.is(), b.unsupported.is():
		return problem{}
	case transport(a.view.Protocol) != transport(b.view.Protocol):
		return problem{
			string(gatewayv1.ListenerReasonProtocolConflict),
			"listener " + b.view.Section + " has another protocol on the same port",
		}
	case a.view.Host == b.view.Host:
		return problem{
			string(gatewayv1.ListenerReasonHostnameConflict),
			"listener " + b.view.Section + " has the same port and hostname",
		}
	default:
		return problem{}
	}
}

// findConflicts sets the conflicts of listeners: own are a Gateway's, and ofSets the listeners of
// its ListenerSets in order of precedence. Of conflicting listeners of the Gateway none wins; in
// other conflicts the first listener wins.
func findConflicts(own, ofSets []*listener) {
	for i, a := range own {
		for j, b := range own {
			found := clash(a, b)
			if i == j || a.conflict.reason == string(gatewayv1.ListenerReasonProtocolConflict) {
				continue
			}
			if !a.conflict.is() || found.reason == string(gatewayv1.ListenerReasonProtocolConflict) {
				a.conflict = found.or(a.conflict)
			}
		}
	}
	taken := make([]*listener, 0, len(own)+len(ofSets))
	for _, l := range own {
		if !l.conflict.is() {
			taken = append(taken, l)
		}
	}
	for _, l := range ofSets {
		for _, first := range taken {
			l.conflict = l.conflict.or(clash(l, first))
		}
		if !l.conflict.is() {
			taken = append(taken, l)
		}
	}
	for _, list := range [][]*listener{own, ofSets} {
		for _, l := range list {
			l.view.Conflicted = l.conflict.is()
		}
	}
}
