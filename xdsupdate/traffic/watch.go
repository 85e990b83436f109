// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// Router returns the router of a proxy as of the last push, or nil before the first one. The fields
// of the proxy that matter are its namespace, labels, cluster, network, locality and IP addresses.
// It costs the time of a new xDS client; Watch keeps a router up to date. It may be called from any
// goroutine.
func (p *Policies) Router(kind route.Kind, proxy *registry.Proxy) *route.Router {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	return route.New(kind, last.resources(p.viewFor(kind, proxy)))
}

// viewFor returns the view of a proxy.
func (p *Policies) viewFor(kind route.Kind, proxy *registry.Proxy) ads.View {
	node, client := &core.Node{}, envoy.ForEnvoy
	switch kind {
	case route.Gateway:
		node.Id = "router~"
	case route.GRPC:
		node.UserAgentName, client = "gRPC Go", envoy.ForGRPC
	default:
	}
	v := ads.PlainView(proxy, client)
	v.Policy = p.Group(node, proxy)
	return v
}

// resources are the resources of a view, as its proxies receive them.
type resources struct {
	*state
	proxy *proxy
}

var _ route.Resources = resources{}

func (x *provided) resources(v ads.View) resources { return resources{x.state, x.proxy(v)} }

// Names implements route.Resources.
func (r resources) Names(typeURL string) iter.Seq[string] {
	if !serves(typeURL, r.proxy) {
		return slices.Values[[]string](nil)
	}
	return slices.Values(r.names(r.proxy, typeURL))
}

// Has implements route.Resources.
func (r resources) Has(typeURL, name string) bool {
	return serves(typeURL, r.proxy) && r.covers(r.proxy, typeURL, name)
}

// Resource implements route.Resources.
func (r resources) Resource(typeURL, name string) route.Made {
	if !serves(typeURL, r.proxy) {
		return route.Made{}
	}
	m, _, _ := r.recorded(r.proxy, typeURL, name)
	return m
}

// Watch keeps the router of a proxy up to date. It follows the pushes of the ads server, which need
// not serve any client. The host runs it (Run), or calls Next itself, and closes it.
type Watch struct {
	policies *Policies
	kind     route.Kind
	proxy    *registry.Proxy
	current  atomic.Pointer[route.Router]

	mu sync.Mutex
	// view is that of the proxy in the state next. Changed is how next differs from the current
	// router.
	view    ads.View
	next    *provided
	changed route.Changed
	// more is closed when next differs from the state of the current router, which waits says. It is
	// replaced then.
	more  chan struct{}
	waits bool
}

// watches are the open watches.
type watches struct {
	mu   sync.Mutex
	open map[*Watch]struct{}
}

// Watch returns a watch of the router of a proxy, see Router. The proxy must not change.
func (p *Policies) Watch(kind route.Kind, proxy *registry.Proxy) *Watch {
	w := &Watch{policies: p, kind: kind, proxy: proxy, more: make(chan struct{})}
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	if p.watches.open == nil {
		p.watches.open = make(map[*Watch]struct{})
	}
	p.watches.open[w] = struct{}{}
	if last := p.last.Load(); last != nil {
		w.publish(p, last, ads.Changes{})
	}
	return w
}

// Close ends the watch. Its router stays as it is. It may be called twice.
func (w *Watch) Close() {
	w.policies.watches.mu.Lock()
	defer w.policies.watches.mu.Unlock()
	delete(w.policies.watches.open, w)
}

// Router returns the router of the state that Next has last returned, and nil before. It takes no
// lock.
func (w *Watch) Router() *route.Router { return w.current.Load() }

// Run applies each new state, until stop is closed, and calls changed, which may be nil, with the
// new router and the possible differences from the one before. It calls it on its own goroutine, one
// call at a time, and may skip states.
func (w *Watch) Run(stop <-chan struct{}, changed func(*route.Router, route.Changed)) {
	for {
		select {
		case <-w.waiting():
		case <-stop:
			return
		}
		if r, c := w.advance(); changed != nil {
			changed(r, c)
		}
	}
}

// Next waits for a state that is newer than the one of Router, and returns its router, and the
// possible differences from the one before. The error is that of the context. One goroutine at a
// time calls it.
func (w *Watch) Next(ctx context.Context) (*route.Router, route.Changed, error) {
	select {
	case <-w.waiting():
		r, c := w.advance()
		return r, c, nil
	case <-ctx.Done():
		return nil, route.Changed{}, ctx.Err()
	}
}

// waiting returns a channel that is closed when there is a next state.
func (w *Watch) waiting() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.more
}

// advance makes the next state the current one.
func (w *Watch) advance() (*route.Router, route.Changed) {
	w.mu.Lock()
	next, view, changed := w.next, w.view, w.changed
	w.changed, w.more, w.waits = route.Changed{}, make(chan struct{}), false
	w.mu.Unlock()
	r := w.current.Load()
	if r == nil {
		r = route.New(w.kind, next.resources(view))
	} else {
		r = r.Next(next.resources(view), changed)
	}
	w.current.Store(r)
	return r, changed
}

// publish hands a state to all watches.
func (x *watches) publish(p *Policies, next *provided, changes ads.Changes) {
	x.mu.Lock()
	open := slices.Collect(maps.Keys(x.open))
	x.mu.Unlock()
	for _, w := range open {
		w.publish(p, next, changes)
	}
}

// publish records a state and how it differs from the one before.
func (w *Watch) publish(p *Policies, next *provided, changes ads.Changes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed, before := changedIn(w.view, changes), w.view
	if changes.Regroup || w.next == nil {
		w.view = p.viewFor(w.kind, w.proxy)
	}
	if w.next == nil || w.view != before {
		changed = route.Everything()
	}
	w.next = next
	w.changed.Merge(changed)
	if !changed.Empty() && !w.waits {
		w.waits = true
		close(w.more)
	}
}

// changedIn returns the changes in a view.
func changedIn(v ads.View, changes ads.Changes) route.Changed {
	out := route.Changed{Names: make(map[string][]string), Types: make(map[string]bool)}
	for _, n := range changes.Names {
		if n.In == nil || n.In(v) {
			out.Names[n.TypeURL] = append(out.Names[n.TypeURL], n.Name)
		}
	}
	for typeURL := range route.Everything().Types {
		if changes.Everything != nil && changes.Everything(v, typeURL) {
			out.Types[typeURL] = true
		}
	}
	return out
}
