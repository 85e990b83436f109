// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Table is a compiled route configuration. The routes of a virtual host are compiled with its first
// request. It is immutable apart from that, and safe for concurrent use.
type Table struct {
	ignorePort bool
	exact      map[string]*virtualHost
	// suffixes and prefixes are the domains with a wildcard, without it.
	suffixes, prefixes wildcards
	any                *virtualHost
	request, response  []HeaderChange
}

// wildcards are domains by the length of the part without the wildcard, the longest first.
type wildcards []wildcardsOfLength

type wildcardsOfLength struct {
	length int
	hosts  map[string]*virtualHost
}

// NewTable compiles a route configuration. It returns nil for nil.
func NewTable(made Made) *Table {
	config, _ := made.Message.(*routev3.RouteConfiguration)
	if config == nil {
		return nil
	}
	t := &Table{
		ignorePort: config.GetIgnorePortInHostMatching(), exact: make(map[string]*virtualHost),
		request:  headerChanges(config.GetRequestHeadersToAdd(), config.GetRequestHeadersToRemove()),
		response: headerChanges(config.GetResponseHeadersToAdd(), config.GetResponseHeadersToRemove()),
	}
	for _, h := range config.GetVirtualHosts() {
		host := t.newHost(h, made.Routes)
		for _, d := range h.GetDomains() {
			t.add(asciiLower(d), host)
		}
	}
	return t
}

func (t *Table) add(domain string, h *virtualHost) {
	if domain == "*" {
		t.any = h
	} else if suffix, ok := strings.CutPrefix(domain, "*"); ok {
		t.suffixes.add(suffix, h)
	} else if prefix, ok := strings.CutSuffix(domain, "*"); ok {
		t.prefixes.add(prefix, h)
	} else {
		t.exact[domain] = h
	}
}

func (w *wildcards) add(part string, h *virtualHost) {
	i, found := slices.BinarySearchFunc(*w, len(part), func(o wildcardsOfLength, n int) int { return n - o.length })
	if !found {
		*w = slices.Insert(*w, i, wildcardsOfLength{len(part), make(map[string]*virtualHost)})
	}
	(*w)[i].hosts[part] = h
}

// find returns the virtual host of an authority, or nil: by an exact domain, by the longest suffix,
// by the longest prefix, by "*". A wildcard stands for at least one character.
func (t *Table) find(authority string) *virtualHost {
	host := authority
	if t.ignorePort {
		host, _ = splitPort(authority)
	}
	host = asciiLower(host)
	if h := t.exact[host]; h != nil {
		return h
	}
	for _, w := range t.suffixes {
		if w.length < len(host) {
			if h := w.hosts[host[len(host)-w.length:]]; h != nil {
				return h
			}
		}
	}
	for _, w := range t.prefixes {
		if w.length < len(host) {
			if h := w.hosts[host[:w.length]]; h != nil {
				return h
			}
		}
	}
	return t.any
}

// Route decides about a request by the routes alone, without a listener, as for the requests of a
// client workload.
func (t *Table) Route(r Request) Decision {
	c := newCall(r)
	c.setPath(c.Path)
	c.read = true
	d := Decision{Access: Access{Allowed: true}}
	if len(c.Headers["Host"]) > 1 || !strings.HasPrefix(c.Path, "/") {
		d.answer(BadRequest, http.StatusBadRequest)
		return d
	}
	t.decide(c, c.TLS, &d)
	return d
}

// decide evaluates the routes. Secure says that the client uses TLS.
func (t *Table) decide(c *call, secure bool, d *Decision) {
	d.Path, d.Authority = c.Path, c.Authority
	var h *virtualHost
	if t != nil {
		h = t.find(c.Authority)
	}
	if h == nil {
		d.answer(NoVirtualHost, http.StatusNotFound)
		return
	}
	d.VirtualHost = h.name
	compiled := h.get()
	if compiled.requireTLS && !secure {
		d.answer(RedirectedToTLS, http.StatusMovedPermanently)
		d.Location = "https://" + c.Authority + c.Path
		return
	}
	for i := range compiled.routes {
		r := &compiled.routes[i]
		if r.matches == nil {
			d.answer(Unsupported, http.StatusInternalServerError)
			d.Detail = r.err.Error()
			return
		}
		if r.matches(c) {
			d.Rule = r.rule
			r.act(c, d)
			return
		}
	}
	d.answer(NoRule, http.StatusNotFound)
}

// virtualHost is a virtual host.
type virtualHost struct {
	name string
	*lazy[*compiledHost]
}

// compiledHost is a virtual host with its routes in order.
type compiledHost struct {
	requireTLS bool
	routes     []route
}

func (t *Table) newHost(h *routev3.VirtualHost, origins func(*routev3.VirtualHost) []Origin) *virtualHost {
	return &virtualHost{h.GetName(), newLazy(func() *compiledHost {
		c := &compiledHost{requireTLS: h.GetRequireTls() != routev3.VirtualHost_NONE, routes: make([]route, 0, len(h.GetRoutes()))}
		request := slices.Concat(headerChanges(h.GetRequestHeadersToAdd(), h.GetRequestHeadersToRemove()), t.request)
		response := slices.Concat(headerChanges(h.GetResponseHeadersToAdd(), h.GetResponseHeadersToRemove()), t.response)
		var of []Origin
		if origins != nil {
			of = origins(h)
		}
		for i, r := range h.GetRoutes() {
			c.routes = append(c.routes, newRoute(r, at(of, i), request, response))
		}
		return c
	})}
}
