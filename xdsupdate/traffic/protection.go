// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// protection contains the filters of policies for all filter chains of a router: CUSTOM
// AuthorizationPolicies, RequestAuthentications, then AUDIT, DENY and ALLOW policies, in this
// order. It is immutable. Each filter chain repeats the filters.
type protection struct {
	// http contains the HTTP filters.
	http filters[*hcm.HttpFilter]
	// tcp builds the network filters for connections without HTTP, once. It is nil if there are
	// none.
	tcp func() filters[*listenerv3.Filter]
	// unverified builds the protection of servers that accept unverified client certificates, once.
	// Their clients have no identity. It is nil if there are no such servers.
	unverified func() *protection
	// problems are the errors for rules that allow less, or deny more, than they specify.
	problems []error
}

// connections returns the network filters for connections without HTTP.
func (x *protection) connections() filters[*listenerv3.Filter] {
	if x.tcp == nil {
		return filters[*listenerv3.Filter]{}
	}
	return x.tcp()
}

// of returns the protection of a server.
func (x *protection) of(s *gatewayServer) *protection {
	if x.unverified != nil && s.tls() && xdsbuild.TakesUnverified(s.spec.GetTls()) {
		return x.unverified()
	}
	return x
}

// protectionOf returns the filters of a router.
func (st *state) protectionOf(p *proxy) *protection {
	if p.leaving != nil {
		return st.newProtection(p)
	}
	return st.protections.Get(p, func() *protection { return st.newProtection(p) })
}

func (st *state) newProtection(p *proxy) *protection {
	out := st.protectionFor(p, false)
	out.unverified = sync.OnceValue(func() *protection { return st.protectionFor(p, true) })
	return out
}

func (st *state) protectionFor(p *proxy, unverified bool) *protection {
	b := &protectionBuilder{state: st, proxy: p, unverified: unverified}
	for _, a := range st.AuthorizationPoliciesOf(&p.Proxy) {
		b.apply(a)
	}
	b.askProviders()
	b.custom()
	b.tokens()
	for _, action := range actionsInOrder[1:] {
		if r := b.translator(rbac.HTTP).Rules(action, b.policies); !r.Empty() {
			b.add(rbac.HTTPFilter, r.HTTP())
		}
	}
	out := b.finish()
	out.tcp = sync.OnceValue(b.tcp)
	return out
}

// actionsInOrder is the order of evaluation of policies.
//
//nolint:gochecknoglobals // never changed
var actionsInOrder = [...]security.AuthorizationPolicy_Action{
	security.AuthorizationPolicy_CUSTOM, security.AuthorizationPolicy_AUDIT, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_ALLOW,
}

// askedFirst returns the policies that apply to a router, as "ACTION namespace/name", in the order
// of evaluation.
func (st *state) askedFirst(p *proxy) (out []string) {
	policies := st.AuthorizationPoliciesOf(&p.Proxy)
	for _, action := range actionsInOrder {
		for _, a := range policies {
			if a.Spec.GetAction() == action && !a.DryRun {
				out = append(out, action.String()+" "+a.String())
			}
		}
	}
	return out
}

// protectionBuilder builds the protection of a router or of a gRPC server.
type protectionBuilder struct {
	*state
	proxy *proxy
	// unverified has the meaning of rbac.Translator.Unverified.
	unverified bool
	// policies are the policies that apply.
	policies []rbac.Policy
	// asked are the providers of CUSTOM policies, sorted by name.
	asked []askedProvider
	// http are the HTTP filters. refused says why they cannot be sent.
	http     []*hcm.HttpFilter
	refused  error
	problems []error
}

// askedProvider is a provider with the policies that ask it.
type askedProvider struct {
	rbac.Provider
	policies []rbac.Policy
}

// apply adds a policy. If it is left out, it is closed, and its name goes, too, if nothing of it may
// remain.
func (b *protectionBuilder) apply(a *objects.AuthorizationPolicy) {
	policy := a.Policy()
	how := b.proxy.leaves(a.Config, a)
	policy.Closed = policy.Closed || how != ads.Included
	if how == ads.Absent {
		policy.Namespace, policy.Name = "", "left-out"
	}
	b.policies = append(b.policies, policy)
}

// translator returns the translator for a form of rules.
func (b *protectionBuilder) translator(form rbac.Form) rbac.Translator {
	return rbac.Translator{
		Form: form, Trust: b.settings.trust(), Unverified: b.unverified, Check: checkOf(form),
		Problem: func(p rbac.Policy, problem rbac.Problem) { b.problem(p, problem.Field, problem.Err) },
	}
}

func (b *protectionBuilder) problem(p rbac.Policy, field string, err error) {
	of := objects.Named[*objects.AuthorizationPolicy](b.Index, istio.AuthorizationPolicy, objects.ObjectName{Namespace: p.Namespace, Name: p.Name})
	if of == nil {
		return // It is left out for a client that rejects its name.
	}
	what := "it denies more than it says"
	if p.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
		what = "it allows nothing"
	}
	b.problems = append(b.problems, leftOut(of.Config, field, fmt.Errorf("%s: %w", what, err)))
}

