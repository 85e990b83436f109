// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// Configs are the configs of some kinds of a cache in the roots of an updater. Each commit of the cache is
// in a root as a whole. If a registry of the same updater reads the same cache (Inbox.Join), a commit and
// the resulting services are one update, so that each root has both or neither.
type Configs struct {
	pusher *Pusher
	kinds  []configstore.GroupVersionKind
	same   func(old, curr *configstore.Config) bool
	leave  func()
	// listing is the listing of the last applied commit, guarded by the lock of the Pusher.
	listing int
}

// FollowConfigs adds the configs of a cache to the roots of an updater: the existing configs, and later
// commits when the cache delivers them. It requests a push for changed configs. same reports whether
// an update can be ignored; nil ignores none. It must be a pure function, because it is called with a lock
// held. FollowConfigs returns nil if the updater is not backed by a Pusher (As).
//
// A configstore.Subscriber delivers commits as a whole, without a gap after the existing configs. For
// other caches, each event is an update of its own, and registries do not join them.
func FollowConfigs(
	updater XDSUpdater, cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind,
	same func(old, curr *configstore.Config) bool,
) *Configs {
	pushers := pushersOf(targetOf(Multi(updater)))
	if len(pushers) == 0 {
		return nil
	}
	if same == nil {
		same = func(old, curr *configstore.Config) bool { return old == curr }
	}
	f := &Configs{pusher: pushers[0], kinds: kinds, same: same}
	f.leave = f.pusher.sourcesNow().chain(cache, true).follow(f)
	return f
}

// Close ends the subscription to the cache. The roots keep the configs.
func (f *Configs) Close() { f.leave() }

// pushersOf returns the Pushers behind a target.
func pushersOf(t target) []*Pusher {
	switch t := t.(type) {
	case *Pusher:
		return []*Pusher{t}
	case *shardWriter:
		return pushersOf(t.group.target)
	case *multi:
		var out []*Pusher
		for _, part := range t.targets {
			out = append(out, pushersOf(part)...)
		}
		return out
	default:
		return nil
	}
}

// configKey identifies a config in a root.
type configKey struct {
	of  *Configs
	key configstore.ConfigKey
}

// note records the changes of a commit in the kinds of f.
func (f *Configs) note(u *Update, own commit) {
	own.changes = own.of(f.kinds)
	if own.listed || len(own.changes) > 0 {
		u.calls = append(u.calls, call{kind: callConfigs, configs: f, commit: &own})
	}
}

// configsLocked applies the changes of a commit and returns the push request for them, or nil.
func (p *Pusher) configsLocked(c *call) *PushRequest {
	if c.configs.pusher != p || c.commit.listing < c.configs.listing {
		return nil // a commit from before the cache was listed again
	}
	c.configs.listing = c.commit.listing
	keys := map[ConfigKey]struct{}{}
	set := func(key configstore.ConfigKey, next *configstore.Config) {
		id := configKey{c.configs, key}
		last, known := p.configs.Get(id)
		switch {
		case next == nil && known:
			p.configs.Delete(id)
		case next != nil && last != next:
			p.configs.Set(id, next)
		default:
			return
		}
		if next == nil || !known || !c.configs.same(last, next) {
			keys[key] = struct{}{}
		}
	}
	there := map[configstore.ConfigKey]struct{}{}
	for _, change := range c.commit.changes {
		key, next := change.Curr.Key(), change.Curr
		if change.Event == configstore.EventDelete {
			next = nil
		}
		there[key] = struct{}{}
		set(key, next)
	}
	if c.commit.listed {
		for id := range p.configs.Snapshot().All() {
			if _, ok := there[id.key]; !ok && id.of == c.configs {
				set(id.key, nil)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return &PushRequest{Full: true, ConfigsUpdated: keys, Reason: map[TriggerReason]int{ReasonConfig: 1}}
}

// ConfigsSince returns the configs that differ from an older root. A nil root is empty. Deleted configs are
// nil in the result.
func (r *Root) ConfigsSince(old *Root, of *Configs) map[configstore.ConfigKey]*configstore.Config {
	out := map[configstore.ConfigKey]*configstore.Config{}
	pmap.Changes(old.allConfigs(), r.allConfigs(), func(before, after *pmap.Entry[configKey, *configstore.Config]) bool {
		switch {
		case after == nil && before.Key.of == of:
			out[before.Key.key] = nil
		case after != nil && after.Key.of == of && (before == nil || !of.same(before.Value, after.Value)):
			out[after.Key.key] = after.Value
		}
		return true
	})
	return out
}

func (r *Root) allConfigs() (none pmap.Map[configKey, *configstore.Config]) {
	if r == nil {
		return none
	}
	return r.configs
}
