// SPDX-License-Identifier: Apache-2.0

package ads

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
)

// policy is what a provider other than the first one has made of a proxy; next is that
// of another one, or nil. It is comparable if of is, and so are views.
type policy struct {
	provider int
	of, next any
}

// group sets what the providers make of a proxy.
func (v *View) group(providers []Provider, node *core.Node, proxy *registry.Proxy) {
	for i, p := range providers {
		switch made := p.Group(node, proxy); {
		case i == 0:
			v.Policy = made
		case made != nil:
			v.others = policy{i, made, v.others}
		}
	}
}

// seenBy returns the view as a provider is given it.
func (v View) seenBy(provider int) View {
	if provider == 0 && v.others == nil {
		return v
	}
	if provider > 0 {
		v.Policy = nil
		for next := v.others; next != nil; next = next.(policy).next {
			if p := next.(policy); p.provider == provider {
				v.Policy = p.of
			}
		}
	}
	v.others = nil
	return v
}
