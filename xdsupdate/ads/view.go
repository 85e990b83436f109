// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View is what decides which resources a proxy is sent. Proxies with the same
// view share everything. It is comparable.
type View struct {
	// Namespace is where the proxy runs: it limits the services that are visible.
	Namespace string
	// Cluster is where the proxy runs: it limits the endpoints that are visible.
	Cluster registry.ClusterID
	// Addresses says which addresses of services the proxy can use.
	Addresses Addresses
	// Client is the kind of the proxy.
	Client envoy.Client
	// Group is what Options.Group made of the proxy; nil without it. Built-in
	// resources do not depend on it; generators and customizers may.
	Group any
	// Policy is what Provider.Group made of the proxy; nil without a provider.
	// Built-in resources do not depend on it.
	Policy any
}

// view is the state of a View. All of it is guarded by the cache's mutex.
type view struct {
	View
	// ready is false until the generators have been called for the first time.
	ready bool
	// proxies counts the connections; the view ends with the last one.
	proxies int
	overlay overlay
	// waiting are the selections that are made when the view is ready.
	waiting []*selection
}

// source is what resources are looked up in at one moment: it is immutable, so
// that a new selection is made without a lock.
type source struct {
	table   *table
	view    *view
	overlay overlay
	layer   *layer // nil: no provider
	failed  *failures
}

// named returns the resource that is served under a name to those who ask for
// it, or nil.
func (s source) named(typeURL, name string) *resource {
	if made, ok := s.overlay.get(typeURL, name); ok {
		return made.resource
	}
	if r, ok := s.layer.lookup(s.view.View, typeURL, name, s.failed); ok {
		return r
	}
	return s.table.lookup(s.view, typeURL, name, s.failed)
}

// covered returns the resource that a wildcard subscription covers under a name,
// or nil: the rest is sent to those who name it.
func (s source) covered(typeURL, name string) *resource {
	if made, ok := s.overlay.get(typeURL, name); ok {
		return made.resource
	}
	covered, own, err := s.layer.covers(s.view.View, typeURL, name)
	if err != nil {
		s.failed.undone(err)
		return encoded(typeURL, name, unavailable)
	}
	if !own {
		covered = wildcardBuiltIn(typeURL)
	}
	if !covered {
		return nil
	}
	return s.named(typeURL, name)
}

// all returns the resources that a wildcard subscription covers, in any order, none
// of them nil. A provider that names something twice has it in there twice. Not ok: what there is could not be
// found out.
func (s source) all(typeURL string) (out []*resource, ok bool) {
	made := s.overlay[typeURL]
	// Of a name that is listed there may be nothing: clusters whose endpoints are not
	// from assignments are in the names of assignments, too.
	add := func(r *resource) {
		if r != nil {
			out = append(out, r)
		}
	}
	overlaid := func(name string) bool {
		if made.Len() == 0 {
			return false
		}
		_, ok := made.Get(name)
		return ok
	}
	names, own, err := s.layer.names(s.view.View, typeURL)
	if err != nil {
		s.failed.undone(err)
		return nil, false
	}
	if own {
		for _, name := range names {
			if !overlaid(name) {
				add(s.named(typeURL, name))
			}
		}
	} else {
		for name, p := range s.table.names(s.view.View, typeURL) {
			if !overlaid(name) {
				add(s.unlessProvided(typeURL, name, p))
			}
		}
	}
	for _, m := range made.All() {
		add(m.resource)
	}
	return out, true
}

// unlessProvided returns the resource of a built-in name that a wildcard covers.
func (s source) unlessProvided(typeURL, name string, p *port) *resource {
	if r, ok := s.layer.lookup(s.view.View, typeURL, name, s.failed); ok {
		return r
	}
	return p.resource(typeURL, name, s.view.View, s.failed)
}
