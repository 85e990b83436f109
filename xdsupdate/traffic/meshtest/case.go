// SPDX-License-Identifier: Apache-2.0

package meshtest

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// Case is one case of a file.
type Case struct {
	Name string
	// File and Line are its place.
	File string
	Line int
	// Kind and Proxy are the proxy that decides: a gateway or a client workload.
	Kind    route.Kind
	Proxy   registry.Proxy
	Request route.Request
	Expect  Expectation
}

// Expectation has the conditions of a case. Zero fields demand nothing.
type Expectation struct {
	// To is a destination, and Shares are percentages by destination.
	To     string
	Shares map[string]float64
	// Path and Host belong to the forwarded request.
	Path, Host string
	// Rule and Denied are the beginnings of the rule that routes or denies, such as
	// "VirtualService shop/cart" or "AuthorizationPolicy shop/deny, rules[0]".
	Rule, Denied string
	// Redirect is the location of a redirect, and Status the status of an answer.
	Redirect string
	Status   int
	// Closed demands that the connection is closed.
	Closed bool
	// NoEffect is an object without any effect, "KIND NAMESPACE/NAME".
	NoEffect string
}

// source is where a case comes from.
type source struct {
	gateway, workload, grpc, cluster, network, principal, address string
	labels                                                        map[string]string
}

// set sets the proxy and the caller of a case.
func (s source) set(c *Case) error {
	given := 0
	for kind, namespace := range map[route.Kind]string{route.Gateway: s.gateway, route.Workload: s.workload, route.GRPC: s.grpc} {
		if namespace != "" {
			given++
			c.Kind, c.Proxy.Namespace = kind, namespace
		}
	}
	if given != 1 && c.Expect.NoEffect == "" {
		return fmt.Errorf("from: exactly one of gateway, workload and grpc is needed")
	}
	c.Proxy.Labels, c.Proxy.ClusterID, c.Proxy.Network = s.labels, registry.ClusterID(s.cluster), s.network
	c.Request.Principal, c.Request.Certificate = s.principal, s.principal != ""
	if s.address != "" {
		address, err := netip.ParseAddr(s.address)
		if err != nil {
			return fmt.Errorf("from.address: %w", err)
		}
		c.Request.Source = address
	}
	return nil
}

// target is the request of a case.
type target struct {
	protocol string
	headers  map[string]string
}

func (t target) set(r *route.Request) error {
	switch t.protocol {
	case "", "http":
	case "tls":
		r.Protocol, r.TLS = route.TCP, true
	case "tcp":
		r.Protocol = route.TCP
	default:
		return fmt.Errorf("request.protocol: %q is none of http, tls and tcp", t.protocol)
	}
	r.Headers = make(http.Header)
	for name, value := range t.headers {
		r.Headers.Set(name, value)
	}
	r.TLS = r.TLS || r.ServerName != ""
	return nil
}
