// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Policies makes the traffic kinds of a config store take effect in an ads server.
//
//	policies := traffic.New(configs)
//	server := ads.New(services, ads.Options{Providers: []ads.Provider{policies}})
//
// A host runs the store; changes reach the clients by way of the server's pushes. Where RequestAuthentications name keys
// by URI or issuer the host has them fetched: see Run.
// Policies belong to one server.
type Policies struct {
	settings *settings
	store    configstore.ConfigStoreCache
	// configs are those in the roots of the server; nil until Attach. root is that of the last
	// push that was provided; only pushes use it.
	configs *xdsupdate.Configs
	root    *xdsupdate.Root
	// proxies returns what the server knows of proxies; nil: it does not say. It is set by
	// Attach.
	proxies func() []ads.ProxyStatus
	// keys are those of the labels that make a difference in a proxy.
	keys    atomic.Pointer[map[string]struct{}]
	targets targets
	servers servers

	mu      sync.Mutex
	updater xdsupdate.XDSUpdater // since Attach

	// last is what was provided last; only Provide sets it.
	last atomic.Pointer[provided]
}

var _ ads.Provider = (*Policies)(nil)

// New returns the policies of a store, which may still be empty. The server that they are given to
// subscribes to it: policies are what there is then, and what the store delivers from then on. A
// push has each commit as a whole (configstore.BatchWriter), with what a registry of
// ServiceEntries of the same store and the same server makes of it, if the store is a
// configstore.ListSubscriber, as the caches of memory, aggregate and kube; whatever other
// handlers do. Of other caches events, or batches, count one by one
// (xdsupdate.FollowConfigs).
func New(configs configstore.ConfigStoreCache, opts ...Options) *Policies {
	o := options.One("traffic.New", opts)
	p := &Policies{settings: newSettings(o), store: configs}
	p.settings.keys = newTokenKeys(o, p.settings.limits.KeyBytes, p.requestPush)
	p.keys.Store(&map[string]struct{}{})
	p.servers.last = p.last.Load
	return p
}

// Name implements ads.Provider.
func (p *Policies) Name() string { return "traffic" }

// Attach implements ads.Provider. It panics if there is a server already.
func (p *Policies) Attach(updater xdsupdate.XDSUpdater) {
	p.attach(updater)
	p.configs = xdsupdate.FollowConfigs(updater, p.store, kinds(), sameConfig)
	if server, ok := updater.(interface{ Proxies() []ads.ProxyStatus }); ok {
		p.proxies = server.Proxies
	}
}

func (p *Policies) attach(updater xdsupdate.XDSUpdater) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.updater != nil {
		panic("traffic: Policies belong to one server")
	}
	p.updater = updater
}

// requestPush asks the server for a push of what has changed.
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

// regroup makes the keys of labels what an index looks at, and reports whether
// they are others than before.
func (p *Policies) regroup(x *index) bool {
	if last := p.last.Load(); last != nil && last.state.index == x {
		return false
	}
	keys := make(map[string]struct{})
	for key := range x.labelKeys.All() {
		keys[key] = struct{}{}
	}
	for _, key := range failoverKeys(p.settings.mesh.GetLocalityLbSetting()) {
		keys[key] = struct{}{}
	}
	if maps.Equal(keys, *p.keys.Load()) {
		return false
	}
	p.keys.Store(&keys)
	return true
}
