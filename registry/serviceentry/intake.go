// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// event is something that happens to the registry. Besides deleted exactly one
// field is set.
type event struct {
	// config is an object that changed; deleted says whether it is gone.
	config *configstore.Config
	// workload is one of another registry; deleted says whether it is gone.
	workload *registry.WorkloadInstance
	// mesh is the new state of the mesh, namespace that of a namespace, which may
	// be deleted.
	mesh      *Mesh
	namespace *Namespace
	deleted   bool
	resync    bool
	// configs are the configs to commit together with the result of the other events.
	configs *xdsupdate.Update
}

// enqueue enqueues a batch of the cache, as one. The queue has the events of the cache in one order
// with workloads of other registries, namespaces and the mesh, which come from goroutines of their
// own. The next state is made of everything that waits, with no lock held. The caller drains the
// queue.
//
// A batch may bring configs for other followers of the cache. They are committed with its result. It returns false
// for configs alone that need not wait for an earlier batch.
func (c *Controller) enqueue(changes []configstore.Change, configs *xdsupdate.Update) (taken bool) {
	if len(changes) == 0 && c.publisher.Idle() {
		return false
	}
	var room [4]event // most batches are small
	events := room[:0]
	for i := range changes {
		events = append(events, event{config: changes[i].Curr, deleted: changes[i].Event == configstore.EventDelete})
	}
	if configs != nil && !configs.Empty() {
		events = append(events, event{configs: configs})
	}
	c.publisher.Push(events...)
	return true
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
	c.publisher.Enqueue(event{workload: wi, deleted: e == registry.EventDelete})
}

// UpdateMesh replaces the state of the mesh. It converts all objects again and calls NetworkOf
// again. Only differences are reported.
func (c *Controller) UpdateMesh(m Mesh) { c.publisher.Enqueue(event{mesh: &m}) }

// UpdateNamespace adds or replaces a namespace, which must not be modified afterwards.
func (c *Controller) UpdateNamespace(n Namespace) { c.publisher.Enqueue(event{namespace: &n}) }

// DeleteNamespace makes a namespace unknown. Entries in it stay.
func (c *Controller) DeleteNamespace(name string) {
	c.publisher.Enqueue(event{namespace: &Namespace{Name: name}, deleted: true})
}

// ResyncEDS reports the endpoints of all hosts to the updater again.
func (c *Controller) ResyncEDS() { c.publisher.Enqueue(event{resync: true}) }

// pending are the queued events, reduced to the last one of each object.
type pending struct {
	// entries and own hold the last state of each object, nil if it is gone.
	entries latest[objectName, *configstore.Config]
	own     latest[objectName, *configstore.Config]
	foreign latest[registry.WorkloadKey, *registry.WorkloadInstance]
	resync  bool
	// everything means that every conversion may have a different result.
	everything bool
}

func (p *pending) reset() {
	p.entries.reset()
	p.own.reset()
	p.foreign.reset()
	p.resync, p.everything = false, false
}

// latest keeps the last value for each key, in the order of the first use of each key.
type latest[K comparable, V any] struct {
	keys   []K
	values []V
	index  map[K]int
}

func newLatest[K comparable, V any]() latest[K, V] { return latest[K, V]{index: map[K]int{}} }

func (l *latest[K, V]) put(k K, v V) {
	if i, ok := l.index[k]; ok {
		l.values[i] = v
		return
	}
	l.index[k] = len(l.keys)
	l.keys, l.values = append(l.keys, k), append(l.values, v)
}

func (l *latest[K, V]) reset() {
	clear(l.keys)
	clear(l.values)
	clear(l.index)
	l.keys, l.values = l.keys[:0], l.values[:0]
}

func (l *latest[K, V]) has(k K) bool {
	_, ok := l.index[k]
	return ok
}

// handle makes one batch of everything that is waiting.
func (c *Controller) handle(events []event) {
	b := c.batch
	defer b.reset() // also after a panic
	b.conversion = c.newConversion()
	b.collect(events)
	done := false
	defer func() {
		if !done && b.change.Configs != nil { // because other followers need them
			c.publisher.Publish(c.publisher.State(), &publish.Change{Configs: b.change.Configs})
		}
	}()
	b.apply()
	b.complete()
	done = true
	b.announce()
}

func (b *batch) apply() {
	p := &b.pending
	for i, config := range p.entries.values {
		if config == nil {
			b.deleteEntry(p.entries.keys[i])
		} else if d, hosts := b.conversion.definition(config); d != nil {
			b.putEntry(d, hosts)
		}
	}
	for i, config := range p.own.values {
		b.putOwn(p.own.keys[i], config)
	}
	for i, instance := range p.foreign.values {
		b.putForeign(p.foreign.keys[i], instance)
	}
}

// collect records the last event of each object.
func (b *batch) collect(events []event) {
	c, p := b.Controller, &b.pending
	var spaces []string
	for _, e := range events {
		switch {
		case e.config != nil:
			p.addConfig(e)
		case e.workload != nil:
			p.addWorkload(e)
		case e.mesh != nil:
			p.everything = true
			c.settings.mesh = *e.mesh
		case e.namespace != nil:
			spaces = append(spaces, e.namespace.Name)
			c.setNamespace(*e.namespace, e.deleted)
		case e.resync:
			p.resync = true
		case e.configs != nil:
			if b.change.Configs == nil {
				b.change.Configs = &xdsupdate.Update{}
			}
			b.change.Configs.Add(e.configs)
		}
	}
	if p.everything {
		spaces = slices.AppendSeq(spaces, maps.Keys(c.spaces))
	}
	slices.Sort(spaces)
	for _, namespace := range slices.Compact(spaces) {
		c.convertAgain(p, namespace, p.everything)
	}
	if len(spaces) > 0 || p.everything {
		b.conversion = c.newConversion()
	}
}

func (p *pending) addConfig(e event) {
	to, name := &p.entries, nameOf(e.config)
	if e.config.GroupVersionKind.Kind == istio.WorkloadEntry.Kind {
		to = &p.own
	}
	if e.deleted {
		to.put(name, nil)
	} else {
		to.put(name, e.config)
	}
}

func (p *pending) addWorkload(e event) {
	if e.deleted {
		p.foreign.put(e.workload.Key(), nil)
	} else {
		p.foreign.put(e.workload.Key(), e.workload)
	}
}

// setNamespace replaces the table of namespaces, which conversions hold on to.
func (c *Controller) setNamespace(n Namespace, deleted bool) {
	namespaces := maps.Clone(c.settings.namespaces)
	if deleted {
		delete(namespaces, n.Name)
	} else {
		namespaces[n.Name] = n
	}
	c.settings.namespaces = namespaces
}

// convertAgain adds the objects of a namespace that may look different now, in the order of
// their names: entries, and if the mesh changed WorkloadEntries, too.
func (c *Controller) convertAgain(p *pending, namespace string, mesh bool) {
	s := c.spaces[namespace]
	if s == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		if e := s.entries[name]; !p.entries.has(e.name) {
			p.entries.put(e.name, e.config)
		}
	}
	if !mesh {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.own)) {
		if config := s.own[name].config.Load(); !p.own.has(nameOf(config)) {
			p.own.put(nameOf(config), config)
		}
	}
}

func (c *Controller) newConversion() conversion {
	return conversion{options: &c.options, settings: c.settings, interner: c.interner}
}
