// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/internal/rbac"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// protection are the filters that policies put in front of all that a router serves: CUSTOM AuthorizationPolicies,
// RequestAuthentications, AUDIT, DENY, ALLOW, in this order. It is immutable.
type protection struct {
	// http are for requests, tcp for connections of which no request is known.
	http []*hcm.HttpFilter
	tcp  []*listenerv3.Filter
	// bytes are those of the longer list, encoded. Each filter chain repeats them.
	bytes int
	// refused is why they cannot be sent; nil: they can.
	refused error
	// problems are why rules allow nothing, or deny everything, although they say something else.
	problems []error
}

// protectionOf returns the filters of a router.
func (st *state) protectionOf(p *proxy) *protection {
	if p.leaving != nil {
		return st.newProtection(p)
	}
	st.mu.Lock()
	out := st.protections[p]
	st.mu.Unlock()
	if out == nil {
		out = st.newProtection(p)
		st.mu.Lock()
		st.protections[p] = out
		st.mu.Unlock()
	}
	return out
}

func (st *state) newProtection(p *proxy) *protection {
	b := &protectionBuilder{state: st, proxy: p}
	for _, a := range st.authorizationPoliciesOf(p) {
		policy := a.policy()
		policy.Closed = policy.Closed || p.leaves(a.config, a)
		b.policies = append(b.policies, policy)
		b.of = append(b.of, a)
	}
	b.custom()
	b.tokens()
	for _, action := range actionsInOrder[1:] {
		b.rules(action)
	}
	return b.finish()
}

// actionsInOrder is the order in which policies are asked.
//
//nolint:gochecknoglobals // never changed
var actionsInOrder = [...]security.AuthorizationPolicy_Action{
	security.AuthorizationPolicy_CUSTOM, security.AuthorizationPolicy_AUDIT, security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_ALLOW,
}

// askedFirst returns the policies that count for a router, as "ACTION namespace/name", in the order in which they are asked.
func (st *state) askedFirst(p *proxy) (out []string) {
	policies := st.authorizationPoliciesOf(p)
	for _, action := range actionsInOrder {
		for _, a := range policies {
			if a.spec.GetAction() == action && !a.dryRun {
				out = append(out, action.String()+" "+a.String())
			}
		}
	}
	return out
}

// protectionBuilder makes the protection of a router.
type protectionBuilder struct {
	*state
	proxy *proxy
	// policies are those that count, and of the objects that they are.
	policies []rbac.Policy
	of       []*authorizationPolicy
	out      protection
}

// translator returns that for requests or for connections. What cannot be checked of a connection is
// no problem: that is what Ineffective says.
func (b *protectionBuilder) translator(form rbac.Form) rbac.Translator {
	return rbac.Translator{
		Form: form, Trust: b.settings.trust(), Check: checkOf(form),
		Problem: func(p rbac.Policy, problem rbac.Problem) {
			if form != rbac.TCP {
				b.problem(p, problem.Field, problem.Err)
			}
		},
	}
}

func (b *protectionBuilder) problem(p rbac.Policy, field string, err error) {
	i := slices.IndexFunc(b.of, func(a *authorizationPolicy) bool { return a.objectName == objectName{p.Namespace, p.Name} })
	what := "it denies more than it says"
	if p.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
		what = "it allows nothing"
	}
	b.out.problems = append(b.out.problems, leftOut(b.of[i].config, field, fmt.Errorf("%s: %w", what, err)))
}

// checkOf returns what says why those that check a form would refuse a part of a listener.
func checkOf(form rbac.Form) func(proto.Message) error {
	client := envoy.ForEnvoy
	if form == rbac.GRPC || form == rbac.GRPCNode {
		client = envoy.ForGRPC
	}
	return func(m proto.Message) error { return envoy.Check(client, m) }
}

// rules adds the filters of an action.
func (b *protectionBuilder) rules(action security.AuthorizationPolicy_Action) {
	if r := b.translator(rbac.HTTP).Rules(action, b.policies); !r.Empty() {
		b.addHTTP(rbac.HTTPFilter, r.HTTP())
	}
	if r := b.translator(rbac.TCP).Rules(action, b.policies); !r.Empty() {
		b.addTCP(rbac.TCPFilter, r.TCP())
	}
}

