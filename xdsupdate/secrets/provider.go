// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Provider serves secrets. It implements ads.Provider, and serves one server.
type Provider struct {
	store *store
	ran   atomic.Bool
	// updater is nil before Attach.
	updater xdsupdate.XDSUpdater
	// cache has the Gateways and DestinationRules that reference secrets. It may be nil.
	cache configstore.ConfigStoreCache
	// configs are the configs of cache in the roots of the server, or nil without a cache.
	configs *xdsupdate.Configs
	// updaterFailed is set if the last call of the updater by Run panicked.
	updaterFailed atomic.Bool
	// poke has capacity one. It holds a token if Changed was called after Run last refreshed.
	poke chan struct{}
	// fixed are the names that exist without references.
	fixed []string

	// The fields below belong to Provide, whose calls are serial.

	references *references
	provided   *names
	// root is the root of the last push.
	root *xdsupdate.Root
}

var _ ads.Provider = (*Provider)(nil)

// New returns a provider for ads.Options.Providers. Proxies may subscribe to the secrets that
// Gateways and DestinationRules of a cache reference, and to those of the options. The cache may be
// nil. New starts no goroutine.
func New(configs configstore.ConfigStoreCache, opts ...Options) *Provider {
	o := options.One("secrets.New", opts).withDefaults()
	p := &Provider{store: newStore(o), cache: configs, poke: make(chan struct{}, 1), references: newReferences(), provided: &names{}}
	p.fixed = append(slices.Clone(o.Names), envoy.WorkloadCertificate, envoy.MeshRoots)
	for n := range o.Files {
		p.fixed = append(p.fixed, n.Name)
		if s, ok := envoy.ParseSecretName(n.Name); ok && s.Credential != "" && !s.Roots {
			p.fixed = append(p.fixed, envoy.CredentialRootsName(n.Name))
		}
	}
	return p
}

// Name implements ads.Provider.
func (p *Provider) Name() string { return "secrets" }

// Attach implements ads.Provider. Changed secrets are reported to the updater.
func (p *Provider) Attach(updater xdsupdate.XDSUpdater) {
	p.updater = updater
	if p.cache == nil {
		return
	}
	var kinds []configstore.GroupVersionKind
	for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.DestinationRule} {
		if p.cache.Schemas().Has(kind) {
			kinds = append(kinds, kind)
		}
	}
	p.configs = xdsupdate.FollowConfigs(updater, p.cache, kinds, func(old, curr *configstore.Config) bool {
		return slices.Equal(namesIn(old), namesIn(curr))
	})
}

// Secrets returns the secrets as proxies of a namespace receive them, by resource name, for a data
// plane in this process. A secret is nil if such proxies receive none. The first call for a name
// waits for the lookup, up to a limit; later calls return the last good secret. It may be called from
// any goroutine.
func (p *Provider) Secrets(proxyNamespace string) func(resource string) (*tlsv3.Secret, error) {
	return func(resource string) (*tlsv3.Secret, error) { return p.store.message(proxyNamespace, resource) }
}

// Group implements ads.Provider. The other fields of a view are enough.
func (p *Provider) Group(*core.Node, *registry.Proxy) any { return nil }

// Provide implements ads.Provider.
func (p *Provider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	before, renamed := p.provided, false
	if p.configs != nil {
		for key, config := range push.Root().ConfigsSince(p.root, p.configs) {
			renamed = p.references.set(key, namesIn(config)) || renamed
		}
	}
	p.root = push.Root()
	if renamed || before.of == nil {
		p.provided = &names{p.store, p.names()}
		p.store.retain(p.provided.used())
	}
	return p.provided, ads.Changes{Names: append(before.renamed(p.provided), p.provided.changed(push.Request)...)}
}

// names returns all names that proxies may subscribe to.
func (p *Provider) names() map[string]struct{} {
	out := make(map[string]struct{}, len(p.references.uses)+len(p.fixed))
	for n := range p.references.uses {
		out[n] = struct{}{}
	}
	for _, n := range p.fixed {
		out[n] = struct{}{}
	}
	return out
}
