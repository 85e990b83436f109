// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"log/slog"
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/loglimit"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Policies provides the resources for Istio's traffic and security policies to an ads server.
//
//	policies := traffic.New(configs)
//	server := ads.New(services, ads.Options{Providers: []ads.Provider{policies}})
//
// The host runs the store. Clients receive changes by pushes of the server. If
// RequestAuthentications refer to keys by URI or issuer, the host also calls Run, which fetches the
// keys. Policies belong to one server.
type Policies struct {
	settings *settings
	store    configstore.ConfigStoreCache
	// configs are the configs in the server's roots, and nil until Attach. root is the root of the
	// last provided push. Only pushes use it.
	configs *xdsupdate.Configs
	root    *xdsupdate.Root
	// server is set by Attach, and nil if the updater is no server.
	server server
	// logger receives closed policies, up to the limit of logged.
	logger *slog.Logger
	logged loglimit.Limiter
	// keys are the label keys that policies use.
	keys   atomic.Pointer[map[string]struct{}]
	places *mesh.Places

	mu      sync.Mutex
	updater xdsupdate.XDSUpdater // set by Attach

	watches watches

	// last is the result of the last Provide, which alone sets it.
	last atomic.Pointer[provided]
}

var _ ads.Provider = (*Policies)(nil)

// New returns the policies of a store, which may still be empty. The server of the policies
// subscribes to the store: the policies are the content at that moment and all later changes.
//
// If the store is a configstore.Subscriber, as the caches of memory, aggregate and kube are, a
// push has each batch (configstore.BatchWriter) as a whole, together with the services that a
// registry of ServiceEntries of the same store and server makes of it, regardless of other
// handlers. Other caches are followed by event (xdsupdate.FollowConfigs).
func New(configs configstore.ConfigStoreCache, opts ...Options) *Policies {
	o := options.One("traffic.New", opts)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Policies{settings: newSettings(o), store: configs, logger: o.Logger}
	p.settings.keys = newTokenKeys(o, p.settings.limits.KeyBytes, p.requestPush)
	p.settings.KeysFrom = p.settings.keys.cache.Get
	p.keys.Store(&map[string]struct{}{})
	p.places = mesh.NewPlaces(func() *mesh.Workloads {
		if last := p.last.Load(); last != nil {
			return last.state.workloads
		}
		return nil
	})
	return p
}

// Name implements ads.Provider.
func (p *Policies) Name() string { return "traffic" }

// Attach implements ads.Provider. It panics if called twice.
func (p *Policies) Attach(updater xdsupdate.XDSUpdater) {
	p.attach(updater)
	p.configs = xdsupdate.FollowConfigs(updater, p.store, objects.Kinds(), objects.SameConfig)
	p.server, _ = updater.(server)
}

func (p *Policies) attach(updater xdsupdate.XDSUpdater) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.updater != nil {
		panic("traffic: Policies belong to one server")
	}
	p.updater = updater
}

// requestPush requests a push for changed configs.
func (p *Policies) requestPush(keys map[configstore.ConfigKey]struct{}) {
	p.mu.Lock()
	updater := p.updater
	p.mu.Unlock()
	if updater != nil {
		updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, ConfigsUpdated: keys, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1},
		})
	}
}

// regroup updates the label keys that policies use from an index. It reports whether they have
// changed.
func (p *Policies) regroup(x *objects.Index) bool {
	if last := p.last.Load(); last != nil && last.state.Index == x {
		return false
	}
	keys := make(map[string]struct{})
	for key := range x.LabelKeys.All() {
		keys[key] = struct{}{}
	}
	for _, key := range objects.FailoverKeys(p.settings.Mesh.GetLocalityLbSetting()) {
		keys[key] = struct{}{}
	}
	if maps.Equal(keys, *p.keys.Load()) {
		return false
	}
	p.keys.Store(&keys)
	return true
}
