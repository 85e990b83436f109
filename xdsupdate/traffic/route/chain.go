// SPDX-License-Identifier: Apache-2.0

package route

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// chain is a compiled filter chain.
type chain struct {
	// tls says that it terminates TLS: with certificate, clients need one; with verifies, their
	// identity is known to policies.
	tls, certificate, verifies bool
	server                     *ServerTLS // nil without TLS
	// filters evaluate connections. After them a manager serves requests, or a rule forwards the
	// connections.
	filters []filter
	manager *manager
	rule    *Rule
	// err is set if the chain cannot be evaluated.
	err error
}

// manager is a compiled HTTP connection manager.
type manager struct {
	routes  string // the name of the route configuration, unless table is set
	table   *Table
	paths   paths
	filters []filter
	// stripDot: a trailing dot of the host is removed.
	stripDot bool
	// trusted: proxies in front say in X-Forwarded-Proto what protocol the client speaks.
	trusted bool
}

// newChain compiles a filter chain. Origin is what its connections are forwarded by.
func newChain(f *listenerv3.FilterChain, origin Origin) *chain {
	out := &chain{}
	out.err = errors.Join(out.setTLS(f.GetTransportSocket()), out.addFilters(f.GetFilters(), origin))
	return out
}

func (x *chain) setTLS(socket *core.TransportSocket) error {
	if socket == nil {
		return nil
	}
	context := &tls.DownstreamTlsContext{}
	if err := socket.GetTypedConfig().UnmarshalTo(context); err != nil {
		return err
	}
	common := context.GetCommonTlsContext()
	x.server = newServerTLS(context)
	x.tls, x.certificate = true, context.GetRequireClientCertificate().GetValue()
	trust := common.GetCombinedValidationContext().GetDefaultValidationContext().GetTrustChainVerification()
	x.verifies = trust != tls.CertificateValidationContext_ACCEPT_UNTRUSTED && (x.certificate || common.GetValidationContextType() != nil)
	return nil
}

func (x *chain) addFilters(list []*listenerv3.Filter, origin Origin) error {
	for _, f := range list {
		var err error
		switch config := f.GetTypedConfig(); {
		case config.MessageIs(&hcm.HttpConnectionManager{}):
			m := &hcm.HttpConnectionManager{}
			if err = config.UnmarshalTo(m); err == nil {
				x.manager, err = newManager(m)
			}
		case config.MessageIs(&tcp.TcpProxy{}):
			m := &tcp.TcpProxy{}
			if err = config.UnmarshalTo(m); err == nil {
				x.rule = connectionRule(m, origin)
			}
		default:
			var one filter
			if one, err = newFilter(config); one != nil {
				x.filters = append(x.filters, one)
			}
		}
		if err != nil {
			return err
		}
	}
	if x.manager == nil && x.rule == nil {
		return errors.New("a filter chain that neither serves HTTP nor forwards connections")
	}
	return nil
}

func newManager(m *hcm.HttpConnectionManager) (*manager, error) {
	out := &manager{
		routes: m.GetRds().GetRouteConfigName(), paths: newPaths(m), stripDot: m.GetStripTrailingHostDot(), trusted: m.GetXffNumTrustedHops() > 0,
	}
	if m.GetRouteConfig() != nil {
		out.table = NewTable(Made{Message: m.GetRouteConfig()})
	}
	for _, f := range m.GetHttpFilters() {
		one, err := newFilter(f.GetTypedConfig())
		if err != nil {
			return nil, err
		}
		if one != nil {
			out.filters = append(out.filters, one)
		}
	}
	return out, nil
}

// connectionRule returns the rule of a filter that forwards connections.
func connectionRule(m *tcp.TcpProxy, origin Origin) *Rule {
	out := &Rule{Origin: origin}
	for _, w := range m.GetWeightedClusters().GetClusters() {
		out.Destinations = append(out.Destinations, newDestination(w.GetName(), w.GetWeight()))
	}
	if c := m.GetCluster(); c != "" {
		out.Destinations = []Destination{newDestination(c, 0)}
	}
	if len(m.GetHashPolicy()) > 0 {
		out.Hash = []HashPolicy{{Kind: HashSource}}
	}
	if d := m.GetMaxDownstreamConnectionDuration(); d != nil {
		out.Timeout = d.AsDuration()
	}
	return out
}

