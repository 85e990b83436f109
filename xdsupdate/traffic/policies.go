// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configfeed"
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
	store    configstore.ConfigStore
	configs  *configfeed.Feed
	// taken are the configs that have changed until the last Capture; nil: none. captures:
	// the server calls it; else Provide takes them. Only pushes use both.
	taken    map[configstore.ConfigKey]*configstore.Config
	captures bool
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

// New returns the policies of a store, which may still be empty. It subscribes to it:
// policies are what there is now, and what the store delivers from then on. Registries of
// the same store see it in the same way, so that no push has the one without the other.
//
// What a push has depends on what the cache can do:
//
//   - configstore.ListSubscriber, as the caches of memory, aggregate and kube: what was
//     committed as one (configstore.BatchWriter) comes as one, whatever other handlers
//     do. Through an aggregate that holds for the batches of each of its stores.
//   - configstore.BatchSubscriber alone: the same for batches that are committed after
//     New has returned. New lists one kind after the other, and the next
//     pushes may have what was before it until the events that were due are delivered.
//   - Neither: events count one by one.
func New(configs configstore.ConfigStoreCache, opts ...Options) *Policies {
	o := options.One("traffic.New", opts)
	p := &Policies{settings: newSettings(o), store: configs}
	p.settings.keys = newTokenKeys(o, p.settings.limits.KeyBytes, p.requestPush)
	p.keys.Store(&map[string]struct{}{})
	p.configs = newConfigFeed(configs, p.requestPush)
	p.servers.last = p.last.Load
	return p
}

// Name implements ads.Provider.
func (p *Policies) Name() string { return "traffic" }

// Attach implements ads.Provider. It panics if there is a server already.
func (p *Policies) Attach(updater xdsupdate.XDSUpdater) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.updater != nil {
		panic("traffic: Policies belong to one server")
	}
	p.updater = updater
	if server, ok := updater.(interface{ Proxies() []ads.ProxyStatus }); ok {
		p.proxies = server.Proxies
	}
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
