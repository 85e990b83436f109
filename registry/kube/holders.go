// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/registry"

// holders are the pods and slices that have an address. It is immutable.
type holders struct {
	// pods are the usable ones.
	pods list[*podNode]
	// slices are those with an endpoint that is shown under the address, or would be
	// if no other one of its service were, once for each such endpoint.
	slices list[*sliceNode]
}

func (e *engine) setHolders(address string, p holders) {
	if p.pods.empty() && p.slices.empty() {
		e.holders.Delete(address)
	} else {
		e.holders.Set(address, p)
	}
}

// locatePod makes a pod be found by the addresses under which it is now.
func (e *engine) locatePod(n *podNode, old, curr []string) {
	for _, a := range old {
		p, _ := e.holders.Get(a)
		p.pods = p.pods.without(n)
		e.setHolders(a, p)
	}
	for _, a := range curr {
		p, _ := e.holders.Get(a)
		p.pods = p.pods.with(n)
		e.setHolders(a, p)
	}
}

// locateEndpoint makes a slice be found by the addresses of an endpoint that takes
// the place of another one; either may be nil.
func (e *engine) locateEndpoint(n *sliceNode, old, curr *registry.Endpoint) {
	if old != nil {
		for _, a := range old.Addresses {
			p, _ := e.holders.Get(a)
			p.slices = p.slices.without(n)
			e.setHolders(a, p)
		}
	}
	if curr != nil {
		for _, a := range curr.Addresses {
			p, _ := e.holders.Get(a)
			p.slices = p.slices.with(n)
			e.setHolders(a, p)
		}
	}
}