// checkOf returns a function that validates a part of a listener for the clients of a form.
func checkOf(form rbac.Form) func(proto.Message) error {
	client := envoy.ForEnvoy
	if form == rbac.GRPC || form == rbac.GRPCNode {
		client = envoy.ForGRPC
	}
	return func(m proto.Message) error { return xdsbuild.Check(client, m) }
}

// askProviders determines the providers of CUSTOM policies. A provider whose filter would be
// rejected cannot be asked.
func (b *protectionBuilder) askProviders() {
	byProvider := make(map[string][]rbac.Policy)
	for _, p := range b.policies {
		if p.Spec.GetAction() == security.AuthorizationPolicy_CUSTOM {
			name := p.Spec.GetProvider().GetName()
			byProvider[name] = append(byProvider[name], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byProvider)) {
		provider := askedProvider{b.authorizer(b.proxy, name), byProvider[name]}
		if len(byProvider) > 1 && !b.settings.options.MultipleCustomProviders && provider.Err == nil {
			provider.Err = fmt.Errorf("a workload can have one provider, and has %d", len(byProvider))
		}
		if provider.Err == nil {
			provider.Err = provider.check()
		}
		if provider.Err != nil {
			for _, p := range provider.policies {
				b.problem(p, "spec.provider", fmt.Errorf("%s: %w", provider.Name, provider.Err))
			}
		}
		b.asked = append(b.asked, provider)
	}
}

// check returns an error if Envoys would reject the filters of the provider.
func (p askedProvider) check() error {
	http, err := p.HTTPAuthz()
	return errors.Join(err, xdsbuild.Check(envoy.ForEnvoy, http), xdsbuild.Check(envoy.ForEnvoy, p.TCPAuthz()))
}

// custom adds the filters of providers.
func (b *protectionBuilder) custom() {
	for _, provider := range b.asked {
		rules := b.translator(rbac.HTTP).Custom(provider.Provider, provider.policies)
		b.add(rbac.HTTPFilter, rules.HTTP())
		if rules.DryRun != nil {
			authz, _ := provider.HTTPAuthz() // the error is in provider.Err
			b.add(rbac.HTTPProviderFilter, authz)
		}
	}
}

// add adds an HTTP filter whose parts are already validated.
func (b *protectionBuilder) add(name string, config proto.Message) {
	b.http = append(b.http, xdsbuild.HTTPFilter(name, config))
}

// tcp returns the network filters for connections without HTTP. It reports no problems for
// conditions that connections lack, because Ineffective does.
func (b *protectionBuilder) tcp() filters[*listenerv3.Filter] {
	var list []*listenerv3.Filter
	add := func(name string, config proto.Message) { list = append(list, xdsbuild.NetworkFilter(name, config)) }
	t := b.translator(rbac.TCP)
	t.Problem = nil
	for _, provider := range b.asked {
		authz := provider.TCPAuthz()
		if provider.Err == nil && authz == nil {
			continue // S43
		}
		rules := t.Custom(provider.Provider, provider.policies)
		add(rbac.TCPFilter, rules.TCP())
		if rules.DryRun != nil {
			add(rbac.TCPProviderFilter, authz)
		}
	}
	for _, action := range actionsInOrder[1:] {
		if r := t.Rules(action, b.policies); !r.Empty() {
			add(rbac.TCPFilter, r.TCP())
		}
	}
	return newFilters(list, nil)
}

func (b *protectionBuilder) finish() *protection {
	return &protection{http: newFilters(b.http, b.refused), problems: b.problems}
}

// closeBeyond closes the connections of filter chains if their copies of the policies exceed a
// limit, because the chains must not serve without policies. It returns an error for each object
// with closed chains.
func (x *protection) closeBeyond(chains []gatewayChain, limit int) []error {
	claims := make([]claim, len(chains))
	for i, c := range chains {
		claims[i] = claimOf(c.owner().config, x.bytesIn(c.FilterChain))
	}
	var owners []*configstore.Config
	closed, count := make(map[*configstore.Config][]string), 0
	for i, over := range allot(limit, claims) {
		if !over {
			continue
		}
		c := &chains[i]
		owner := c.owner()
		if closed[owner.config] == nil {
			owners = append(owners, owner.config)
		}
		closed[owner.config] = append(closed[owner.config], owner.field)
		c.FilterChain, count = closedChain(c.GetFilterChainMatch()), count+1
	}
	if count > 0 && count == len(chains) {
		return []error{fmt.Errorf("all connections are closed: its policies, in each of %d filter chains, have more than %d bytes", count, limit)}
	}
	var errs []error
	for _, of := range owners {
		reason := fmt.Errorf("the policies of the listener, in each of %d filter chains, would have more than %d bytes%s, for %d filter chains",
			len(chains), limit, beyondShare, len(closed[of]))
		errs = append(errs, leftOut(of, closed[of][0], closedConnections(reason)))
	}
	return errs
}

// bytesIn returns the size of the policies in a filter chain.
func (x *protection) bytesIn(c *listenerv3.FilterChain) int {
	if takesRequests(c) {
		return x.http.bytes
	}
	return x.connections().bytes
}

// closedChain returns a filter chain that closes all connections of a match.
func closedChain(match *listenerv3.FilterChainMatch) *listenerv3.FilterChain {
	c := xdsbuild.FilterChain(nil, nil, xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())
	c.FilterChainMatch = match
	return c
}

// trust returns the trust domains of the mesh.
func (s *settings) trust() rbac.Trust {
	return rbac.Trust{Domain: s.Mesh.GetTrustDomain(), Aliases: s.Mesh.GetTrustDomainAliases()}
}

// Prefixes of the names of RBAC policies that deny all requests of a router. The name of the
// responsible RequestAuthentication follows.
const (
	leftOutTokens = "left-out-"
	refusedTokens = "refused-"
)

// tokens adds the filter of RequestAuthentications. If one of these cannot be included, all
// requests are denied. Otherwise invalid tokens would pass, and AuthorizationPolicies would miss
// the claims of tokens.
func (b *protectionBuilder) tokens() {
	var rules []jwtauthn.Rule
	for _, a := range b.RequestAuthenticationsOf(&b.proxy.Proxy) {
		if how := b.proxy.leaves(a.Config, a); how != ads.Included {
			name := leftOutTokens
			if how < ads.Absent {
				name += a.String()
			}
			b.add(rbac.HTTPFilter, rbac.DenyAll(name))
			return
		}
		if len(a.Unread) > 0 { // Reported by Ineffective.
			b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
			return
		}
		for i, r := range a.Rules {
			if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
				b.problems = append(b.problems, leftOut(a.Config, objects.Element("spec.jwtRules", i), fmt.Errorf("all requests are denied: %w", err)))
				b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
				return
			}
			if errors.Is(r.Err, objects.ErrNoIssuer) { // Keys that are not fetched yet are not an error of the object. Ineffective reports them.
				b.problems = append(b.problems, leftOut(a.Config, objects.Element("spec.jwtRules", i), r.Err))
			}
			rules = append(rules, r.Rule)
		}
	}
	config := jwtauthn.Config(rules)
	if config == nil {
		return
	}
	b.refused = checkOf(rbac.HTTP)(config)
	b.add(jwtauthn.Filter, config)
}

