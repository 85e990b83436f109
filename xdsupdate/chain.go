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

// chain delivers the commits of a cache to the registries that read it, and commits the followed configs
// together with the resulting services.
type chain struct {
	cache configstore.ConfigStoreCache
	lists configstore.Subscriber // nil if the cache is no Subscriber; then registries do not join
	work  calls[commit]

	// mu keeps a listing and the later commits in order.
	mu        sync.Mutex
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
	handle  func(changes []configstore.Change, configs *Update) (taken bool)
}

// commit is a commit of the cache, or its complete content.
type commit struct {
	changes []configstore.Change
	// listing is the listing of the subscription. listed is true if the changes are the complete content.
	listing int
	listed  bool
	// stages and followers are the receivers at the time of the commit.
	stages    []*stage
	followers []*Configs
}

func newChain(cache configstore.ConfigStoreCache) *chain {
	c := &chain{cache: cache, cancel: func() {}}
	c.lists, _ = configstore.As[configstore.Subscriber](cache)
	return c
}

// Join subscribes a registry to a cache whose configs are followed (FollowConfigs). handle gets the existing
// configs first, and then the commits. The registry adds its second argument, unless empty, to the update with
// the resulting services. handle returns false if there are no changes and the registry has committed everything
// that it got before; then the argument is committed without it. Join returns false if no configs of the cache are
// followed; then the registry subscribes by itself. leave may be called many times.
func (i Inbox) Join(
	cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind,
	handle func(changes []configstore.Change, configs *Update) (taken bool),
) (leave func(), joined bool) {
	pushers := pushersOf(i.to)
	if len(pushers) == 0 {
		return nil, false
	}
	c := pushers[0].sourcesNow().chain(cache, false)
	if c == nil || c.lists == nil {
		return nil, false
	}
	s := &stage{pushers: pushers, kinds: kinds, handle: handle}
	c.relist(func() { c.stages = append(c.stages, s) })
	return sync.OnceFunc(func() {
		c.relist(func() { c.stages = slices.DeleteFunc(c.stages, func(other *stage) bool { return other == s }) })
	}), true
}

// follow adds a follower and returns a function that removes it.
func (c *chain) follow(f *Configs) (leave func()) {
	if c.lists != nil {
		c.relist(func() { c.followers = append(c.followers, f) })
		return sync.OnceFunc(func() {
			c.relist(func() { c.followers = slices.DeleteFunc(c.followers, func(other *Configs) bool { return other == f }) })
		})
	}
	return c.followEvents(f)
}

// followEvents adds a follower of a cache that cannot list and subscribe at one moment. An object with an
// event before its kind was listed keeps the state of the event, because the list may be older.
func (c *chain) followEvents(f *Configs) (leave func()) {
	early := map[configstore.ConfigKey]struct{}{}
	add := func(changes []configstore.Change) {
		c.work.add(commit{changes: changes, followers: []*Configs{f}})
	}
	leave = configfeed.Subscribe(c.cache, f.kinds, func(changes []configstore.Change) {
		c.mu.Lock()
		for i := range changes {
			if early != nil {
				early[changes[i].Curr.Key()] = struct{}{}
			}
		}
		add(slices.Clone(changes))
		c.mu.Unlock()
		c.deliver()
	})
	var list []configstore.Change
	for _, kind := range f.kinds {
		list = append(list, configfeed.Adds(c.cache.List(kind, configstore.NamespaceAll))...)
	}
	c.mu.Lock()
	add(slices.DeleteFunc(list, func(change configstore.Change) bool {
		_, newer := early[change.Curr.Key()]
		return newer
	}))
	early = nil
	c.mu.Unlock()
	c.deliver()
	return leave
}

// relist changes the receivers and replaces the subscription: the receivers get the complete content of one
// moment, and then the commits after it.
func (c *chain) relist(change func()) {
	c.mu.Lock()
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
		objects, c.cancel = c.lists.Subscribe(kinds, func(changes []configstore.Change) { c.take(listing, changes) })
		c.addLocked(configfeed.Adds(objects), true)
	}
	c.mu.Unlock()
	c.deliver()
}

// hasKind reports whether a kind is one of some, in any version.
func hasKind(kinds []configstore.GroupVersionKind, kind configstore.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k configstore.GroupVersionKind) bool { return k.Group == kind.Group && k.Kind == kind.Kind })
}

func (c *chain) take(listing int, changes []configstore.Change) {
	c.mu.Lock()
	if listing == c.listing {
		c.addLocked(slices.Clone(changes), false)
	}
	c.mu.Unlock()
	c.deliver()
}

func (c *chain) addLocked(changes []configstore.Change, listed bool) {
	c.work.add(commit{changes, c.listing, listed, slices.Clone(c.stages), slices.Clone(c.followers)})
}

func (c *chain) deliver() { c.work.run(commit.handOver) }

// handOver delivers a commit to the registries. The youngest registry of a Pusher gets the configs for it.
// Configs without a registry, or with an idle one that the commit does not change, are an update of their own.
func (c commit) handOver() {
	followers, configs := slices.Clone(c.followers), make([]Update, len(c.stages)+1)
	for i := len(c.stages); i >= 0; i-- {
		followers = slices.DeleteFunc(followers, func(f *Configs) bool {
			own := i == 0 || slices.Contains(c.stages[i-1].pushers, f.pusher)
			if own {
				f.note(&configs[i], c)
			}
			return own
		})
	}
	configs[0].commitConfigs()
	for i, s := range c.stages {
		changes := slices.DeleteFunc(slices.Clone(c.changes), func(change configstore.Change) bool {
			return !hasKind(s.kinds, change.Curr.GroupVersionKind)
		})
		if u := &configs[i+1]; len(changes) > 0 || !u.Empty() {
			if !s.handle(changes, u) {
				u.commitConfigs()
			}
		}
	}
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
