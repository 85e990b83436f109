// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Infrastructure runs the proxies of Gateways, and gives them addresses: as processes of this
// machine, Deployments and load balancers of a cluster, or whatever a program has. A Cache calls
// it once it has synced, for all Gateways that are ours. Calls for one Gateway follow each
// other, those for different ones overlap; each may take any time, and ends early when ctx
// ends, which is when Cache.Run is stopped. A panic counts as an error.
//
// Proxies of a Gateway have its namespace, and the label
// gateway.networking.k8s.io/gateway-name with its name, or are endpoints of its Service:
// package xdsupdate/traffic gives them its listeners, and those of its ListenerSets.
type Infrastructure interface {
	// Ensure makes what a Gateway runs on as desired, and returns what there is by then. It
	// is called when that has changed, after Cache.InfrastructureChanged, and, later and later,
	// after an error, which is in the status of the Gateway meanwhile. What is as desired stays.
	Ensure(ctx context.Context, desired Desired) (Provided, error)
	// Remove ends what a Gateway ran on that has gone, or is ours no more; nothing is there
	// to remove if it succeeds or Ensure was never called. It is not called for what went while no
	// Cache ran: a program removes at its start what no Gateway of Cache.Gateways needs. After an
	// error it is called again.
	Remove(ctx context.Context, gateway Key) error
}

// Desired is what a Gateway asks of its Infrastructure. It is read-only.
type Desired struct {
	Gateway Key
	// Class is the name of its GatewayClass.
	Class string
	// Listeners are those that work, of the Gateway and its ListenerSets, by port and name.
	Listeners []DesiredListener
	// Addresses are those that the Gateway asks for; none: any.
	Addresses []gatewayv1.GatewaySpecAddress
	// Labels and Annotations are for everything that is made for it.
	Labels, Annotations map[string]string
	// Parameters are those of spec.infrastructure; nil: none.
	Parameters *gatewayv1.LocalParametersReference
}

// DesiredListener is a listener that proxies of a Gateway have.
type DesiredListener struct {
	Name     string
	Hostname string // empty: any
	Port     int32
	Protocol gatewayv1.ProtocolType
}

// Ports returns the ports of the listeners, each once, sorted.
func (d *Desired) Ports() []int32 {
	var out []int32
	for _, l := range d.Listeners {
		out = append(out, l.Port)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// desired returns what a Gateway asks for; nil: it is not ours, or run by somebody else.
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
