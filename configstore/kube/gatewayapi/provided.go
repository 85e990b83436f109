// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"reflect"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// Provided is the present infrastructure of a Gateway, as its Infrastructure reports it.
type Provided struct {
	// Addresses are the addresses that clients of the Gateway connect to. The status contains them.
	Addresses []gatewayv1.GatewayStatusAddress
	// Ready is set if connections to Addresses are served. Otherwise the Gateway is not Programmed.
	Ready bool
	// Reason is the reason why it is not ready, for the condition Programmed: for instance
	// GatewayReasonAddressNotUsable if a requested address does not exist. With
	// GatewayReasonUnsupportedAddress, for an address type that is not supported, the Gateway is
	// not accepted, either. Default: GatewayReasonPending.
	Reason gatewayv1.GatewayConditionReason
	// Message is the reason for people. Default: a general text.
	Message string
}

// problem returns the reason why Programmed is not true.
func (p *Provided) problem() problem {
	switch {
	case p == nil:
		return problem{string(gatewayv1.GatewayReasonPending), "the infrastructure of the Gateway is not known yet"}
	case p.Ready:
		return problem{}
	}
	out := problem{string(p.Reason), excerpt.CutTo(p.Message, maxText)}
	if out.reason == "" {
		out.reason = string(gatewayv1.GatewayReasonPending)
	}
	if out.message == "" {
		out.message = "the infrastructure of the Gateway is not ready"
	}
	return out
}

// unsupported returns the reason why Accepted is not true.
func (p *Provided) unsupported() problem {
	if p == nil || p.Ready || p.Reason != gatewayv1.GatewayReasonUnsupportedAddress {
		return problem{}
	}
	return p.problem()
}

// setProvided returns the change of a Gateway's infrastructure, with Options.Provided. nil means
// that it is unknown. now must not be modified afterwards.
func setProvided(gateway Key, now *Provided) Change {
	return Change{func(c *Converter) {
		if old := c.provided[gateway]; old == nil && now == nil || old != nil && now != nil && reflect.DeepEqual(old, now) {
			return
		}
		if now == nil {
			delete(c.provided, gateway)
		} else {
			c.provided[gateway] = now
		}
		c.touch(topic{aProvided, gateway})
	}}
}

func (v view) provided(gateway Key) *Provided {
	v.read(aProvided, gateway)
	return v.c.provided[gateway]
}

// unsupported returns the reason why a Gateway cannot have its requested addresses.
func (v view) unsupported(gateway Key) problem {
	if !v.c.opts.Provided {
		return problem{}
	}
	return v.provided(gateway).unsupported()
}

// reached returns the addresses of a Gateway, and the reason why it is not served at them.
func (v view) reached(gateway Key, addressType string, services []string, ports []int32) ([]gatewayv1.GatewayStatusAddress, problem) {
	if v.c.opts.Provided {
		p := v.provided(gateway)
		if p == nil {
			return nil, p.problem()
		}
		return slices.Clone(p.Addresses), p.problem()
	}
	r := v.reach(gateway.Namespace, services, ports)
	return r.addresses(addressType), r.problem(services)
}
