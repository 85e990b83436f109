// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/registry"

// holders are the pods and slices at an address. It is immutable.
type holders struct {
	// pods are the usable pods.
	pods list[*podNode]
	// slices are the slices with endpoints at the address, once for each endpoint. An endpoint
	// counts even if another endpoint of its service is used in its place.
	slices list[*sliceNode]
}

func (e *engine) setHolders(address string, p holders) {
	if p.pods.empty() && p.slices.empty() {
		e.holders.Delete(address)
	} else {
		e.holders.Set(address, p)
	}
}

// locatePod updates the index of a pod by its addresses.
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

// locateEndpoint updates the index of a slice when an endpoint of it is replaced; either endpoint
// may be nil.
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
