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
	// redirect, like Istio's PILOT_BLOCKED_CIDRS_IN_JWKS_URIS. Link-local addresses, where clouds
	// serve the credentials of machines, are always blocked.
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

// control checks each address before a connection, after names are resolved.
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
