// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// leftOut is an endpoint that no client is sent, because Envoy would refuse all
// others with it.
type leftOut struct {
	hostname  registry.Hostname
	namespace string
	endpoint  *registry.Endpoint
}

// appendLeftOut appends the endpoints that are left out of a host, but were not
// left out of its state before; each state may be nil. What was reported is thus
// derived from the table, and is forgotten with the endpoint. Within a namespace
// an address counts once, whatever ports it serves and whatever else changes of
// the endpoint: the address is what is wrong with it.
func appendLeftOut(out []leftOut, before, after *host) []leftOut {
	if after == nil {
		return out
	}
	for _, v := range after.variants {
		var reported map[string]struct{} // made for the few hosts that need it
		for _, p := range v.ports {
			for _, e := range p.leftOut {
				if reported == nil {
					reported = before.in(v.namespace).addressesLeftOut()
				}
				if _, again := reported[e.Address()]; !again {
					reported[e.Address()] = struct{}{}
					out = append(out, leftOut{after.name, v.namespace, e})
				}
			}
		}
	}
	return out
}

// addressesLeftOut returns the addresses that are left out of a variant, which may
// be nil, in a new map.
func (v *variant) addressesLeftOut() map[string]struct{} {
	out := make(map[string]struct{})
	if v != nil {
		for _, p := range v.ports {
			for _, e := range p.leftOut {
				out[e.Address()] = struct{}{}
			}
		}
	}
	return out
}

// warnLeftOut logs endpoints that are left out.
func (s *Server) warnLeftOut(list []leftOut) {
	for _, l := range list {
		s.logger.Warn("endpoint left out", slog.String("host", string(l.hostname)), slog.String("namespace", l.namespace),
			slog.Any("reason", envoy.CheckEndpoint(l.endpoint)))
	}
}
