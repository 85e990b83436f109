// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// Sent are the resources that a proxy has been sent, by type URL and name.
type Sent map[string]map[string]proto.Message

var _ route.Resources = Sent{}

// Names implements route.Resources.
func (s Sent) Names(typeURL string) iter.Seq[string] { return maps.Keys(s[typeURL]) }

// Has implements route.Resources.
func (s Sent) Has(typeURL, name string) bool { return s[typeURL][name] != nil }

// Resource implements route.Resources.
func (s Sent) Resource(typeURL, name string) route.Made { return route.Made{Message: s[typeURL][name]} }

// checker compares a router with the predictions about one proxy.
type checker struct {
	Sent
	*rand.Rand
	*words
	router *route.Router
	edge   routesim.Edge
	tokens *Tokens
	count  int
}

// Check compares the decisions of a router about calls with the predictions of package routesim, by
// the resources of a proxy. The calls are derived from the resources: for each route of each virtual
// host a call that matches, two that differ from it, and random ones. It returns the number of calls,
// and an error that describes the first difference.
func (s Sent) Check(kind route.Kind, random *rand.Rand) (calls int, err error) {
	c := &checker{Sent: s, Rand: random}
	if c.words, err = wordsOf(s); err != nil {
		return 0, err
	}
	if err := c.setTokens(); err != nil {
		return 0, err
	}
	c.router = route.New(kind, c.Sent)
	c.edge = routesim.Edge{Routes: make(map[string]*routev3.RouteConfiguration), Signatures: &routesim.Signatures{}}
	for _, name := range slices.Sorted(maps.Keys(c.Sent[envoy.ListenerType])) {
		c.edge.Listeners = append(c.edge.Listeners, c.Sent[envoy.ListenerType][name].(*listenerv3.Listener))
	}
	for name, config := range s[envoy.RouteType] {
		c.edge.Routes[name] = config.(*routev3.RouteConfiguration)
	}
	switch kind {
	case route.Gateway:
		err = c.gateway()
	case route.Workload:
		err = c.workload()
	default:
		err = c.grpc()
	}
	return c.count, err
}

// setTokens has the listeners verify tokens with a key of the checker, if they verify any.
func (c *checker) setTokens() error {
	if len(c.issuers) == 0 {
		return nil
	}
	c.tokens = &Tokens{c.issuers, routesim.NewKey("own"), routesim.NewKey("foreign"), c.claims}
	c.Sent = maps.Clone(c.Sent)
	listeners := maps.Clone(c.Sent[envoy.ListenerType])
	for name, m := range listeners {
		l, err := WithKeys(m.(*listenerv3.Listener), routesim.KeySet(c.tokens.Key))
		if err != nil {
			return err
		}
		listeners[name] = l
	}
	c.Sent[envoy.ListenerType] = listeners
	return nil
}

// gateway checks each filter chain of each listener.
func (c *checker) gateway() error {
	for _, l := range c.edge.Listeners {
		for _, chain := range l.GetFilterChains() {
			for _, conn := range c.connections(l, chain) {
				if err := c.connection(conn); err != nil {
					return fmt.Errorf("listener %s: %w", l.GetName(), err)
				}
			}
		}
	}
	return nil
}

// conn is a connection of calls.
type conn struct {
	routesim.Call
	encrypted bool
}

// connections returns connections of a filter chain, and one that may be of another.
func (c *checker) connections(l *listenerv3.Listener, chain *listenerv3.FilterChain) []conn {
	m := chain.GetFilterChainMatch()
	one := conn{encrypted: chain.GetTransportSocket() != nil || len(m.GetServerNames()) > 0}
	address := func(ranges []string, other netip.Addr) netip.Addr {
		if len(ranges) > 0 {
			other, _ = netip.ParseAddr(pick(c.Rand, ranges))
		}
		return other
	}
	var to, from []string
	for _, r := range m.GetPrefixRanges() {
		to = append(to, r.GetAddressPrefix())
	}
	for _, r := range m.GetSourcePrefixRanges() {
		from = append(from, r.GetAddressPrefix())
	}
	at := l.GetAddress().GetSocketAddress()
	bound, err := netip.ParseAddr(at.GetAddress())
	if err != nil { // a Unix domain socket
		return nil
	}
	if bound.IsUnspecified() {
		bound = netip.MustParseAddr("10.7.7.7")
	}
	one.To = netip.AddrPortFrom(address(to, bound), uint16(at.GetPortValue())) //nolint:gosec // a port
	one.From = address(from, pick(c.Rand, c.addresses))
	one.Client = pick(c.Rand, append(c.addresses, one.From))
	if names := m.GetServerNames(); len(names) > 0 {
		one.ServerName = hostOf(pick(c.Rand, names))
	}
	beside := one
	beside.From, beside.ServerName = pick(c.Rand, c.addresses), strings.ToUpper(pick(c.Rand, c.serverNames))
	if len(to) > 0 {
		beside.To = netip.AddrPortFrom(pick(c.Rand, c.addresses), beside.To.Port())
	}
	beside.encrypted = one.encrypted != (c.IntN(4) == 0)
	out := []conn{one, beside}
	for i := range out {
		if id := pick(c.Rand, c.principals); out[i].encrypted && (id != "" || c.IntN(3) > 0) {
			out[i].Certificate = &routesim.Certificate{URIs: []string{id}}
		}
	}
	return out
}

