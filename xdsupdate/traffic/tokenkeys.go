// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/keyset"
	"github.com/pilotkit/pilotkit/internal/loglimit"
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

// keyLog logs failures to fetch token keys.
type keyLog struct {
	logger  *slog.Logger
	limiter loglimit.Limiter
}

// outcome logs the result of a fetch, with the first object that uses the keys.
func (l *keyLog) outcome(o keyset.Outcome[configstore.ConfigKey]) {
	first := slices.MinFunc(o.Users, func(a, b configstore.ConfigKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	attrs := []any{
		slog.String("keys", o.Source.String()), slog.String("object", first.Namespace+"/"+first.Name), slog.Int("objects", len(o.Users)),
	}
	switch {
	case o.Err == nil:
		l.logger.Info("keys of tokens are fetched again", attrs...)
	case !l.limiter.Allow(o.Source.String(), "keys"):
	case o.Kept:
		l.logger.Warn("keys of tokens cannot be fetched: the last ones stay", append(attrs, slog.Any("error", o.Err))...)
	default:
		l.logger.Warn("keys of tokens cannot be fetched: requests with such tokens are denied", append(attrs, slog.Any("error", o.Err))...)
	}
}

// KeyFetcher fetches the keys of token issuers. Users who may write RequestAuthentications choose
// the URIs, so the fetcher has to decide which hosts this process connects to.
type KeyFetcher interface {
	// Fetch returns the content of a URI: a JSON Web Key Set, or the OpenID configuration of an
	// issuer. It may be called concurrently, and must return when ctx is done. The context has the
	// timeout of the rule, by default 5 seconds. A result of more than Limits.KeyBytes is
	// discarded.
	Fetch(ctx context.Context, uri string) ([]byte, error)
}

// HTTPKeyFetcher fetches keys by HTTP GET. The zero value works. It follows up to 3 redirects,
// never from HTTPS to HTTP, and ignores proxy settings. HTTPS servers need certificates of the
// system's authorities.
type HTTPKeyFetcher struct {
	// Client makes the requests. Nil stands for DefaultClient.
	Client *http.Client
	// Blocked lists addresses that the default client never connects to, directly or after a
	// redirect, like Istio's PILOT_BLOCKED_CIDRS_IN_JWKS_URIS. The addresses where clouds serve the
	// credentials of machines are always blocked: all link-local ones, and those of Alibaba Cloud, and
	// by IPv6 of AWS and Google Cloud.
	Blocked []netip.Prefix
	// MaxBytes limits the size of a response. 0 stands for the default of Limits.KeyBytes.
	MaxBytes int64
}

const (
	maxKeyRedirects    = 3
	maxKeyHeaderBytes  = 64 << 10
	keyHandshakePeriod = 5 * time.Second
)

// Fetch implements KeyFetcher. Statuses other than 200 are errors.
func (f HTTPKeyFetcher) Fetch(ctx context.Context, uri string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, application/jwk-set+json")
	client := f.Client
	if client == nil {
		client = f.DefaultClient()
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	limit := f.MaxBytes
	if limit == 0 {
		limit = defaultKeyBytes
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the answer has more than %d bytes", limit)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// DefaultClient returns the client that Fetch uses if Client is nil. Hosts may modify it, for
// example its authorities or its dialer. It does not keep connections open, because keys are
// fetched rarely.
func (f HTTPKeyFetcher) DefaultClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Control: f.control}).DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: keyHandshakePeriod, MaxResponseHeaderBytes: maxKeyHeaderBytes, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxKeyRedirects:
				return fmt.Errorf("more than %d redirects", maxKeyRedirects)
			case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https":
				return errors.New("it is redirected from HTTPS to something else")
			default:
				return nil
			}
		},
	}
}

// metadataServices returns the addresses of the metadata services of clouds that are not link-local.
func metadataServices() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
		netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
		netip.MustParsePrefix("fd20:ce::/32"),       // Google Cloud
	}
}

// control checks each address before a connection, after names are resolved.
func (f HTTPKeyFetcher) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap().WithZone("")
	blocked := append(metadataServices(), f.Blocked...)
	if ip.IsLinkLocalUnicast() || slices.ContainsFunc(blocked, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return fmt.Errorf("connections to %s are blocked", ip)
	}
	return nil
}