// custom adds the filters of providers, sorted by name.
func (b *protectionBuilder) custom() {
	byProvider := make(map[string][]rbac.Policy)
	for _, p := range b.policies {
		if p.Spec.GetAction() == security.AuthorizationPolicy_CUSTOM {
			name := p.Spec.GetProvider().GetName()
			byProvider[name] = append(byProvider[name], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byProvider)) {
		provider := b.authorizer(b.proxy, name)
		if len(byProvider) > 1 && !b.settings.multipleProviders && provider.Err == nil {
			provider.Err = fmt.Errorf("a workload can have one provider, and has %d", len(byProvider))
		}
		b.provider(provider, byProvider[name])
	}
}

// provider adds the filters of a provider. One that would be refused cannot be asked.
func (b *protectionBuilder) provider(provider rbac.Provider, policies []rbac.Policy) {
	authz, err := provider.HTTPAuthz()
	tcp := provider.TCPAuthz()
	if err == nil && provider.Err == nil {
		err = errors.Join(envoy.Check(envoy.ForEnvoy, authz), envoy.Check(envoy.ForEnvoy, tcp))
	}
	if provider.Err == nil {
		provider.Err = err
	}
	if provider.Err != nil {
		for _, p := range policies {
			b.problem(p, "spec.provider", fmt.Errorf("%s: %w", provider.Name, provider.Err))
		}
	}
	enforced, shadow := b.translator(rbac.HTTP).Custom(provider, policies)
	b.addHTTP(rbac.HTTPFilter, rbac.CustomHTTP(enforced, shadow))
	if shadow != nil {
		b.addHTTP(rbac.HTTPProviderFilter, authz)
	}
	if enforced == nil && tcp == nil {
		return // S43
	}
	enforced, shadow = b.translator(rbac.TCP).Custom(provider, policies)
	b.addTCP(rbac.TCPFilter, rbac.CustomTCP(enforced, shadow))
	if shadow != nil {
		b.addTCP(rbac.TCPProviderFilter, tcp)
	}
}

// addHTTP adds a filter for requests. What is of policies in it has been checked.
func (b *protectionBuilder) addHTTP(name string, config proto.Message) {
	b.out.http = append(b.out.http, envoy.HTTPFilter(name, config))
}

// addTCP adds a filter for connections. What is of policies in it has been checked.
func (b *protectionBuilder) addTCP(name string, config proto.Message) {
	b.out.tcp = append(b.out.tcp, envoy.NetworkFilter(name, config))
}

func (b *protectionBuilder) finish() *protection {
	http, err := encodedSize(b.out.http)
	tcp, errTCP := encodedSize(b.out.tcp)
	b.out.bytes, b.out.refused = max(http, tcp), errors.Join(b.out.refused, err, errTCP)
	return &b.out
}

// encodedSize returns how many bytes filters have together, or why they cannot be encoded.
func encodedSize[F proto.Message](filters []F) (size int, err error) {
	for _, f := range filters {
		encoded, failed := proto.Marshal(f)
		size, err = size+len(encoded), errors.Join(err, failed)
	}
	return size, err
}

// chain returns a filter chain with what protects it, or why it cannot be sent. It is checked without: the filters are the
// same in all chains and have been checked.
func (x *protection) chain(build func(x *protection) *listenerv3.FilterChain) (*listenerv3.FilterChain, error) {
	c, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return build(&protection{}) })
	switch {
	case c == nil || err != nil:
		return nil, err
	case x.refused != nil:
		return nil, x.refused
	case len(x.http)+len(x.tcp) == 0:
		return c, nil
	default:
		return build(x), nil
	}
}

// tooLarge returns why a listener with so many filter chains closes all connections: the policies would be
// repeated too often, and without them it must not serve.
func (x *protection) tooLarge(chains, limit int) error {
	if exceeds(chains*x.bytes, limit) {
		return fmt.Errorf("all connections are closed: its policies, in each of %d filter chains, have more than %d bytes", chains, limit)
	}
	return nil
}

// closedChain closes all connections.
func closedChain() *listenerv3.FilterChain {
	return envoy.FilterChain(nil, nil, envoy.TCPProxy{Cluster: envoy.BlackHole}.Filter())
}

// trust returns the trust domains of the mesh.
func (s *settings) trust() rbac.Trust {
	return rbac.Trust{Domain: s.mesh.GetTrustDomain(), Aliases: s.mesh.GetTrustDomainAliases()}
}
