// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View is what decides which resources a proxy is sent. Proxies with the same
// view share everything. It is comparable. Its JSON has the client as a word, and Group and
// Policy as text; for more than fmt.Sprint they have a method String.
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
	// Policy is what Provider.Group made of the proxy: each provider is given views with
	// what it made itself, and everybody else with what the first one of
	// Options.Providers made. Nil without a provider. Built-in resources do not depend
	// on it.
	Policy any
	// others are what the providers after the first one made: see policy.
	others any
}

// String returns what a reader of logs and errors knows a view by, such as `namespace
// "shop", cluster "east", Envoy, group gold`; what is empty, and what providers made of the
// proxy, is left out. Proxies say their namespaces themselves: long texts are cut.
func (v View) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "namespace %q, ", excerpt.Cut(v.Namespace))
	if v.Cluster != "" {
		fmt.Fprintf(&out, "cluster %q, ", excerpt.Cut(string(v.Cluster)))
	}
	out.WriteString(v.Client.String())
	if v.Group != nil {
		out.WriteString(", group " + textOf(v.Group))
	}
	return out.String()
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

// wrap says for which view something has failed.
func (v *view) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("view (%s): %w", v, err)
}

// make makes a resource, which may be nil, for the view. Why it cannot be made is noted
// once, with the view, however many share the resource.
func (v *view) make(r *resource.State, failed *failure.List) {
	if err := r.Make(); err != nil {
		failed.Add(v.wrap(err))
	}
}

// resolver is what resources are looked up in at one moment: it is immutable, so
// that a new selection is made without a lock.
type resolver struct {
	view    *view
	overlay overlay
	layers  layers
	failed  *failure.List
}

// make makes a resource, which may be nil, for the view.
func (s resolver) make(r *resource.State) { s.view.make(r, s.failed) }

// named returns the resource that is served under a name to those who ask for
// it, or nil.
func (s resolver) named(typeURL, name string) *resource.State {
	if made, ok := s.overlay.get(typeURL, name); ok {
		return made.resource
	}
	r, _ := s.layers.lookup(s.view.View, typeURL, name, s.failed)
	return r
}

// covered returns the resource that a wildcard subscription covers under a name,
// or nil: the rest is sent to those who name it.
func (s resolver) covered(typeURL, name string) *resource.State {
	if made, ok := s.overlay.get(typeURL, name); ok {
		return made.resource
	}
	covered, err := s.layers.covers(s.view.View, typeURL, name)
	if err != nil {
		s.failed.Undone(err)
		return resource.NewMarker(typeURL, name, resource.Unavailable)
	}
	if !covered {
		return nil
	}
	return s.named(typeURL, name)
}

// all returns the resources that a wildcard subscription covers, in any order, none
// of them nil. A name may be in there twice, with the same resource. Not ok: what there
// is could not be found out.
func (s resolver) all(typeURL string) (out []*resource.State, ok bool) {
	made := s.overlay[typeURL]
	err := s.layers.each(s.view.View, typeURL, s.failed, func(name string, r *resource.State) {
		if r == nil {
			return
		}
		if made.Len() > 0 {
			if _, set := made.Get(name); set {
				return
			}
		}
		out = append(out, r)
	})
	if err != nil {
		s.failed.Undone(err)
		return nil, false
	}
	for _, m := range made.All() {
		if m.resource != nil {
			out = append(out, m.resource)
		}
	}
	return out, true
}

var errIncomparable = errors.New("not comparable")

// checkKey refuses a value that cannot be the key of a map.
func checkKey(v any) error {
	if v == nil || reflect.ValueOf(v).Comparable() {
		return nil
	}
	return fmt.Errorf("%T is %w", v, errIncomparable)
}
