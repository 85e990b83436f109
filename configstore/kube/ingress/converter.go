// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"log/slog"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/configset"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Converter maintains the Gateways, VirtualServices and statuses for a set of objects. Create it
// with NewConverter. Its methods must not be called concurrently; any goroutine may read its
// snapshots.
type Converter struct {
	opts      Options
	logger    *slog.Logger // of the Cache
	schemas   configstore.Schemas
	mesh      Mesh
	ingresses map[Key]*ingress
	classes   map[string]*class
	services  map[Key]*service
	pods      map[Key]*pod // in Options.Namespace
	nodes     map[string][]string

	// The Ingresses that depend on an IngressClass or a Service.
	byClass   index[string]
	byService index[Key]
	// hosts are our Ingresses with routes for a host, by host.
	hosts index[string]
	// served are the existing VirtualServices, by host.
	served map[string]Key

	// The outdated results.
	dirty          map[Key]bool
	dirtyHosts     map[string]bool
	dirtyAddresses bool

	published *Snapshot
	touched   bool // the rest of published has changed since Apply began
	configs   configset.Edit
	statuses  map[Key]bool
}

// Update is the result of a call of Apply.
type Update struct {
	// Before and After are the snapshots before and after the call. They are identical if nothing
	// has changed.
	Before, After *Snapshot
	// Changes contains one change for each changed config, by kind, namespace and name: first the
	// Gateways, then the VirtualServices. The Revision is 0.
	Changes []configstore.Change
	// Statuses are the Ingresses whose wanted status has changed, or that have become ours or are
	// not ours any more, sorted.
	Statuses []Key
}

// NewConverter returns a converter without objects, with DefaultMesh.
func NewConverter(opts ...Options) *Converter {
	c := &Converter{
		opts: options.One("ingress.NewConverter", opts).withDefaults(), mesh: DefaultMesh(), published: &Snapshot{},
		schemas:   istio.Schemas(),
		ingresses: map[Key]*ingress{}, classes: map[string]*class{}, services: map[Key]*service{}, pods: map[Key]*pod{},
		nodes: map[string][]string{}, byClass: index[string]{}, byService: index[Key]{}, hosts: index[string]{},
		served: map[string]Key{},
	}
	c.settled()
	return c
}

// Apply applies changes and returns their combined result. The last change of an object counts.
func (c *Converter) Apply(changes ...Change) Update {
	before := c.published
	for _, change := range changes {
		if change.apply != nil {
			c.confine("a change", func() { change.apply(c) })
		}
	}
	next := *before
	c.published = &next
	for _, key := range slices.SortedFunc(maps.Keys(c.dirty), Key.Compare) {
		c.confine("Ingress "+key.String(), func() { c.convert(key) })
	}
	for _, host := range slices.Sorted(maps.Keys(c.dirtyHosts)) {
		c.confine("host "+host, func() { c.serve(host) })
	}
	if c.dirtyAddresses {
		c.locate()
	}
	next.configs = c.configs.Set()
	update := Update{
		Before: before, After: c.published, Changes: c.configs.Settle(),
		Statuses: slices.SortedFunc(maps.Keys(c.statuses), Key.Compare),
	}
	if !c.touched && len(update.Changes) == 0 {
		c.published, update.After = before, before
	}
	c.settled()
	return update
}

// confine confines a panic to the object that f handles.
func (c *Converter) confine(object string, f func()) { guard.Confine(c.logger, "converter", object, f) }

// settled resets the recorded changes. It allocates new maps, because clearing a map that was large
// once would remain expensive.
func (c *Converter) settled() {
	c.dirty, c.dirtyHosts, c.statuses = map[Key]bool{}, map[string]bool{}, map[Key]bool{}
	c.dirtyAddresses, c.touched = false, false
}

// Snapshot returns the present snapshot.
func (c *Converter) Snapshot() *Snapshot { return c.published }

func (c *Converter) setIngress(key Key, o *networkingv1.Ingress) {
	old := c.ingresses[key]
	if o == nil && old == nil || o != nil && old != nil && sameInput(old.object, o) {
		return
	}
	c.dirty[key] = true
	if old != nil {
		c.index(old, index[string].remove, index[Key].remove)
	}
	if o == nil {
		old.object = nil // convert deletes it
		return
	}
	i := &ingress{key: key}
	if old != nil {
		i = old
	}
	i.object = o
	c.ingresses[key] = i
	c.index(i, index[string].add, index[Key].add)
}

// sameInput reports whether two states of an Ingress have the same result.
func sameInput(a, b *networkingv1.Ingress) bool {
	if a == nil || a == b {
		return a == b
	}
	classA, hasA := a.Annotations[classAnnotation]
	classB, hasB := b.Annotations[classAnnotation]
	return hasA == hasB && classA == classB && a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		apiequality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// index adds an Ingress to, or removes it from, the indices by IngressClass and by Service.
func (c *Converter) index(i *ingress, byClass func(index[string], string, Key), byService func(index[Key], Key, Key)) {
	if i.object == nil {
		return
	}
	if name := i.object.Spec.IngressClassName; name != nil {
		byClass(c.byClass, *name, i.key)
	}
	for backend := range backendsOf(i.object) {
		if backend.Service != nil && backend.Service.Port.Name != "" {
			byService(c.byService, Key{i.key.Namespace, backend.Service.Name}, i.key)
		}
	}
}

func (c *Converter) setClass(name string, next *class) {
	old := c.classes[name]
	if old == nil && next == nil || old != nil && next != nil && *old == *next {
		return
	}
	put(c.classes, name, next, next != nil)
	for key := range c.byClass[name] {
		c.dirty[key] = true
	}
}

func (c *Converter) setService(key Key, next *service) {
	old := c.services[key]
	put(c.services, key, next, next != nil)
	if (old == nil) != (next == nil) || old != nil && !maps.Equal(old.ports, next.ports) {
		for user := range c.byService[key] {
			c.dirty[user] = true
		}
	}
	if key.Namespace == c.opts.Namespace && key.Name == c.mesh.Service {
		c.dirtyAddresses = true
	}
}

func (c *Converter) setPod(key Key, next *pod) {
	if key.Namespace != c.opts.Namespace {
		return
	}
	put(c.pods, key, next, next != nil)
	c.dirtyAddresses = c.dirtyAddresses || c.mesh.Service == ""
}

func (c *Converter) setNode(name string, next []string) {
	put(c.nodes, name, next, next != nil)
	c.dirtyAddresses = c.dirtyAddresses || c.mesh.Service == ""
}

func (c *Converter) setMesh(m Mesh) {
	if m == c.mesh {
		return
	}
	c.mesh, c.dirtyAddresses = m, true
	for key := range c.ingresses {
		c.dirty[key] = true
	}
}

// put sets a key if there is true, and deletes it otherwise.
func put[K comparable, V any](m map[K]V, k K, v V, there bool) {
	if there {
		m[k] = v
	} else {
		delete(m, k)
	}
}

// publish sets the config of a key; nil removes it.
func (c *Converter) publish(kind configstore.GroupVersionKind, key Key, next *configstore.Config) {
	c.configs.Put(configstore.ConfigKey{Kind: kind, Name: key.Name, Namespace: key.Namespace}, next)
}

// index is a map of sets.
type index[K comparable] map[K]map[Key]bool

func (x index[K]) add(k K, of Key) {
	if x[k] == nil {
		x[k] = map[Key]bool{}
	}
	x[k][of] = true
}

func (x index[K]) remove(k K, of Key) {
	delete(x[k], of)
	if len(x[k]) == 0 {
		delete(x, k)
	}
}