// connection checks a connection and the requests that its routes are about.
func (c *checker) connection(in conn) error {
	config, http := c.edge.ConfigOf(c.edge.Chain(in.Call))
	if !http {
		return c.call(in, nil)
	}
	in.encrypted = in.encrypted && routesim.Encrypted(c.edge.Chain(in.Call))
	for _, r := range c.requests(config) {
		r.TLS = in.encrypted
		r.Scheme = map[bool]string{true: "https", false: "http"}[in.encrypted]
		r.Port = uint32(in.To.Port())
		if err := c.call(in, &r); err != nil {
			return err
		}
	}
	return nil
}

// call checks one call: a connection, if there is no request.
func (c *checker) call(in conn, r *routesim.Request) error {
	c.count++
	q := route.Request{Protocol: route.TCP}
	if r != nil {
		r.Headers, r.Query = maps.Clone(r.Headers), maps.Clone(r.Query)
		claims, invalid := c.tokens.Put(c.Rand, r)
		q = Request(*r)
		q.Claims, q.InvalidToken = claims, invalid
		whole := *r
		whole.Path = q.Path
		in.Request = &whole
	}
	q.Port, q.TLS, q.ServerName = uint32(in.To.Port()), in.encrypted, in.ServerName
	q.Source, q.Remote, q.Destination = in.From, in.Client, in.To.Addr()
	if in.Certificate != nil {
		q.Certificate, q.Principal = true, in.Certificate.URIs[0]
	}
	want, err := c.edge.Handle(in.Call, in.encrypted)
	if err != nil {
		return err
	}
	if problem := c.differ(q, want); problem != "" {
		return fmt.Errorf("connection %+v, request %+v, certificate %+v: %s; want %+v", in, r, in.Certificate, problem, want)
	}
	return nil
}

// differ compares a decision with a prediction.
func (c *checker) differ(q route.Request, want routesim.Handling) string {
	d := c.router.Route(q)
	switch {
	case want.Closed:
		if d.Outcome != route.Closed {
			return describe(d)
		}
		return ""
	case want.Refused != "":
		if d.Outcome != route.Answered || !slices.Contains(refusals(want.Refused), d.Status) {
			return describe(d)
		}
		return ""
	case len(d.Access.Asked) != len(want.Asked):
		return fmt.Sprintf("asks %v", d.Access.Asked)
	case want.Connection:
		if problem := c.exists(d); problem != "" {
			return problem
		}
		got := make(map[string]uint32)
		if d.Rule != nil {
			for _, to := range d.Rule.Destinations {
				got[to.Cluster] += max(1, to.Weight)
			}
		}
		if !maps.Equal(got, want.Targets) {
			return fmt.Sprintf("%s, to %v", describe(d), got)
		}
		return ""
	default:
		problem, passed := "", q
		if passed.Path, _, _ = strings.Cut(q.Path, "?"); want.Query != "" {
			passed.Path += "?" + want.Query
		}
		return cmp.Or(Differs(func(one route.Request) route.Decision {
			q.Random = one.Random
			d := c.router.Route(q)
			problem = cmp.Or(problem, c.exists(d))
			if c.tokens != nil && d.Destination != nil {
				others, wrong := c.byTokens(q, d, want.Passed)
				d.Request, problem = others, cmp.Or(problem, wrong)
			}
			return d
		}, passed, want.Outcome), problem)
	}
}

// refusals are the statuses of requests that a filter refuses.
func refusals(filter string) []int {
	switch {
	case filter == "the path":
		return []int{http.StatusBadRequest}
	case strings.HasSuffix(filter, "jwt_authn"):
		return []int{http.StatusUnauthorized, http.StatusForbidden}
	default:
		return []int{http.StatusForbidden}
	}
}

