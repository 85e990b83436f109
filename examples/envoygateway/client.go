// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// client makes requests to the hosts of a gateway. It trusts one authority, and resolves the hosts
// to the gateway without DNS.
type client struct {
	http *http.Client
	port int
}

// newClient returns a client that keeps its connection, or makes a new one for each request.
func newClient(port int, trusted *x509.Certificate, keep bool) *client {
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	gateway := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return &client{port: port, http: &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: !keep,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, gateway)
			},
		},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answer is the result of a request.
type answer struct {
	status int
	body   string
	// serial is the serial number of the certificate.
	serial string
}

func (c *client) get(ctx context.Context, host string) (answer, error) {
	url := fmt.Sprintf("https://%s:%d/api/v1/first/items", host, c.port)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, strings.TrimSpace(string(body)), res.TLS.PeerCertificates[0].SerialNumber.String()}, err
}

// ok is like get, but returns an error unless a backend answers the request.
func (c *client) ok(ctx context.Context, host string) (answer, error) {
	a, err := c.get(ctx, host)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", host, a.status, a.body)
	}
	return a, err
}
