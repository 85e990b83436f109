// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"math"
	"sync"
	"time"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/keyset"
)

// tokenKeys are the key sets of RequestAuthentications that are published at URIs.
type tokenKeys struct {
	cache *keyset.Cache[configstore.ConfigKey]

	mu sync.Mutex
	// changed are the objects that have other keys than in the last push.
	changed map[configstore.ConfigKey]struct{}
}

// defaultKeyRefresh is how often keys are fetched again (Istio 1.30).
const defaultKeyRefresh = 20 * time.Minute

// newTokenKeys returns keys that ask for pushes.
func newTokenKeys(o Options, limit int, requestPush func(map[configstore.ConfigKey]struct{})) *tokenKeys {
	k := &tokenKeys{changed: make(map[configstore.ConfigKey]struct{})}
	fetcher, refresh := o.KeyFetcher, o.KeyRefresh
	if limit == 0 {
		limit = math.MaxInt32 // none
	}
	if fetcher == nil {
		fetcher = HTTPKeyFetcher{MaxBytes: int64(limit)}
	}
	if refresh <= 0 {
		refresh = defaultKeyRefresh
	}
	k.cache = keyset.New(keyset.Options[configstore.ConfigKey]{
		Fetch: fetcher.Fetch, MaxBytes: limit, Refresh: refresh, Changed: func(users map[configstore.ConfigKey]struct{}) {
			k.mu.Lock()
			maps.Copy(k.changed, users)
			k.mu.Unlock()
			requestPush(users)
		},
		Failed: newKeyLog(o.Logger).outcome,
	})
	return k
}

// take returns the objects whose keys have changed since the last call.
func (k *tokenKeys) take() map[configstore.ConfigKey]struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.changed
	k.changed = make(map[configstore.ConfigKey]struct{})
	return out
}

// follow has the keys of an object fetched as long as there is the object, whose states may be nil. It comes before the object is made of
// the new state, so that the object either has newer keys or is told of them.
func (k *tokenKeys) follow(key configstore.ConfigKey, before, after *configstore.Config) {
	for _, s := range sourcesOf(after) {
		k.cache.Retain(s, key)
	}
	for _, s := range sourcesOf(before) {
		k.cache.Release(s, key)
	}
}

// sourcesOf returns where the keys of an object are published; none for nil, and for other kinds.
func sourcesOf(c *configstore.Config) (out []keyset.Source) {
	if c == nil {
		return nil
	}
	spec, _ := c.Spec.(*security.RequestAuthentication)
	for _, r := range spec.GetJwtRules() {
		if s, fetched := sourceOf(r); fetched {
			out = append(out, s)
		}
	}
	return out
}

// Run fetches the keys that RequestAuthentications name by a URI, or by an issuer alone, with Options.KeyFetcher, until stop is closed, and
// returns when everything that it started has ended. Without it no keys are fetched, and no token of such issuers is valid.
// Keys are fetched again every Options.KeyRefresh, and those that could not be after a time that grows to a minute; the last ones
// that could be fetched stay meanwhile, and
// Options.Logger is told. Clients are sent others by a push of the server.
func (p *Policies) Run(stop <-chan struct{}) { p.settings.keys.cache.Run(stop) }

// HasSynced reports whether the keys that RequestAuthentications name were fetched, or tried to be fetched, of all objects as of the last push; it
// is false before the first. A program that serves clients only then sends them no moment without keys when it starts: it calls
// Flush of the server, and waits. It may be called from any goroutine.
func (p *Policies) HasSynced() bool { return p.last.Load() != nil && p.settings.keys.cache.Synced() }
