// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"reflect"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// sources holds the chains of caches. The Pushers of a Multi share it.
type sources struct {
	mu     sync.Mutex
	chains map[configstore.ConfigStoreCache]*chain
}

func (p *Pusher) sourcesNow() *sources {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sources
}

func (s *sources) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.chains) == 0
}

// chain returns the chain of a cache. If there is none, it creates one or returns nil.
func (s *sources) chain(cache configstore.ConfigStoreCache, create bool) *chain {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := reflect.ValueOf(cache).Comparable() // otherwise it cannot be a key
	var c *chain
	if known {
		c = s.chains[cache]
	}
	if c == nil && create {
		if c = newChain(cache); known {
			s.chains[cache] = c
		}
	}
	return c
}

// chain hands the commits of a cache to the registries that read it, and commits the followed configs
// together with the resulting services.
type chain struct {
	cache configstore.ConfigStoreCache
	lists configstore.Subscriber // nil if the cache is no Subscriber; then registries do not join

	// mu keeps the listings and the commits in order.
	mu sync.Mutex
	// followers and stages are replaced, and never modified.
	followers []*Configs
	stages    []*stage
	cancel    func()
	// listing counts the listings of the cache. Commits of earlier subscriptions are ignored.
	listing int
}

// stage is a registry.
type stage struct {
	pushers []*Pusher
	kinds   []configstore.GroupVersionKind
	enqueue func(changes []configstore.Change, configs *Update) (taken bool)
	deliver func()
}

// commit is a commit of the cache, or its complete content if listed is true.
type commit struct {
	changes []configstore.Change
	// listing is the listing of the subscription.
	listing int
	listed  bool
}

func newChain(cache configstore.ConfigStoreCache) *chain {
	c := &chain{cache: cache, cancel: func() {}}
	c.lists, _ = configstore.As[configstore.Subscriber](cache)
	return c
}

// Join subscribes a registry to a cache whose configs are followed (FollowConfigs). enqueue gets the existing
// configs first, and then the commits. It is called with a lock held, so it only puts them into the queue of the
// registry, which deliver handles afterwards. The registry adds the second argument, unless empty, to the update with
// the resulting services. enqueue returns false if there are no changes and the registry has committed everything
// that it got before; then the argument is committed without it. Join returns false if no configs of the cache are
// followed; then the registry subscribes by itself. leave may be called many times.
func (i Inbox) Join(
	cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind,
	enqueue func(changes []configstore.Change, configs *Update) (taken bool), deliver func(),
) (leave func(), joined bool) {
	pushers := pushersOf(i.to)
	if len(pushers) == 0 {
		return nil, false
	}
	c := pushers[0].sourcesNow().chain(cache, false)
	if c == nil || c.lists == nil {
		return nil, false
	}
	s := &stage{pushers, kinds, enqueue, deliver}
	c.relist(func() { c.stages = append(slices.Clip(c.stages), s) })
	return sync.OnceFunc(func() { c.relist(func() { c.stages = without(c.stages, s) }) }), true
}

// follow adds a follower and returns a function that removes it.
func (c *chain) follow(f *Configs) (leave func()) {
	if c.lists != nil {
		c.relist(func() { c.followers = append(slices.Clip(c.followers), f) })
		return sync.OnceFunc(func() { c.relist(func() { c.followers = without(c.followers, f) }) })
	}
	return c.followEvents(f)
}

// without returns a copy of a list without an element.
func without[T comparable](list []T, element T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == element })
}

// followEvents adds a follower of a cache that cannot list and subscribe at one moment. An object with an
// event before its kind was listed keeps the state of the event, because the list may be older.
func (c *chain) followEvents(f *Configs) (leave func()) {
	early := map[configstore.ConfigKey]struct{}{}
	add := func(changes []configstore.Change) {
		var u Update
		f.note(&u, commit{changes: changes})
		u.commitConfigs()
	}
	leave = configfeed.Subscribe(c.cache, f.kinds, func(changes []configstore.Change) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range changes {
			if early != nil {
				early[changes[i].Curr.Key()] = struct{}{}
			}
		}
		add(changes)
	})
	var list []configstore.Change
	for _, kind := range f.kinds {
		list = append(list, configfeed.Adds(c.cache.List(kind, configstore.NamespaceAll))...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	add(slices.DeleteFunc(list, func(change configstore.Change) bool {
		_, newer := early[change.Curr.Key()]
		return newer
	}))
	early = nil
	return leave
}

// relist changes the receivers and replaces the subscription: the receivers get the complete content of one
// moment, and then the commits after it.
func (c *chain) relist(change func()) {
	for _, s := range c.relisted(change) {
		s.deliver()
	}
}

func (c *chain) relisted(change func()) []*stage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	change()
	c.listing++
	listing := c.listing
	var kinds []configstore.GroupVersionKind
	for _, f := range c.followers {
		kinds = append(kinds, f.kinds...)
	}
	for _, s := range c.stages {
		kinds = append(kinds, s.kinds...)
	}
	if c.cancel = func() {}; len(kinds) > 0 {
		var objects []*configstore.Config
		objects, c.cancel = c.lists.Subscribe(kinds, func(changes []configstore.Change) {
			for _, s := range c.take(listing, changes) {
				s.deliver()
			}
		})
		c.commitLocked(commit{configfeed.Adds(objects), listing, true})
	}
	return c.stages
}

// hasKind reports whether a kind is one of some, in any version.
func hasKind(kinds []configstore.GroupVersionKind, kind configstore.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k configstore.GroupVersionKind) bool { return k.Group == kind.Group && k.Kind == kind.Kind })
}

// take commits the changes of a subscription, and returns the registries that may have work.
func (c *chain) take(listing int, changes []configstore.Change) []*stage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if listing == c.listing {
		c.commitLocked(commit{changes, listing, false})
	}
	return c.stages
}

// commitLocked hands a commit to the registries. The youngest registry of a Pusher gets the configs for it.
// Configs without a registry, or with an idle one that the commit does not change, are an update of their own.
func (c *chain) commitLocked(own commit) {
	var alone Update
	configs := make([]Update, len(c.stages))
	for _, f := range c.followers {
		u := &alone
		for i, s := range c.stages {
			if slices.Contains(s.pushers, f.pusher) {
				u = &configs[i]
			}
		}
		f.note(u, own)
	}
	alone.commitConfigs()
	for i, s := range c.stages {
		changes, u := own.of(s.kinds), &configs[i]
		if (len(changes) > 0 || !u.Empty()) && !s.enqueue(changes, u) {
			u.commitConfigs()
		}
	}
}

// of returns a copy of the changes of some kinds.
func (c commit) of(kinds []configstore.GroupVersionKind) []configstore.Change {
	return slices.DeleteFunc(slices.Clone(c.changes), func(change configstore.Change) bool {
		return !hasKind(kinds, change.Curr.GroupVersionKind)
	})
}

// commitConfigs commits an update of configs alone, to their Pushers.
func (u *Update) commitConfigs() {
	for calls := u.calls; len(calls) > 0; {
		p := calls[0].configs.pusher
		var one, others Update
		for _, c := range calls {
			if c.configs.pusher == p {
				one.calls = append(one.calls, c)
			} else {
				others.calls = append(others.calls, c)
			}
		}
		p.begin()
		p.commit(&one, nil)
		calls = others.calls
	}
}
