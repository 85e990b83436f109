// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// KeyFetcher fetches the keys that verify tokens from where RequestAuthentications say that they are published. Whoever may
// write a RequestAuthentication chooses the URI: a fetcher decides what this process connects to.
type KeyFetcher interface {
	// Fetch returns what is at a URI: a JSON Web Key Set, or the OpenID configuration of an issuer. It is called from several goroutines
	// at a time, and must return when ctx ends, which has the timeout of the rule, by default 5 seconds. What
	// is longer than Limits.KeyBytes is not used.
	Fetch(ctx context.Context, uri string) ([]byte, error)
}

// HTTPKeyFetcher fetches keys by HTTP GET. The zero value works. It follows up to 3 redirects, never from HTTPS
// to HTTP, and uses no proxy. Servers of HTTPS have to have certificates of the authorities of the system.
type HTTPKeyFetcher struct {
	// Client makes the requests; nil: one as described above.
	Client *http.Client
	// Blocked are addresses that the default client connects to neither directly nor after a redirect, like
	// Istio's PILOT_BLOCKED_CIDRS_IN_JWKS_URIS. Link-local addresses, at which clouds serve the credentials of
	// machines, are always blocked.
	Blocked []netip.Prefix
	// MaxBytes is how much is read of an answer; 0: the default of Limits.KeyBytes.
	MaxBytes int64
}

const (
	maxKeyRedirects    = 3
	maxKeyHeaderBytes  = 64 << 10
	keyHandshakePeriod = 5 * time.Second
)

// Fetch implements KeyFetcher. An answer with another status than 200 is an error.
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

// DefaultClient returns the client that is used without Client, for hosts that change something of it, such as
// the authorities or what it connects to. It keeps no connection: keys are fetched every few minutes.
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

// control is called with each address before a connection to it, after names were resolved.
func (f HTTPKeyFetcher) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || slices.ContainsFunc(f.Blocked, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return fmt.Errorf("connections to %s are blocked", ip)
	}
	return nil
}
