// SPDX-License-Identifier: Apache-2.0

package route

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Transport sends requests to endpoints with net/http, for gateways that have no transport of their
// own. It keeps connections by cluster and TLS settings, so that no request is sent over one that
// was verified for another peer. It is safe for concurrent use, and must not be copied.
type Transport struct {
	// Secrets returns the secrets for TLS. It is called for each connection.
	Secrets Secrets
	// IdlePerHost is the number of idle connections that are kept for an endpoint. The default is 100.
	IdlePerHost int

	mu    sync.Mutex
	pools map[poolKey]pool
}

// poolKey identifies connections that serve the same requests: the connections to a cluster,
// or the ones for an authority if its host is the server name.
type poolKey struct {
	cluster, authority string
	tls, http2         bool
	timeout            time.Duration // of a connect
}

type pool struct {
	*http.Transport
	tls *TLS
}

// maxPools is the number of pools at which all begin anew, because clients choose authorities and
// clusters come and go.
const maxPools = 1000

// ErrNoEndpoint means that a cluster has no healthy endpoint.
var ErrNoEndpoint = errors.New("no healthy endpoint")

// To returns the transport for the requests of a rule to the endpoints of a cluster, which may be nil.
// It chooses an endpoint by Endpoints.Choose, and sets scheme and host of the URL; the Host of a
// request is the authority. If it cannot connect, it tries again as often as the rule's retries
// allow, unless the request has a body. The errors are errors of net/http and TLS.Config, and
// ErrNoEndpoint, which clusters with OriginalDestination have, too. Unix domain sockets are not
// supported: a connect to one fails.
func (t *Transport) To(rule *Rule, endpoints *Endpoints) http.RoundTripper {
	return attempts{t, endpoints, 1 + rule.Retries.Number()}
}

// CloseIdleConnections closes the connections that serve no request.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

type attempts struct {
	*Transport
	endpoints *Endpoints
	number    int
}

// RoundTrip implements http.RoundTripper.
func (a attempts) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for range a.number {
		e := a.endpoints.Choose(rand.Uint64()) //nolint:gosec // balancing needs no secrecy
		if e == nil {
			return nil, ErrNoEndpoint
		}
		to, target := *r, *r.URL
		to.URL, target.Scheme, target.Host = &target, "http", e.Address
		if e.TLS != nil {
			target.Scheme = "https"
		}
		response, err = a.pool(a.endpoints, e.TLS, r.Host).RoundTrip(&to)
		var failed *net.OpError
		if !errors.As(err, &failed) || failed.Op != "dial" || r.Body != nil && r.Body != http.NoBody {
			break
		}
	}
	return response, err
}

// pool returns the connections to endpoints with TLS settings. Connections with earlier
// settings get no more requests.
func (t *Transport) pool(cluster *Endpoints, by *TLS, authority string) *http.Transport {
	key := poolKey{cluster: cluster.Cluster, tls: by != nil, http2: cluster.HTTP2, timeout: cluster.ConnectTimeout}
	if key.tls && by.AuthorityIsName {
		key.authority = authority
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.pools[key]
	switch {
	case ok && (p.tls == by || p.tls.Equal(by)):
	case ok:
		p.CloseIdleConnections()
		p.Transport = t.connections(cluster, by, authority)
	default:
		if len(t.pools) >= maxPools || t.pools == nil {
			t.clear()
		}
		p.Transport = t.connections(cluster, by, authority)
	}
	p.tls = by
	t.pools[key] = p
	return p.Transport
}

// clear forgets all connections. Those in use close when they are idle for a while.
func (t *Transport) clear() {
	for _, p := range t.pools {
		p.CloseIdleConnections()
	}
	t.pools = map[poolKey]pool{}
}

func (t *Transport) connections(cluster *Endpoints, by *TLS, authority string) *http.Transport {
	dialer := &net.Dialer{Timeout: cluster.ConnectTimeout}
	out := &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: t.IdlePerHost, IdleConnTimeout: time.Minute,
		Protocols: new(http.Protocols),
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			config, err := by.Config(authority, t.Secrets)
			if err != nil {
				return nil, err
			}
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
		},
	}
	if out.MaxIdleConnsPerHost == 0 {
		out.MaxIdleConnsPerHost = 100
	}
	out.Protocols.SetHTTP1(!cluster.HTTP2)
	out.Protocols.SetHTTP2(cluster.HTTP2 && by != nil)
	out.Protocols.SetUnencryptedHTTP2(cluster.HTTP2 && by == nil)
	return out
}
