// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"reflect"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// sources has the chains of caches. The Pushers of a Multi share one.
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

// chain returns the chain of a cache; nil if there is none, and it is not to be made.
func (s *sources) chain(cache configstore.ConfigStoreCache, make bool) *chain {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := reflect.ValueOf(cache).Comparable() // else it cannot be found
	var c *chain
	if known {
		c = s.chains[cache]
	}
	if c == nil && make {
		if c = newChain(cache); known {
			s.chains[cache] = c
		}
	}
	return c
}

// chain hands the commits of a cache to the registries that are made of it, and commits the configs
// that are followed with what a registry has made of them.
type chain struct {
	cache configstore.ConfigStoreCache
	lists configstore.ListSubscriber // nil: the cache is none, and registries do not join
	work  calls[commit]

	// mu makes what is listed and the commits after it one order.
	mu        sync.Mutex
	followers []*Configs
	stages    []*stage
	cancel    func()
	// listing counts how often the cache was listed: of an earlier time nothing is taken.
	listing int
}

// stage is a registry.
type stage struct {
	pushers []*Pusher
	kinds   []configstore.GroupVersionKind
	handle  func(changes []configstore.Change, configs *Update)
}

// commit is a commit of the cache, or all that there is.
type commit struct {
	changes []configstore.Change
	// listing is that of the chain; listed: the changes are all there is.
	listing int
	listed  bool
	// stages and followers are those of then.
	stages    []*stage
	followers []*Configs
}

func newChain(cache configstore.ConfigStoreCache) *chain {
	c := &chain{cache: cache, cancel: func() {}}
	c.lists, _ = configstore.As[configstore.ListSubscriber](cache)
	return c
}

// Join has handle called with the commits of a cache that concern a registry, after what there
// is. handle takes an update too, nil or one of configs, which the registry commits with what it makes
// of the changes. It reports false if the registry has to subscribe to the cache by itself: nobody
// follows configs of it. leave may be called many times.
func (i Inbox) Join(
	cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind, handle func(changes []configstore.Change, configs *Update),
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

// follow adds who follows.
func (c *chain) follow(f *Configs) {
	if c.lists != nil {
		c.relist(func() { c.followers = append(c.followers, f) })
		return
	}
	take := func(changes []configstore.Change) {
		c.work.add(commit{changes: slices.Clone(changes), followers: []*Configs{f}})
		c.deliver()
	}
	configfeed.Subscribe(c.cache, f.kinds, take)
	for _, kind := range f.kinds {
		if list := adds(c.cache.List(kind, configstore.NamespaceAll)); len(list) > 0 {
			take(list)
		}
	}
}

// relist changes who gets the commits, lists what there is at one moment, and takes the commits
// after it.
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
		objects, c.cancel = c.lists.ListAndSubscribe(kinds, func(changes []configstore.Change) { c.take(listing, changes) })
		c.addLocked(adds(objects), true)
	}
	c.mu.Unlock()
	c.deliver()
}

// hasKind reports whether a kind is one of some, in any version.
func hasKind(kinds []configstore.GroupVersionKind, kind configstore.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k configstore.GroupVersionKind) bool { return k.Group == kind.Group && k.Kind == kind.Kind })
}

// adds returns objects as they come first.
func adds(objects []*configstore.Config) []configstore.Change {
	out := make([]configstore.Change, len(objects))
	for i, o := range objects {
		out[i] = configstore.Change{Event: configstore.EventAdd, Curr: o}
	}
	return out
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

func (c *chain) deliver() {
	for next, ok := c.work.first(); ok; next, ok = c.work.next() {
		next.handOver()
	}
}

// handOver hands a commit to the registries. The last one, which is the youngest, takes the configs.
func (c *commit) handOver() {
	var u, rest Update
	var carrier *stage
	if n := len(c.stages); n > 0 {
		carrier = c.stages[n-1]
	}
	for _, f := range c.followers {
		if carrier != nil && slices.Contains(carrier.pushers, f.pusher) {
			f.note(&u, c)
		} else {
			f.note(&rest, c)
		}
	}
	for _, one := range rest.calls {
		p := one.configs.pusher
		p.begin()
		p.commit(&Update{calls: []call{one}}, nil)
	}
	for _, s := range c.stages {
		changes := slices.DeleteFunc(slices.Clone(c.changes), func(change configstore.Change) bool {
			return !hasKind(s.kinds, change.Curr.GroupVersionKind)
		})
		switch {
		case s == carrier:
			s.handle(changes, &u)
		case len(changes) > 0:
			s.handle(changes, nil)
		}
	}
}