// takesRequests reports whether a filter chain serves HTTP requests.
func takesRequests(c *listenerv3.FilterChain) bool {
	return slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool {
		return f.GetTypedConfig().MessageIs(&hcm.HttpConnectionManager{})
	})
}

// authorizer returns the named provider of CUSTOM policies for a router. Its Err is set if the mesh
// configuration has no such provider or the router has no cluster for it.
func (st *state) authorizer(p *proxy, name string) rbac.Provider {
	out := rbac.Provider{Name: name}
	configured := st.settings.authorizer(name)
	if configured == nil {
		out.Err = errors.New("the mesh configuration has no such extension provider for authorization")
		return out
	}
	out.GRPC, out.HTTP = configured.GetEnvoyExtAuthzGrpc(), configured.GetEnvoyExtAuthzHttp()
	namespace, host, port := authorizerService(configured)
	out.Host = string(host)
	out.Cluster = envoy.ClusterName(port, host)
	if st.serviceFor(p, host, namespace) == nil || !st.coversCluster(p, out.Cluster) {
		out.Err = fmt.Errorf("there is no cluster %s", out.Cluster)
	}
	return out
}

// authorizer returns the named extension provider for authorization, or nil.
func (s *settings) authorizer(name string) *meshconfig.MeshConfig_ExtensionProvider {
	for _, e := range s.Mesh.GetExtensionProviders() {
		if e.GetName() == name && (e.GetEnvoyExtAuthzGrpc() != nil || e.GetEnvoyExtAuthzHttp() != nil) {
			return e
		}
	}
	return nil
}

// authorizerService returns the service of a provider. The provider names it "HOST" or
// "NAMESPACE/HOST".
func authorizerService(e *meshconfig.MeshConfig_ExtensionProvider) (namespace string, host registry.Hostname, port uint32) {
	service, port := e.GetEnvoyExtAuthzGrpc().GetService(), e.GetEnvoyExtAuthzGrpc().GetPort()
	if h := e.GetEnvoyExtAuthzHttp(); h != nil {
		service, port = h.GetService(), h.GetPort()
	}
	if ns, name, ok := strings.Cut(service, "/"); ok {
		return ns, hostname.Canonical(name), port
	}
	return "", hostname.Canonical(service), port
}

// isAuthorizer reports whether some extension provider for authorization uses the service.
func (s *settings) isAuthorizer(name registry.Hostname) bool {
	for _, e := range s.Mesh.GetExtensionProviders() {
		if _, host, _ := authorizerService(e); host != "" && host == name {
			return true
		}
	}
	return false
}
