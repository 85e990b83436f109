// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// ProviderOptions for NewProvider. With the zero value no client gets configs.
type ProviderOptions struct {
	// ControlPlanes are the identities (registry.Proxy.Identity) of the clients that may get
	// configs: all of them, including the keys in their content. All other clients get none,
	// regardless of their nodes. "" stands for unverified clients, and is for ports that only
	// control planes can reach.
	ControlPlanes []string
	// Revision is the revision of clients whose node has none: see the package comment. By default
	// such clients get all objects.
	Revision string
}

// The node metadata of Istio's control planes: the value of the first that asks for
// configs, and the revision.
const (
	generatorKey, generatorAPI = "GENERATOR", "api"
	revisionKey                = "ISTIO_REVISION"
)

// NewProvider returns a provider that makes an ads.Server for proxies serve configs, too, on the
// same port. Nodes whose metadata has GENERATOR "api", as Istio's control planes send it, get
// configs and nothing else if they are one of ProviderOptions.ControlPlanes. All other nodes get no
// configs.
//
//	server := ads.New(services, ads.Options{
//		Proxy: clients.Proxy, // of package authn
//		Providers: []ads.Provider{mcp.NewProvider(cache, mcp.ProviderOptions{
//			ControlPlanes: []string{"spiffe://example.org/ns/istio-system/sa/istiod"},
//		})},
//		Limits: ads.Limits{Types: 100},
//	})
//
// Limits.Types must leave room for all kinds that a control plane requests: a stock Istio requests
// 16. Run the server after the cache has synced, too (configstore.WaitForSync); Options.Proxy
// decides who may connect. The provider is for one server. NewProvider panics if the cache is nil,
// or if there are two options.
func NewProvider(cache configstore.ConfigStoreCache, opts ...ProviderOptions) ads.Provider {
	o := options.One("mcp.NewProvider", opts)
	if cache == nil {
		panic("mcp.NewProvider: the cache is nil")
	}
	return newProvider(cache, o, func(node *core.Node, client *registry.Proxy) bool {
		return textOf(node, generatorKey) == generatorAPI && slices.Contains(o.ControlPlanes, client.Identity)
	})
}

// textOf returns a text of a node's metadata; "" for none.
func textOf(node *core.Node, key string) string {
	return node.GetMetadata().GetFields()[key].GetStringValue()
}

// provider is the provider of the configs of a cache.
type provider struct {
	cache configstore.ConfigStoreCache
	// configs are the configs in the server's roots, and nil until Attach. root is the root of the
	// last push.
	configs  *xdsupdate.Configs
	root     *xdsupdate.Root
	revision string
	// selects tells the clients that are sent configs.
	selects func(*core.Node, *registry.Proxy) bool
	// types has the kind of each type URL. typesOf has the type URLs of each kind in all its
	// versions, for control planes that request a version other than the canonical one.
	types   map[string]configstore.GroupVersionKind
	typesOf map[configstore.GroupVersionKind][]string
	// now is the snapshot of the last push.
	now *served
}

var _ ads.Provider = (*provider)(nil)

func newProvider(cache configstore.ConfigStoreCache, o ProviderOptions, selects func(*core.Node, *registry.Proxy) bool) *provider {
	p := &provider{
		cache: cache, revision: o.Revision, selects: selects,
		types: make(map[string]configstore.GroupVersionKind), typesOf: make(map[configstore.GroupVersionKind][]string),
	}
	for _, schema := range cache.Schemas().All() {
		for _, version := range append([]string{schema.GroupVersionKind.Version}, schema.Aliases...) {
			kind := schema.GroupVersionKind
			kind.Version = version
			p.types[typeURL(kind)] = schema.GroupVersionKind
			p.typesOf[schema.GroupVersionKind] = append(p.typesOf[schema.GroupVersionKind], typeURL(kind))
		}
	}
	p.now = &served{types: p.types}
	return p
}

func kindsOf(schemas configstore.Schemas) (kinds []configstore.GroupVersionKind) {
	for _, schema := range schemas.All() {
		kinds = append(kinds, schema.GroupVersionKind)
	}
	return kinds
}

// Name implements ads.Provider.
func (*provider) Name() string { return "mcp" }

// Attach implements ads.Provider: it subscribes to the cache.
func (p *provider) Attach(updater xdsupdate.XDSUpdater) {
	if p.configs != nil {
		panic("mcp: a provider is for one server")
	}
	p.configs = xdsupdate.FollowConfigs(updater, p.cache, kindsOf(p.cache.Schemas()), nil)
}

// clientPolicy distinguishes clients by their revision. It is the policy of their views.
type clientPolicy struct{ revision string }

// Group implements ads.Provider. It returns nil for clients that are sent no configs.
func (p *provider) Group(node *core.Node, client *registry.Proxy) any {
	if !p.selects(node, client) {
		return nil
	}
	if said := textOf(node, revisionKey); said != "" {
		return clientPolicy{said}
	}
	return clientPolicy{p.revision}
}

// Provide implements ads.Provider. The first call returns all existing objects, if the cache has
// synced.
func (p *provider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	changed := push.Root().ConfigsSince(p.root, p.configs)
	p.root = push.Root()
	if len(changed) == 0 {
		return p.now, ads.Changes{}
	}
	p.now = p.now.with(changed)
	out := ads.Changes{Names: make([]ads.ChangedName, 0, len(changed))}
	for key := range changed {
		name := resourceName(key.Name, key.Namespace)
		for _, typeURL := range p.typesOf[key.Kind] {
			out.Names = append(out.Names, ads.ChangedName{TypeURL: typeURL, Name: name})
		}
	}
	return p.now, out
}
