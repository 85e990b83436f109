// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// gateway serves one port of the Gateways. It decides about each request by the router, and
// forwards it by a ReverseProxy.
type gateway struct {
	port      uint32
	watch     *traffic.Watch
	transport *route.Transport
}

// run serves the connections of a listener until stop is closed.
func (g *gateway) run(listener net.Listener, stop <-chan struct{}) error {
	if g.port == 443 {
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: g.handshake})
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: 15 * time.Second}
	go func() {
		<-stop
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handshake returns the TLS settings of the Gateway server for the server name of a client.
func (g *gateway) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	router := g.watch.Router()
	if router == nil {
		return nil, errors.New("not ready")
	}
	by := router.Handshake(route.Request{Port: g.port, TLS: true, ServerName: hello.ServerName})
	if by == nil {
		return nil, errors.New("no server terminates TLS for " + hello.ServerName)
	}
	return by.Config(g.transport.Secrets)
}

// ServeHTTP implements http.Handler.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	router := g.watch.Router()
	if router == nil {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	q := route.FromHTTP(r, g.port)
	q.Random = rand.Uint64() //nolint:gosec // weights need no secrecy
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		q.Source = peer.Addr()
	}
	d := router.Route(q)
	switch {
	case d.Outcome == route.Closed:
		panic(http.ErrAbortHandler) // closes the connection
	case d.Outcome == route.Answered:
		answer(w, d)
	case len(d.Access.Asked) > 0:
		http.Error(w, "no extension provider can be asked here", http.StatusForbidden)
	default:
		g.forward(w, r, d, router.Endpoints(d.Destination.Cluster))
	}
}

// answer writes the gateway's own response.
func answer(w http.ResponseWriter, d route.Decision) {
	if d.Location != "" {
		w.Header().Set("Location", d.Location)
	}
	route.Apply(d.Response, w.Header())
	w.WriteHeader(d.Status)
	_, _ = w.Write(d.Body) // the client is gone if it fails
}

// forward sends a request to an endpoint.
func (g *gateway) forward(w http.ResponseWriter, r *http.Request, d route.Decision, to *route.Endpoints) {
	target, err := url.ParseRequestURI(d.Path)
	if err != nil {
		http.Error(w, "bad path", http.StatusBadRequest)
		return
	}
	if d.Rule.Timeout > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), d.Rule.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	proxy := httputil.ReverseProxy{
		Transport: g.transport.To(d.Rule, to),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, d.Authority
			p.SetXForwarded()
			route.Apply(d.Request, p.Out.Header)
		},
		ModifyResponse: func(response *http.Response) error {
			route.Apply(d.Response, response.Header)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := http.StatusServiceUnavailable
			if errors.Is(err, context.DeadlineExceeded) {
				status = http.StatusGatewayTimeout
			}
			http.Error(w, http.StatusText(status), status)
		},
	}
	proxy.ServeHTTP(w, r)
}
