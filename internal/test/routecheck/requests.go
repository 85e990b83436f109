// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"maps"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// maxRequests bounds the requests of one route configuration.
const maxRequests = 300

// requests returns requests for a route configuration.
func (c *checker) requests(config *routev3.RouteConfiguration) (out []routesim.Request) {
	for _, h := range config.GetVirtualHosts() {
		for _, domain := range h.GetDomains() {
			for _, r := range h.GetRoutes() {
				one := c.matching(hostOf(domain), r.GetMatch())
				out = append(out, one, c.similar(one), c.similar(one))
			}
		}
	}
	c.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	out = out[:min(len(out), maxRequests)]
	for range 20 {
		one := routesim.Request{Method: pick(c.Rand, c.methods), Scheme: "http", Authority: pick(c.Rand, c.hosts), Path: c.path(), Headers: make(map[string]string), Query: make(map[string]string)}
		for range 3 {
			one = c.similar(one)
		}
		out = append(out, one)
	}
	return out
}

// matching returns a request that a match is about.
func (c *checker) matching(host string, m *routev3.RouteMatch) routesim.Request {
	out := routesim.Request{Method: "GET", Scheme: "http", Authority: host, Path: pathOf(m), Headers: make(map[string]string), Query: make(map[string]string)}
	for _, h := range m.GetHeaders() {
		switch name, value := strings.ToLower(h.GetName()), headerOf(h); {
		case h.GetInvertMatch():
		case name == ":method":
			out.Method = value
		case name == ":authority":
			out.Authority = value
		case name == ":scheme":
			out.Scheme = value
		default:
			out.Headers[name] = value
		}
	}
	for _, q := range m.GetQueryParameters() {
		out.Query[q.GetName()] = sample(q.GetStringMatch())
	}
	return out
}

// path returns a path of the resources, or a similar one.
func (c *checker) path() string {
	return rooted(pick(c.Rand, c.paths) + pick(c.Rand, []string{"", "", "", "x", "/", "/x", "//y"}))
}

// similar returns a request that differs from another in one property.
func (c *checker) similar(of routesim.Request) routesim.Request {
	of.Headers, of.Query = maps.Clone(of.Headers), maps.Clone(of.Query)
	switch c.IntN(6) {
	case 0:
		of.Path = c.path()
	case 1:
		of.Path = pick(c.Rand, []string{of.Path + "x", of.Path + "/x", strings.ToUpper(of.Path), strings.TrimSuffix(of.Path, "/") + "/"})
	case 2:
		of.Authority = pick(c.Rand, []string{strings.ToUpper(of.Authority), of.Authority + ":8080", "x." + of.Authority, pick(c.Rand, c.hosts)})
	case 3:
		of.Method = pick(c.Rand, c.methods)
	case 4:
		c.change(of.Headers, c.headers)
	default:
		c.change(of.Query, c.queries)
	}
	return of
}

// change adds, changes or removes a value.
func (c *checker) change(values map[string]string, from map[string][]string) {
	if len(from) == 0 {
		return
	}
	name, value := some(c.Rand, from)
	switch c.IntN(4) {
	case 0:
		delete(values, name)
	case 1:
		values[name] = value + "x"
	default:
		values[name] = value
	}
}
