// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// publisher writes the API server's objects of one scope into the cache. It is the store of the
// scope's reflector; only the reflector's goroutine uses it.
//
// It compares objects with the published state, so that objects that a reflector repeats, after a
// list or a broken watch, are not events.
type publisher struct {
	scope *scope
	// mutations is the batch in progress.
	mutations []configstore.Mutation
}

// Add implements cache.ReflectorStore.
func (p *publisher) Add(obj any) error { return p.Update(obj) }

// Update implements cache.ReflectorStore.
func (p *publisher) Update(obj any) error {
	if o, ok := obj.(*object); ok {
		p.put(o)
	}
	p.commit()
	return nil
}

// Delete implements cache.ReflectorStore.
func (p *publisher) Delete(obj any) error {
	if o, ok := obj.(*object); ok {
		p.remove(objectKey{o.Namespace, o.Name})
	}
	p.commit()
	return nil
}

// Replace implements cache.ReflectorStore. The difference from the published state becomes one
// batch.
func (p *publisher) Replace(list []any, _ string) error {
	p.mutations = make([]configstore.Mutation, 0, len(list))
	there := make(map[objectKey]bool, len(list))
	objects := make([]*object, 0, len(list))
	for _, obj := range list {
		if o, ok := obj.(*object); ok {
			there[objectKey{o.Namespace, o.Name}] = true
			objects = append(objects, o)
		}
	}
	slices.SortFunc(objects, func(a, b *object) int { // lists are unordered
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range objects {
		p.put(o)
	}
	k := p.scope.kind
	for _, old := range k.cache.published.List(k.gvk(), p.scope.namespace) {
		if key := (objectKey{old.Namespace, old.Name}); !there[key] {
			p.remove(key)
		}
	}
	k.retain(p.scope.namespace, there)
	p.commit()
	p.scope.resolve()
	return nil
}

// Resync implements cache.ReflectorStore.
func (p *publisher) Resync() error { return nil }

// clear removes everything.
func (p *publisher) clear() {
	k := p.scope.kind
	for _, old := range k.cache.published.List(k.gvk(), p.scope.namespace) {
		p.remove(objectKey{old.Namespace, old.Name})
	}
	k.retain(p.scope.namespace, nil)
	p.commit()
}

// put adds the mutations for an object to the batch, if it differs from the published one. If the
// object cannot be decoded or is invalid, its last good state stays; the state of a deleted object
// of the same name is removed. An object without a last good state is published as a placeholder,
// if its kind has placeholders.
func (p *publisher) put(o *object) {
	k := p.scope.kind
	key := objectKey{o.Namespace, o.Name}
	old := k.cache.published.Get(k.gvk(), o.Name, o.Namespace)
	if !k.cache.selects(o, old != nil) {
		p.remove(key)
		return
	}
	if old != nil && old.ResourceVersion == o.ResourceVersion && old.UID == string(o.UID) {
		return // The verdict has not changed either.
	}
	config, found := k.decodeGuarded(o)
	again := old != nil && old.UID != string(o.UID) // deleted and created again
	if found.err != nil {
		if found.kept = old != nil && !again && !configstore.IsPlaceholder(old); !found.kept {
			config, found.closed = k.schema.Placeholder(config, found.err)
		}
	}
	k.judge(key, o, found)
	if again {
		p.drop(key)
	}
	if found.err != nil && !found.closed {
		return
	}
	switch {
	case old == nil || again:
		p.add(configstore.OpCreate, config)
	default:
		p.add(configstore.OpUpdate, config)
	}
}

// remove adds the removal of an object to the batch, if it is published, and drops its verdict.
func (p *publisher) remove(key objectKey) {
	k := p.scope.kind
	k.judge(key, nil, findings{})
	if k.cache.published.Get(k.gvk(), key.name, key.namespace) != nil {
		p.drop(key)
	}
}

func (p *publisher) drop(key objectKey) {
	p.add(configstore.OpDelete, configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: p.scope.kind.gvk(), Name: key.name, Namespace: key.namespace},
	})
}

func (p *publisher) add(op configstore.Op, config configstore.Config) {
	p.mutations = append(p.mutations, configstore.Mutation{Op: op, Config: config})
}

// commit publishes the batch.
func (p *publisher) commit() {
	mutations := p.mutations
	p.mutations = nil
	for _, r := range commit.Show(p.scope.kind.cache.published, mutations) {
		p.scope.note(r.Err) // Not expected, because decode has checked the objects.
	}
}

// revisionLabel is the label of objects that belong to one revision of a control plane, as in Istio
// 1.30.
const revisionLabel = "istio.io/rev"

// selects reports by the metadata of an object whether it belongs to this cache. isIn reports
// whether the cache has it now.
func (c *Cache) selects(o *object, isIn bool) bool {
	if revision, labelled := o.Labels[revisionLabel]; labelled && c.opts.Revision != "" && revision != c.opts.Revision {
		return false
	}
	c.mu.Lock()
	namespaces := c.namespaces
	c.mu.Unlock()
	return o.Namespace == "" || namespaces == nil || c.selectsNamespace(namespaces, o.Namespace, isIn)
}
