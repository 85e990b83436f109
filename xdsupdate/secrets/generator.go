// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"slices"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Generator serves secrets. It implements ads.Generator.
type Generator struct {
	store *store
	ran   atomic.Bool
	// updaterFailed is set if the last call of the updater by Run panicked.
	updaterFailed atomic.Bool
	// poke has capacity one. It holds a token if Changed was called after Run last refreshed.
	poke chan struct{}
	// fixed are the names that exist without references.
	fixed []string

	// The fields below belong to the calls of the server, which are serial.
	references *references
	// renamed reports whether the current push changed the set of names.
	renamed bool
	// changed are the secrets in the current push request, affected the resource names that may
	// resolve to one of them for some proxy.
	changed  map[Name]struct{}
	affected []string
}

var _ ads.Generator = (*Generator)(nil)

// New returns a generator for ads.Options.Generators. It starts no goroutine.
func New(opts ...Options) *Generator {
	o := options.One("secrets.New", opts).withDefaults()
	g := &Generator{store: newStore(o), poke: make(chan struct{}, 1), references: newReferences()}
	g.fixed = append(slices.Clone(o.Names), envoy.WorkloadCertificate, envoy.MeshRoots)
	for n := range o.Files {
		g.fixed = append(g.fixed, n.Name)
		if s, ok := envoy.ParseSecretName(n.Name); ok && s.Credential != "" && !s.Roots {
			g.fixed = append(g.fixed, envoy.CredentialRootsName(n.Name))
		}
	}
	return g
}

// Name implements ads.Generator.
func (g *Generator) Name() string { return "secrets" }

// Affected implements ads.Generator. All views of Envoys are affected if secrets or the set of
// names changed.
func (g *Generator) Affected(push *ads.PushContext) func(ads.View) bool {
	g.renamed = g.references.update(push)
	g.changed = make(map[Name]struct{})
	for key := range push.Request.ConfigsUpdated {
		if key.Kind == Kind() {
			g.changed[Name{key.Namespace, key.Name}] = struct{}{}
		}
	}
	g.findAffected()
	if g.renamed {
		g.forgetUnused()
	}
	if !g.renamed && len(g.affected) == 0 {
		return nil
	}
	return func(v ads.View) bool { return v.Client == envoy.ForEnvoy } // gRPC clients have no SDS
}

// anyNamespace is a placeholder for the proxy's namespace where only names matter.
const anyNamespace = "*"

// names returns all names that proxies may subscribe to.
func (g *Generator) names() map[string]struct{} {
	out := make(map[string]struct{}, len(g.references.uses)+len(g.fixed))
	for n := range g.references.uses {
		out[n] = struct{}{}
	}
	for _, n := range g.fixed {
		out[n] = struct{}{}
	}
	return out
}

// findAffected computes the resource names that may resolve to a changed secret.
func (g *Generator) findAffected() {
	g.affected = nil
	if len(g.changed) == 0 {
		return
	}
	changed := make(map[string]struct{})
	for n := range g.changed {
		changed[n.Name] = struct{}{}
	}
	for resource := range g.names() {
		r, _ := newRequest(anyNamespace, resource)
		if slices.ContainsFunc(r.of, func(n Name) bool { _, ok := changed[n.Name]; return ok }) {
			g.affected = append(g.affected, resource)
		}
	}
}

// forgetUnused makes the store drop the secrets that no resource name resolves to.
func (g *Generator) forgetUnused() {
	used := make(map[string]struct{})
	for resource := range g.names() {
		r, _ := newRequest(anyNamespace, resource)
		for _, n := range r.of {
			used[n.Name] = struct{}{}
		}
	}
	g.store.retain(func(n Name) bool { _, ok := used[n.Name]; return ok })
}

// Generate implements ads.Generator.
func (g *Generator) Generate(view ads.View, push *ads.PushContext, out *ads.Resources) error {
	if view.Client != envoy.ForEnvoy {
		return nil
	}
	if push.Request.Forced || g.renamed {
		g.rename(view, out)
	}
	if push.Request.Forced {
		return nil // a new view
	}
	for _, resource := range g.affected {
		r, _ := newRequest(view.Namespace, resource)
		if slices.ContainsFunc(r.of, g.isChanged) {
			g.set(view, resource, out)
		}
	}
	return nil
}

// isChanged reports whether the push request contains a secret, or the files of that name for
// proxies of every namespace.
func (g *Generator) isChanged(n Name) bool {
	_, own := g.changed[n]
	_, shared := g.changed[Name{Name: n.Name}]
	return own || shared
}

// rename updates the resource names of a view to the current set of names.
func (g *Generator) rename(view ads.View, out *ads.Resources) {
	names := g.names()
	for _, n := range slices.Collect(out.Names(Type)) {
		if _, ok := names[n]; !ok {
			out.Delete(Type, n)
		}
		delete(names, n)
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		g.set(view, n, out)
	}
}

// set sets a secret as a lazy resource: it is looked up when a proxy of the view subscribes to it.
func (g *Generator) set(view ads.View, resource string, out *ads.Resources) {
	namespace := view.Namespace
	out.SetLazy(Type, resource, func() (proto.Message, error) {
		r, ok := newRequest(namespace, resource)
		if !ok || !r.allowed(namespace, g.store.allowed) {
			return nil, nil
		}
		m, err := r.message(resource, g.store)
		if m == nil {
			return nil, err
		}
		return m, nil
	})
}
