// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"reflect"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Provided is what a Gateway runs on at present, as its Infrastructure says.
type Provided struct {
	// Addresses are those at which the Gateway can be reached; they are its status.
	Addresses []gatewayv1.GatewayStatusAddress
	// Ready: connections to Addresses are served. Without it the Gateway is not Programmed.
	Ready bool
	// Reason is why it is not ready, a reason of the condition Programmed:
	// GatewayReasonAddressNotUsable, for instance, for an address that the Gateway asks for
	// and that there is not. With GatewayReasonUnsupportedAddress, for an address of a type
	// that there are not, the Gateway is not accepted, either. Empty: GatewayReasonPending.
	Reason gatewayv1.GatewayConditionReason
	// Message says more, for people. Empty: a general one.
	Message string
}

// problem is why Programmed is not true.
func (p *Provided) problem() problem {
	switch {
	case p == nil:
		return problem{string(gatewayv1.GatewayReasonPending), "it is not known yet what the Gateway runs on"}
	case p.Ready:
		return problem{}
	}
	out := problem{string(p.Reason), p.Message}
	if out.reason == "" {
		out.reason = string(gatewayv1.GatewayReasonPending)
	}
	if out.message == "" {
		out.message = "what the Gateway runs on is not ready"
	}
	return out
}

// unsupported is why Accepted is not true.
func (p *Provided) unsupported() problem {
	if p == nil || p.Ready || p.Reason != gatewayv1.GatewayReasonUnsupportedAddress {
		return problem{}
	}
	return p.problem()
}

// SetProvided returns the change of what a Gateway runs on, with Options.Provided; nil: it is
// not known. It must not be modified any more.
func SetProvided(gateway Key, now *Provided) Change {
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

// unsupported is why a Gateway cannot have the addresses that it asks for.
func (v view) unsupported(gateway Key) problem {
	if !v.c.opts.Provided {
		return problem{}
	}
	return v.provided(gateway).unsupported()
}

// reached returns the addresses of a Gateway, and why it is not served at them.
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
