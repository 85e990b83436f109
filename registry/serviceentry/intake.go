// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// event is something that happens to the registry. Exactly one field is set.
type event struct {
	// config is an object that changed; deleted says whether it is gone.
	config  *configstore.Config
	deleted bool
	// workload is one of another registry; deleted says whether it is gone.
	workload *registry.WorkloadInstance
	// mesh is the new state of the mesh, namespace that of a namespace, which may
	// be deleted.
	mesh      *Mesh
	namespace *Namespace
	// subscribe adds a handler, after it was told of what there is.
	subscribe func()
	resync    bool
}

func (c *Controller) configsChanged(changes []configstore.Change) {
	events := make([]event, len(changes))
	for i, change := range changes {
		events[i] = event{config: change.Curr, deleted: change.Event == configstore.EventDelete}
	}
	c.queue.Add(events...)
}

func (c *Controller) configChanged(_, curr configstore.Config, e configstore.Event) {
	c.queue.Add(event{config: &curr, deleted: e == configstore.EventDelete})
}

// WorkloadInstanceHandler takes a workload of another registry, for example as
// the handler in its AppendWorkloadHandler. For EventDelete only the key of the
// workload counts. A workload that this registry itself announced is ignored, as
// are all if Options.WorkloadEntriesOnly is set; no workload that was taken is
// ever announced to the workload handlers of this registry. The instance must not
// be modified any more.
func (c *Controller) WorkloadInstanceHandler(wi *registry.WorkloadInstance, e registry.Event) {
	if c.options.WorkloadEntriesOnly || wi == nil || wi.Endpoint == nil && e != registry.EventDelete {
		return
	}
	c.queue.Add(event{workload: wi, deleted: e == registry.EventDelete})
}

// UpdateMesh replaces the state of the mesh. Everything is converted anew, and
// NetworkOf asked again; what does not differ is not reported.
func (c *Controller) UpdateMesh(m Mesh) { c.queue.Add(event{mesh: &m}) }

// UpdateNamespace makes a namespace known, or replaces what is known of it. It
// must not be modified any more.
func (c *Controller) UpdateNamespace(n Namespace) { c.queue.Add(event{namespace: &n}) }

// DeleteNamespace makes a namespace unknown. Entries in it stay.
func (c *Controller) DeleteNamespace(name string) {
	c.queue.Add(event{namespace: &Namespace{Name: name}, deleted: true})
}

// ResyncEDS reports the endpoints of all hosts to the updater again.
func (c *Controller) ResyncEDS() { c.queue.Add(event{resync: true}) }

// pending is what is waiting, without what was overtaken by a later event.
type pending struct {
	// entries and own hold the last state of each object, nil if it is gone.
	entries map[objectName]*configstore.Config
	own     map[objectName]*configstore.Config
	foreign map[registry.WorkloadKey]*registry.WorkloadInstance
	// subscriptions are made after everything else.
	subscriptions []func()
	resync        bool
}

// handle makes one batch of everything that is waiting.
func (c *Controller) handle(events []event) {
	p := c.collect(events)
	b := &batch{Controller: c, conversion: c.newConversion(), resync: p.resync}
	b.apply(p)
	b.settle()
	b.publish()
	b.compareProxies()
	b.announce()
	for _, h := range b.hosts {
		h.work = nil
	}
	for _, subscribe := range p.subscriptions {
		subscribe()
	}
}

func (b *batch) apply(p *pending) {
	for name, config := range p.entries {
		if config == nil {
			b.deleteEntry(name)
			continue
		}
		if d, ok := b.conversion.definition(config); ok {
			b.putEntry(d)
		}
	}
	for name, config := range p.own {
		b.putOwn(name, config)
	}
	for k, instance := range p.foreign {
		b.putForeign(k, instance)
	}
}

func (c *Controller) collect(events []event) *pending {
	p := &pending{
		entries: map[objectName]*configstore.Config{}, own: map[objectName]*configstore.Config{},
		foreign: map[registry.WorkloadKey]*registry.WorkloadInstance{},
	}
	everything, spaces := false, map[string]bool{}
	for _, e := range events {
		switch {
		case e.config != nil:
			p.addConfig(e)
		case e.workload != nil:
			p.addWorkload(e)
		case e.mesh != nil:
			everything = true
			c.setMesh(*e.mesh)
		case e.namespace != nil:
			spaces[e.namespace.Name] = true
			c.setNamespace(*e.namespace, e.deleted)
		case e.subscribe != nil:
			p.subscriptions = append(p.subscriptions, e.subscribe)
		case e.resync:
			p.resync = true
		}
	}
	if everything || len(spaces) > 0 {
		c.convertAgain(p, everything, spaces)
	}
	return p
}

func (p *pending) addConfig(e event) {
	to := p.entries
	if e.config.GroupVersionKind.Kind == istio.WorkloadEntry.Kind {
		to = p.own
	}
	if e.deleted {
		to[nameOf(e.config)] = nil
	} else {
		to[nameOf(e.config)] = e.config
	}
}

func (p *pending) addWorkload(e event) {
	if e.deleted {
		p.foreign[e.workload.Key()] = nil
	} else {
		p.foreign[e.workload.Key()] = e.workload
	}
}

// setNamespace replaces the table of namespaces, which conversions hold on to.
func (c *Controller) setNamespace(n Namespace, deleted bool) {
	namespaces := maps.Clone(c.namespaces)
	if deleted {
		delete(namespaces, n.Name)
	} else {
		namespaces[n.Name] = n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespaces = namespaces
}

func (c *Controller) setMesh(m Mesh) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mesh = m
}

// convertAgain adds the objects that may look different now.
func (c *Controller) convertAgain(p *pending, everything bool, spaces map[string]bool) {
	for name, e := range c.entries {
		if _, changed := p.entries[name]; !changed && (everything || spaces[name.namespace]) {
			p.entries[name] = e.config
		}
	}
	if !everything {
		return
	}
	for name := range c.own {
		if _, changed := p.own[name]; changed {
			continue
		}
		// What the cache has may be fresher than the events so far; those that it
		// overtakes find nothing to do.
		if config := c.configs.Get(istio.WorkloadEntry, name.name, name.namespace); config != nil {
			p.own[name] = config
		}
	}
}

func (c *Controller) newConversion() conversion {
	return conversion{options: &c.options, mesh: c.mesh, namespaces: c.namespaces, intern: c.interner.acquire}
}
