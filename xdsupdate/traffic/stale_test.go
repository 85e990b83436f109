// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestNothingIsStale plays random histories without a server, hence many more steps
// than TestModel. After each change
//
//   - the state that is made of the one before gives what one from scratch gives, for
//     proxies that are distinguished by nothing but what policies look at;
//   - what has changed for a view is named among what may have;
//   - views that share a resource would each get the same.
func TestNothingIsStale(t *testing.T) {
	steps := 60
	if testing.Short() {
		steps = 20
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			for step := range steps {
				h.push(fmt.Sprintf("step %d", step))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// history is a sequence of states, each made of the one before.
type history struct {
	*model
	registry *serviceentry.Controller
	recorder xdstest.Recorder
	settings *settings
	now      *state
	proxies  []*historyProxy
}

// historyProxy is a proxy, and what it got after the last push for which it was there.
type historyProxy struct {
	node     *core.Node
	identity registry.Proxy
	client   envoy.Client
	view     ads.View
	has      map[resourceKey][]byte
	// missed are what was named since then.
	missed []ads.Changes
}

type resourceKey struct{ typeURL, name string }

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		model:    &model{t: t, rand: rand.New(rand.NewPCG(seed, 2))},
		settings: newSettings(Options{FilterGatewayClusters: seed%2 == 1}),
	}
	h.store = storememory.NewController(storememory.Make(istio.Schemas()))
	h.registry = serviceentry.New(h.store, &h.recorder, serviceentry.Options{ClusterID: "c1"})
	for range 20 {
		h.step()
	}
	h.store.Drain()
	h.now = newState(newIndex(h.store, h.settings), h.freeze())
	web, job := registry.Labels{"app": "web", "version": "v1"}, registry.Labels{"app": "job"}
	h.add("sidecar", "shop", "10.8.0.1", "eu/a/1", web)
	h.add("sidecar", "shop", "10.8.0.2", "us/a/1", job)
	h.add("sidecar", "shop", "10.8.0.3", "eu/a/1", registry.Labels{"app": "web", "unused": "x"})
	h.add("sidecar", "billing", "10.8.0.4", "eu/b/1", web)
	h.add("sidecar", "istio-system", "fd00::1", "", nil)
	h.add("router", "ingress", "10.9.9.1", "", registry.Labels{"app": "edge"})
	h.add("router", "shop", "10.9.9.2", "", registry.Labels{"app": "edge", "role": "inner"})
	h.add("grpc", "shop", "10.8.0.7", "eu/a/1", web)
	return h
}

// add adds a proxy.
func (h *history) add(kind, namespace, ip, locality string, labels registry.Labels) {
	p := &historyProxy{identity: registry.Proxy{
		Namespace: namespace, ClusterID: "c1", IPAddresses: []string{ip}, Labels: labels, Locality: locality,
	}}
	if kind == "grpc" {
		kind, p.client = "sidecar", envoy.ForGRPC
	}
	p.node = &core.Node{Id: kind + "~" + ip + "~p." + namespace + "~x"}
	h.proxies = append(h.proxies, p)
	h.serve(p)
}

// frozenWorld is the services and endpoints of one moment.
type frozenWorld struct {
	*namedWorld
	of map[*registry.Service]*xdsupdate.ServiceEndpoints
}

func (h *history) freeze() *frozenWorld {
	w := &frozenWorld{newNamedWorld(slices.Clone(h.registry.Services())...), make(map[*registry.Service]*xdsupdate.ServiceEndpoints)}
	index := h.recorder.Index()
	for _, list := range w.byName {
		slices.SortStableFunc(list, registry.ComparePrecedence)
		for _, s := range list {
			w.of[s] = index.Service(s.Hostname, s.Attributes.Namespace)
		}
	}
	return w
}

func (w *frozenWorld) endpoints(host registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	for _, s := range w.byName[lower(host)] {
		if s.Hostname == host && s.Attributes.Namespace == namespace {
			return w.of[s]
		}
	}
	return nil
}

// push makes one or a few random changes, and the state after them.
func (h *history) push(when string) {
	for range 1 + h.rand.IntN(3)/2 {
		when += ", " + h.step()
	}
	h.store.Drain()
	h.recorder.Take()
	d := h.difference()
	h.now = d.after
	concerned := newConcerned(d).changes()
	scratch := newState(newIndex(h.store, h.settings), d.after.world)
	shared := make(map[any][]byte)
	for _, p := range h.proxies {
		p.missed = append(p.missed, concerned)
		if onceIn(h.rand, 3) {
			continue // it is away, and nobody asks for what only it sees
		}
		h.checkNamed(when, p)
		h.checkScratch(when, p, scratch)
		h.checkShares(when, p, shared)
	}
}

// checkNamed serves a proxy, and checks that what has changed for it was named.
func (h *history) checkNamed(when string, p *historyProxy) {
	view, had, missed := p.view, p.has, p.missed
	h.serve(p)
	p.missed = nil
	was := func(key resourceKey) bool {
		return slices.ContainsFunc(missed, func(c ads.Changes) bool { return named(c, view, key) })
	}
	for key, got := range p.has {
		if view == p.view && !bytes.Equal(got, had[key]) && !was(key) {
			h.t.Errorf("%s: %s is not named for %+v", when, key.name, view)
		}
	}
	for key := range had {
		if _, has := p.has[key]; view == p.view && !has && had[key] != nil && !was(key) {
			h.t.Errorf("%s: the end of %s is not named for %+v", when, key.name, view)
		}
	}
}

// named reports whether a resource is among what may have changed in a view.
func named(c ads.Changes, v ads.View, key resourceKey) bool {
	return c.Everything != nil && c.Everything(v, key.typeURL) || slices.ContainsFunc(c.Names, func(n ads.ChangedName) bool {
		return n.TypeURL == key.typeURL && n.Name == key.name && (n.In == nil || n.In(v))
	})
}

// difference returns what has changed since the last push, as Policies do.
func (h *history) difference() *difference {
	was, _ := h.now.world.(*frozenWorld)
	w := h.freeze()
	d := &difference{before: h.now, targets: h.targets(w)}
	for _, name := range slices.Sorted(maps.Keys(union(was.byName, w.byName))) {
		switch {
		case !slices.Equal(was.byName[name], w.byName[name]):
			d.services = append(d.services, name)
		case slices.ContainsFunc(w.byName[name], func(s *registry.Service) bool { return was.of[s] != w.of[s] }):
			d.endpoints = append(d.endpoints, name)
		}
	}
	keys := make(map[configstore.ConfigKey]struct{})
	for key := range h.now.objects.All() {
		keys[key] = struct{}{}
	}
	for _, kind := range kinds() {
		for _, c := range h.store.List(kind, configstore.NamespaceAll) {
			keys[c.Key()] = struct{}{}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		before, _ := h.now.objects.Get(key)
		if c := h.store.Get(key.Kind, key.Name, key.Namespace); c != before.config() {
			d.objects = append(d.objects, objectChange{key, before, newObject(c, h.settings)})
		}
	}
	d.after = h.now.next(h.now.withAll(d.objects), w, d)
	return d
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// targets has the ports of all routers.
func (h *history) targets(w world) *targets {
	t := &targets{byAddress: make(map[string]map[registry.Hostname]targetPorts)}
	for _, ip := range []string{"10.9.9.1", "10.9.9.2"} {
		t.byAddress[ip] = map[registry.Hostname]targetPorts{"": scratchTargets(w, ip)}
	}
	return t
}

// proxy returns the view of a proxy by the labels of some keys, nil: all.
func (h *history) viewOf(p *historyProxy, keys map[string]struct{}) ads.View {
	identity := p.identity
	if labels := h.registry.GetProxyWorkloadLabels(&identity); labels != nil {
		identity.Labels = labels
	}
	if keys == nil {
		keys = make(map[string]struct{})
		all, _ := topology(&identity)
		for key := range all {
			keys[key] = struct{}{}
		}
	}
	g := newGroup(p.node, &identity, keys)
	if g.router {
		var pairs []string
		ports := scratchTargets(h.now.world, identity.IPAddresses[0])
		for _, port := range slices.Sorted(maps.Keys(ports)) {
			pairs = append(pairs, fmt.Sprintf("%d=%d", port, ports[port]))
		}
		g.targets = strings.Join(pairs, ",")
	}
	return ads.View{Namespace: identity.Namespace, Cluster: identity.ClusterID, Client: p.client, Policy: g}
}

// serve gives a proxy all resources that it may ask for.
func (h *history) serve(p *historyProxy) {
	keys := make(map[string]struct{})
	for key := range h.now.labelKeys.All() {
		keys[key] = struct{}{}
	}
	p.view, p.has = h.viewOf(p, keys), make(map[resourceKey][]byte)
	h.each(h.now, proxyOf(p.view), func(key resourceKey, resource []byte) { p.has[key] = resource })
}

// each yields all resources of a proxy, and for names that it may ask for besides,
// nil if there is nothing.
func (h *history) each(st *state, p *proxy, yield func(key resourceKey, resource []byte)) {
	for _, typeURL := range modelTypes {
		if !serves(typeURL, p) {
			continue
		}
		names := st.names(p, typeURL)
		if p.role == grpcClient {
			names = (&modelClient{kind: "grpc"}).subscriptions()[typeURL]
		}
		for _, name := range names {
			var resource []byte
			if m := st.resourceSent(p, typeURL, name); m != nil {
				resource = encode(m)
			}
			yield(resourceKey{typeURL, name}, resource)
		}
	}
}

func (h *history) checkScratch(when string, p *historyProxy, scratch *state) {
	count := 0
	h.each(scratch, proxyOf(h.viewOf(p, nil)), func(key resourceKey, want []byte) {
		count++
		if got, has := p.has[key]; !has || !bytes.Equal(got, want) {
			h.t.Errorf("%s: %s of %+v is not what it is from scratch", when, key.name, p.view)
		}
	})
	if count != len(p.has) {
		h.t.Errorf("%s: %+v has %d resources, from scratch %d", when, p.view, len(p.has), count)
	}
}

func (h *history) checkShares(when string, p *historyProxy, shared map[any][]byte) {
	x := &provided{state: h.now, proxies: make(map[ads.View]*proxy)}
	for key, got := range p.has {
		type sharedKey struct {
			resourceKey
			share any
		}
		share := sharedKey{key, x.shareOf(p.view, x.proxy(p.view), key.typeURL, key.name)}
		if other, again := shared[share]; again && !bytes.Equal(got, other) {
			h.t.Errorf("%s: %s of %+v is not what it is in a view that shares it", when, key.name, p.view)
		}
		shared[share] = got
	}
}
