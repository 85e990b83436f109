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
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// tokenKeys contains the key sets of RequestAuthentications that are fetched from URIs.
type tokenKeys struct {
	cache *keyset.Cache[configstore.ConfigKey]

	mu sync.Mutex
	// changed are the objects whose keys have changed since the last push.
	changed map[configstore.ConfigKey]struct{}
}

// defaultKeyRefresh is the default interval between fetches (Istio 1.30).
const defaultKeyRefresh = 20 * time.Minute

// newTokenKeys returns an empty cache of keys, which requests pushes for changed keys.
func newTokenKeys(o Options, limit int, requestPush func(map[configstore.ConfigKey]struct{})) *tokenKeys {
	k := &tokenKeys{changed: make(map[configstore.ConfigKey]struct{})}
	fetcher, refresh := o.KeyFetcher, o.KeyRefresh
	if limit == 0 {
		limit = math.MaxInt32 // no limit
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
		Failed: (&keyLog{logger: o.Logger}).outcome,
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

// follow registers an object for its keys as long as the object exists. Its old and new revisions
// may be nil. It must be called before the new revision is parsed, so that no change of keys is
// missed.
func (k *tokenKeys) follow(key configstore.ConfigKey, before, after *configstore.Config) {
	for _, s := range sourcesOf(after) {
		k.cache.Retain(s, key)
	}
	for _, s := range sourcesOf(before) {
		k.cache.Release(s, key)
	}
}

// sourcesOf returns the sources of an object's keys. It returns none for nil and for other kinds.
func sourcesOf(c *configstore.Config) (out []keyset.Source) {
	if c == nil {
		return nil
	}
	spec, _ := c.Spec.(*security.RequestAuthentication)
	for _, r := range spec.GetJwtRules() {
		if s, fetched := objects.SourceOf(r); fetched {
			out = append(out, s)
		}
	}
	return out
}

// Run fetches the keys of RequestAuthentications with a URI, or with an issuer alone, by
// Options.KeyFetcher, until stop is closed. It returns after all its goroutines have ended. Without
// Run no keys are fetched, and no token of such issuers is valid. Keys are fetched again every
// Options.KeyRefresh. After an error the next attempt follows with a backoff of up to a minute, and
// the last good keys stay in use. Errors are logged to Options.Logger. Clients receive new keys by
// a push.
func (p *Policies) Run(stop <-chan struct{}) { p.settings.keys.cache.Run(stop) }

// HasSynced reports whether a first fetch of all keys that RequestAuthentications refer to has
// succeeded or failed, as of the last push. It is false before the first push. A host can call
// Flush of the server and wait for HasSynced before it serves clients, so that they never receive a
// state without keys at startup. It may be called from any goroutine.
func (p *Policies) HasSynced() bool { return p.last.Load() != nil && p.settings.keys.cache.Synced() }
