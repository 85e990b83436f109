// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// kinds returns those that take effect here.
func kinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar}
}

// Policies makes the traffic kinds of a config store take effect in an ads server.
//
//	policies := traffic.New(configs)
//	server := ads.New(services, ads.Options{Provider: policies})
//
// A host runs the store; changes reach the clients by way of the server's pushes.
// Policies belong to one server.
type Policies struct {
	settings *settings
	configs  configstore.ConfigStoreCache
	updater  xdsupdate.XDSUpdater // since Attach
	// proxies returns what the server knows of proxies; nil: it does not say. It is set by
	// Attach.
	proxies func() []ads.ProxyStatus
	// keys are those of the labels that make a difference in a proxy.
	keys    atomic.Pointer[map[string]struct{}]
	targets targets

	mu sync.Mutex
	// changed are the configs of which there were events since the last push.
	changed map[configstore.ConfigKey]struct{}

	// last is what was provided last; only Provide sets it.
	last atomic.Pointer[provided]
}

var _ ads.Provider = (*Policies)(nil)

// New returns the policies of a store, which may still be empty. It registers
// handlers with it.
func New(configs configstore.ConfigStoreCache, opts ...Options) *Policies {
	p := &Policies{
		settings: newSettings(options.One("traffic.New", opts)), configs: configs,
		changed: make(map[configstore.ConfigKey]struct{}),
	}
	p.keys.Store(&map[string]struct{}{})
	if batches, ok := configstore.As[configstore.BatchSubscriber](configs); ok {
		batches.SubscribeBatch(kinds(), p.onChanges)
		return p
	}
	for _, kind := range kinds() {
		configs.RegisterEventHandler(kind, p.onEvent)
	}
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

// onEvent takes an event of a cache that has no batches.
func (p *Policies) onEvent(old, curr configstore.Config, event configstore.Event) {
	p.onChanges([]configstore.Change{{Event: event, Old: &old, Curr: &curr}})
}

// onChanges notes all changes of a batch at once, so that no push has some of what was
// written together, and asks for a push. A change of an object's status, labels or
// annotations concerns no client.
func (p *Policies) onChanges(changes []configstore.Change) {
	keys := make(map[configstore.ConfigKey]struct{}, len(changes))
	for _, c := range changes {
		if c.Event != configstore.EventUpdate || !c.Old.CreationTimestamp.Equal(c.Curr.CreationTimestamp) ||
			!configstore.EqualMessage(c.Old.Spec, c.Curr.Spec) {
			keys[c.Curr.Key()] = struct{}{}
		}
	}
	if len(keys) == 0 {
		return
	}
	p.mu.Lock()
	maps.Copy(p.changed, keys)
	updater := p.updater
	p.mu.Unlock()
	if updater != nil {
		updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, ConfigsUpdated: keys, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1},
		})
	}
}

// take returns the configs that have changed since the last call.
func (p *Policies) take() map[configstore.ConfigKey]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.changed
	p.changed = make(map[configstore.ConfigKey]struct{})
	return out
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