// decide evaluates a call. Routes returns the route configurations by name.
func (x *chain) decide(c *call, d *Decision, routes func(string) *Table) {
	if x.err != nil {
		d.Outcome, d.Reason, d.Detail = Closed, Unsupported, x.err.Error()
		return
	}
	if !x.handshake(c, d) {
		return
	}
	d.Access.Allowed = true
	for _, passes := range x.filters {
		if !passes(c, &d.Access) {
			d.Outcome, d.Reason = Closed, Denied
			return
		}
	}
	if x.manager != nil {
		x.manager.decide(c, d, routes)
		return
	}
	d.Rule = x.rule
	if d.Destination = x.rule.choose(c.Random); d.Destination == nil || d.Destination.Cluster == xdsbuild.BlackHole {
		d.Outcome, d.Reason, d.Destination, d.Access.Allowed = Closed, LeftOut, nil, false
	}
}

// handshake evaluates the TLS handshake, and reports whether it succeeds.
func (x *chain) handshake(c *call, d *Decision) bool {
	if !x.tls {
		if c.TLS && x.manager != nil {
			d.Outcome, d.Reason = Closed, UnexpectedTLS
			return false
		}
		return true
	}
	if !c.TLS {
		d.Outcome, d.Reason = Closed, NotTLS
		return false
	}
	if x.certificate && c.Principal == "" && !c.Certificate {
		d.Outcome, d.Reason, d.Access.Cause = Closed, Denied, NoCertificate
		return false
	}
	if x.verifies {
		c.identity, d.Access.Identity = c.Principal, c.Principal
	}
	return true
}

// decide evaluates a request.
func (m *manager) decide(c *call, d *Decision, routes func(string) *Table) {
	if len(c.Headers["Host"]) > 1 || c.Protocol != HTTP {
		d.answer(BadRequest, http.StatusBadRequest)
		d.Detail = "several Host headers, or no request"
		return
	}
	path, notes, ok := m.paths.of(c.Path)
	d.Access.Unknown = notes
	if !ok {
		d.answer(BadRequest, http.StatusBadRequest)
		d.Detail = "the proxy takes no such path"
		return
	}
	c.setPath(path)
	if m.stripDot {
		c.Authority = withoutDot(c.Authority)
	}
	c.read = true
	for _, passes := range m.filters {
		if !passes(c, &d.Access) {
			d.answer(Denied, http.StatusForbidden)
			if d.Access.Cause == BadToken {
				d.Status = d.Access.status
			}
			return
		}
	}
	table := m.table
	if table == nil {
		table = routes(m.routes)
	}
	table.decide(c, m.secure(c), d)
	if len(c.changes) > 0 && d.Outcome == Forwarded {
		d.Request = slices.Concat(c.changes, d.Request)
	}
}

// secure reports whether the client of a request uses TLS, according to the connection or to
// trusted proxies.
func (m *manager) secure(c *call) bool {
	if m.trusted {
		if proto := c.Headers["X-Forwarded-Proto"]; len(proto) > 0 {
			return equalFold(proto[len(proto)-1], "https")
		}
	}
	return c.TLS
}

func (d *Decision) answer(why Reason, status int) {
	d.Outcome, d.Reason, d.Status = Answered, why, status
}

// withoutDot removes the trailing dot of the host of an authority.
func withoutDot(authority string) string {
	host, port := splitPort(authority)
	if bare, ok := strings.CutSuffix(host, "."); ok {
		return bare + port
	}
	return authority
}

// splitPort returns the host of an authority, and the port with its colon, if there is one.
func splitPort(authority string) (host, port string) {
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		return authority[:i], authority[i:]
	}
	return authority, ""
}

// choose returns the destination of a request with a random number, or nil.
func (r *Rule) choose(random uint64) *Destination {
	if len(r.Destinations) == 1 {
		return &r.Destinations[0]
	}
	total := uint64(0)
	for i := range r.Destinations {
		total += uint64(r.Destinations[i].Weight)
	}
	if total == 0 {
		return nil
	}
	at := random % total
	i := slices.IndexFunc(r.Destinations, func(d Destination) bool {
		if at < uint64(d.Weight) {
			return true
		}
		at -= uint64(d.Weight)
		return false
	})
	return &r.Destinations[i]
}

// newDestination returns the destination of a cluster.
func newDestination(cluster string, weight uint32) Destination {
	out := Destination{Cluster: cluster, Weight: weight}
	if port, subset, host, ok := envoy.ParseSubsetClusterName(cluster); ok {
		out.Host, out.Subset, out.Port = host, subset, port
	}
	return out
}

// isService reports whether the name of the cluster is that of a service. The name for a destination
// that may not be used has no host.
func (d *Destination) isService() bool { return strings.HasPrefix(d.Cluster, "outbound|") }
