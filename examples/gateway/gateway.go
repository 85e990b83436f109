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
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// gateway serves one port of the Gateways. It decides about each request by the router, and
// forwards it by a ReverseProxy.
type gateway struct {
	port      uint32
	namespace string
	watch     *traffic.Watch
	secrets   *secrets.Provider
	transport http.RoundTripper
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
		Transport: balancer{g.transport, to, 1 + d.Rule.Retries.Number()},
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

// balancer sends each attempt of a request to a random endpoint of the best priority.
type balancer struct {
	http.RoundTripper
	to       *route.Endpoints
	attempts int
}

var errNoEndpoint = errors.New("no healthy endpoint")

// RoundTrip implements http.RoundTripper. It tries again if it cannot connect, unless there is a
// body, which the first attempt may have read.
func (b balancer) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for range b.attempts {
		e := b.to.Choose(rand.Uint64()) //nolint:gosec // balancing needs no secrecy
		if e == nil {
			return nil, errNoEndpoint
		}
		if e.TLS != nil {
			return nil, errors.New("this example does not connect by TLS")
		}
		r.URL.Scheme, r.URL.Host = "http", e.Address
		response, err = b.RoundTripper.RoundTrip(r)
		var failed *net.OpError
		if !errors.As(err, &failed) || failed.Op != "dial" || r.Body != nil {
			break
		}
	}
	return response, err
}

// handshake returns the TLS settings for the server name of a client: the certificates of the
// Gateway server that the name belongs to.
func (g *gateway) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	router := g.watch.Router()
	if router == nil {
		return nil, errors.New("not ready")
	}
	by := router.Handshake(route.Request{Port: g.port, TLS: true, ServerName: hello.ServerName})
	if by == nil || by.Roots != "" {
		return nil, errors.New("no server terminates TLS for " + hello.ServerName + ", or it wants certificates of clients")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: by.Protocols}
	for _, name := range by.Certificates {
		secret, err := g.secrets.Secret(g.namespace, name)
		if err != nil {
			return nil, err
		}
		pair := secret.GetTlsCertificate()
		certificate, err := tls.X509KeyPair(pair.GetCertificateChain().GetInlineBytes(), pair.GetPrivateKey().GetInlineBytes())
		if err != nil {
			return nil, errors.New("no certificate " + strings.ToValidUTF8(name, ""))
		}
		config.Certificates = append(config.Certificates, certificate)
	}
	return config, nil
}
