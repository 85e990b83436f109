// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// caller calls a server in all ways, and compares the outcome with a reading of the policies.
type caller struct {
	dice

	t      *testing.T
	read   *routesim.Server
	who    routesim.Proxy
	server netip.AddrPort
	issuer *authority.Authority
	counts map[codes.Code]int
	// words returns the values of policies for a server with a port.
	words func(port uint16) map[string][]string
}

// taken is the transport that the server takes.
func (c *caller) taken() routesim.Transport {
	if c.read.MutualTLS(c.who, uint32(c.server.Port())) {
		return routesim.MutualTLS
	}
	return routesim.PlainText
}

// callAll calls over several connections: first such as the server takes, so that it is known to
// serve when it refuses the others.
func (c *caller) callAll() {
	c.t.Helper()
	other := routesim.MutualTLS
	if c.taken() == other {
		other = routesim.PlainText
	}
	for range 5 {
		l := c.line(c.taken())
		l.becomesReady()
		tried := map[string]bool{}
		for range 18 {
			method, headers := c.request()
			if again := fmt.Sprint(method, headers); !tried[again] {
				tried[again] = true
				l.try(method, headers...)
			}
		}
	}
	for _, by := range []routesim.Transport{other, routesim.TLSWithoutCertificate} {
		l := c.line(by)
		for range 8 {
			method, headers := c.request()
			l.try(method, headers...)
		}
	}
}

// place describes a caller: its address, identity and authority.
type place struct {
	by routesim.Transport
	// base is what calls from there have in common.
	base      routesim.Call
	authority string
}

// place draws one.
func (c *caller) place(by routesim.Transport) place {
	out := place{by: by, authority: pick(c.dice, "quotes.shop:9000", "Quotes.shop:9000", "other.shop")}
	out.base.From, out.base.To = netip.MustParseAddr(pick(c.dice, "127.0.0.1", "127.0.0.2", "127.0.0.9")), c.server
	if by == routesim.MutualTLS {
		identity := pick(c.dice, cart, evil, "spiffe://cluster.local/ns/shop/sa/bill", "spiffe://other.domain/ns/web/sa/cart")
		out.base.Certificate = &routesim.Certificate{URIs: []string{identity}}
	}
	return out
}

// call returns a call from there.
func (p place) call(method string, headers ...string) routesim.Call {
	out := p.base
	out.Request = &routesim.Request{Method: "POST", Scheme: "http", Authority: p.authority, Path: "/quotes.Quotes/" + method, Headers: map[string]string{}}
	for i := 0; i < len(headers); i += 2 {
		out.Headers[headers[i]] = headers[i+1]
	}
	return out
}

// decide returns the expected outcome of a call.
func (c *caller) decide(from place, method string, headers ...string) routesim.Decision {
	return c.read.Decide(c.who, uint32(c.server.Port()), from.by, from.call(method, headers...))
}

// line is a connection to the server.
type line struct {
	*caller
	place

	client *client
}

// line connects from somewhere.
func (c *caller) line(by routesim.Transport) *line {
	c.t.Helper()
	l := &line{caller: c, place: c.place(by)}
	creds := insecure.NewCredentials()
	if by != routesim.PlainText {
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // the server is what is tried
		if by == routesim.MutualTLS {
			config.Certificates = []tls.Certificate{c.issuer.Pair(l.base.Certificate.URIs[0])}
		}
		creds = credentials.NewTLS(config)
	}
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.base.From, 0))}
	l.client = dial(c.t, c.server.String(), creds, grpc.WithAuthority(l.authority), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	}))
	return l
}

// becomesReady waits until the server takes the connection.
func (l *line) becomesReady() {
	l.t.Helper()
	for deadline := time.Now().Add(patience); l.client.call("ready/Ready") == closed; {
		if time.Now().After(deadline) {
			l.t.Fatalf("%+v: the server does not take the connection", l.base)
		}
	}
}

// try makes a call.
func (l *line) try(method string, headers ...string) {
	l.t.Helper()
	d := l.decide(l.place, method, headers...)
	want := denied
	switch {
	case d.Admitted:
		want = allowed
	case l.by != l.taken():
		want = closed
	}
	got := l.client.call(method, headers...)
	l.counts[got]++
	if got != want {
		l.t.Errorf("%+v by %d, %s for %s with %q: %v, want %v (%s)", l.base, l.by, method, l.authority, headers, got, want, d.By)
	}
}
