// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Infrastructure runs the proxies of Gateways and assigns their addresses: for example as local
// processes, or as Deployments and load balancers of a cluster. A Cache calls it once it has
// synced, for all Gateways that the controller handles. Calls for one Gateway are sequential, calls
// for different Gateways are concurrent. A call may take any time, and must return early when ctx
// ends, which happens when Cache.Run is stopped. A panic counts as an error.
//
// Proxies of a Gateway are in its namespace, and have the label
// gateway.networking.k8s.io/gateway-name with its name, or are endpoints of its Service: package
// xdsupdate/traffic sends them the listeners of the Gateway and of its ListenerSets.
type Infrastructure interface {
	// Ensure creates or updates the infrastructure of a Gateway as desired, and returns its present
	// state. It is called when desired has changed, after Cache.InfrastructureChanged, and, with
	// backoff, after an error, which the status of the Gateway shows meanwhile. It must be
	// idempotent.
	Ensure(ctx context.Context, desired Desired) (Provided, error)
	// Remove removes the infrastructure of a Gateway that was deleted or that the controller does
	// not handle any more. It succeeds if nothing exists. It is not called for Gateways that were
	// deleted while no Cache ran: at its start a host removes the infrastructure of Gateways that
	// are not in Cache.Gateways. After an error it is called again.
	Remove(ctx context.Context, gateway Key) error
}

// Desired contains the requirements of a Gateway for its Infrastructure. It is read-only.
type Desired struct {
	Gateway Key
	// Class is the name of the GatewayClass.
	Class string
	// Listeners are the working listeners of the Gateway and its ListenerSets, by port and name.
	Listeners []DesiredListener
	// Addresses are the requested addresses; if empty, any address is suitable.
	Addresses []gatewayv1.GatewaySpecAddress
	// Labels and Annotations are for all objects that are created for the Gateway.
	Labels, Annotations map[string]string
	// Parameters is spec.infrastructure.parametersRef, or nil.
	Parameters *gatewayv1.LocalParametersReference
}

// DesiredListener is a listener of a Gateway's proxies.
type DesiredListener struct {
	Name     string
	Hostname string // empty for any
	Port     int32
	Protocol gatewayv1.ProtocolType
}

// Ports returns the distinct ports of the listeners, sorted.
func (d *Desired) Ports() []int32 {
	var out []int32
	for _, l := range d.Listeners {
		out = append(out, l.Port)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// desired returns the requirements of a Gateway, or nil if this controller does not handle it or
// somebody else runs it.
func (c *Converter) desired(key Key) *Desired {
	o, state := c.gateways[key], c.gatewayStates[key]
	if o == nil || state == nil || state.ownership != ours {
		return nil
	}
	d := &Desired{Gateway: key, Class: string(o.Spec.GatewayClassName), Addresses: o.Spec.Addresses}
	if in := o.Spec.Infrastructure; in != nil {
		d.Labels, d.Annotations, d.Parameters = map[string]string{}, map[string]string{}, in.ParametersRef
		for name, value := range in.Labels {
			d.Labels[string(name)] = string(value)
		}
		for name, value := range in.Annotations {
			d.Annotations[string(name)] = string(value)
		}
	}
	d.add(state.listeners)
	for _, set := range state.sets {
		d.add(c.setStates[set].listeners)
	}
	slices.SortFunc(d.Listeners, func(a, b DesiredListener) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Name, b.Name))
	})
	return d
}

func (d *Desired) add(listeners []*listener) {
	for _, l := range listeners {
		if l.works() {
			d.Listeners = append(d.Listeners, DesiredListener{
				Name: string(l.spec.Name), Hostname: string(deref(l.spec.Hostname, "")), Port: l.view.Port, Protocol: l.spec.Protocol,
			})
		}
	}
}