// exists compares the reason NoCluster with the clusters that there are.
func (c *checker) exists(d route.Decision) string {
	if d.Destination == nil || d.Destination.Host == "" {
		return ""
	}
	if there := c.Has(envoy.ClusterType, d.Destination.Cluster); there == (d.Reason == route.NoCluster) {
		return fmt.Sprintf("the cluster %s is there: %t; %s", d.Destination.Cluster, there, describe(d))
	}
	return ""
}

func describe(d route.Decision) string {
	return fmt.Sprintf("outcome %d, %s (%s), status %d", d.Outcome, d.Reason, d.Detail, d.Status)
}

// workload checks the route configurations, by a router if their names are numbers of ports.
func (c *checker) workload() error {
	for name, config := range c.edge.Routes {
		router := route.NewTable(route.Made{Message: config}).Route
		port, err := strconv.ParseUint(name, 10, 32)
		if err == nil {
			router = c.router.Route
		}
		for _, r := range c.requests(config) {
			r.Port = uint32(port)
			if r.Port == 0 {
				r.Port = 80
			}
			c.count++
			want := routesim.Envoy(config, r)
			if problem := Differs(router, Request(r), want); problem != "" {
				return fmt.Errorf("routes %s, request %+v: %s; want %s", name, r, problem, want)
			}
		}
	}
	return nil
}

// grpc checks the calls of a gRPC client to its targets, and to it as a server.
func (c *checker) grpc() error {
	for _, l := range c.edge.Listeners {
		api := c.edge.API(l)
		if api == nil {
			if err := c.server(l); err != nil {
				return fmt.Errorf("listener %s: %w", l.GetName(), err)
			}
			continue
		}
		for _, r := range c.requests(api) {
			r.Authority, r.Method, r.Query = l.GetName(), "POST", nil
			want, err := routesim.Go.Call(api, r)
			if err != nil {
				return err
			}
			c.count++
			d, got := c.router.Route(Request(r)), routesim.Outcome{Status: 404}
			if d.Destination != nil {
				got = routesim.Outcome{Targets: make(map[string]uint32), Timeout: d.Rule.Timeout, Fault: faultText(d.Rule.Fault)}
				for _, to := range d.Rule.Destinations {
					got.Targets[to.Cluster] += max(1, to.Weight)
				}
			}
			want.Retries, want.RetryOn = 0, ""
			fails := d.Destination == nil || d.Rule.Fault != nil && d.Rule.Fault.AbortShare == 1_000_000
			if fails && strings.HasPrefix(want.Fault, "fails") {
				continue
			}
			if got.String() != want.String() {
				return fmt.Errorf("target %s, call %+v: %s, %s; want %s", l.GetName(), r, got, describe(d), want)
			}
		}
	}
	return nil
}

// server checks the calls to a gRPC server.
func (c *checker) server(l *listenerv3.Listener) error {
	door, err := routesim.NewDoor(l)
	if err != nil {
		return err
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(l.GetAddress().GetSocketAddress().GetAddress()), uint16(l.GetAddress().GetSocketAddress().GetPortValue())) //nolint:gosec // a port
	config, _ := c.edge.ConfigOf(l.GetFilterChains()[0])
	for _, r := range c.requests(config) {
		by := routesim.PlainText
		if routesim.Encrypted(l.GetFilterChains()[0]) {
			by = pick(c.Rand, []routesim.Transport{routesim.PlainText, routesim.TLSWithoutCertificate, routesim.MutualTLS, routesim.MutualTLS})
		}
		r.Method, r.Path = "POST", "/"+strings.TrimPrefix(r.Path, "/")
		call := routesim.Call{Request: &r, From: pick(c.Rand, c.addresses), To: to}
		q := Request(r)
		q.Port, q.Source, q.Destination, q.TLS = uint32(to.Port()), call.From, to.Addr(), by != routesim.PlainText
		if by == routesim.MutualTLS {
			q.Certificate, q.Principal = true, pick(c.Rand, c.principals)
			call.Certificate = &routesim.Certificate{URIs: []string{q.Principal}}
		}
		want, err := door.Enter(by, call)
		if err != nil {
			return err
		}
		c.count++
		d := route.NewListener(route.Made{Message: l}).Route(q, nil)
		if admitted := d.Outcome == route.Forwarded; admitted != want.Admitted {
			return fmt.Errorf("request %+v by %d of %q: %s; want %+v", r, by, q.Principal, describe(d), want)
		}
	}
	return nil
}
