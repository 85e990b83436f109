// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	jwtauthn "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Gate decides about calls by the filters of a chain, as Envoy is documented to do. It is for one
// goroutine.
type Gate struct {
	filters []gateFilter
	paths   Paths
	regexps map[string]*regexp.Regexp
	// Ask returns the response of an external authorization cluster to a call. If Ask is nil, each
	// call of a cluster fails.
	Ask func(cluster string, c Call) Answer
	// Signatures remembers verified signatures, if it is not nil.
	Signatures *Signatures
}

// gateFilter is a filter of connections or of requests. name is always set.
type gateFilter struct {
	name   string
	config proto.Message
}

// NewGate reads the filters of a chain: the network filters, and the HTTP filters in the last of
// them, if there are any. Unknown content is an error, so that it is not mistaken for harmless.
func NewGate(chain *listenerv3.FilterChain) (*Gate, error) {
	g := &Gate{regexps: make(map[string]*regexp.Regexp)}
	for _, f := range chain.GetFilters() {
		config, err := f.GetTypedConfig().UnmarshalNew()
		if err != nil {
			return nil, fmt.Errorf("network filter %s: %w", f.GetName(), err)
		}
		if m, ok := config.(*hcm.HttpConnectionManager); ok {
			g.paths = pathsOf(m)
			for _, h := range m.GetHttpFilters() {
				if err := g.add(h.GetName(), h.GetTypedConfig()); err != nil {
					return nil, err
				}
			}
			continue
		}
		g.filters = append(g.filters, gateFilter{f.GetName(), config})
	}
	return g, nil
}

func (g *Gate) add(name string, config *anypb.Any) error {
	m, err := config.UnmarshalNew()
	if err != nil {
		return fmt.Errorf("HTTP filter %s: %w", name, err)
	}
	g.filters = append(g.filters, gateFilter{name, m})
	return nil
}

// harmless are the filters that let every call pass.
//
//nolint:gochecknoglobals // never changed
var harmless = map[string]bool{
	"envoy.filters.http.router": true, "envoy.filters.http.cors": true, "envoy.filters.http.fault": true,
	"envoy.filters.http.grpc_web": true, "envoy.filters.http.grpc_stats": true,
}

// Decide returns the outcome of a call.
func (g *Gate) Decide(c Call) (Decision, error) {
	v := visit{gate: g, call: c, found: map[string]map[string]any{}}
	maps.Copy(v.found, c.Metadata)
	if c.Request != nil { // filters change it
		own := *c.Request
		own.Headers = maps.Clone(own.Headers)
		taken := false
		if own.Path, taken = g.paths.Of(own.Path); !taken {
			return Decision{By: "the path"}, nil
		}
		v.call.Request = &own
	}
	if c.Claims != nil && !g.verifiesTokens() {
		v.found[tokenFilter] = map[string]any{"payload": c.Claims}
	}
	for _, f := range g.filters {
		admitted, err := v.pass(f)
		if err != nil {
			return Decision{}, fmt.Errorf("%s: %w", f.name, err)
		}
		if !admitted {
			return Decision{By: f.name}, nil
		}
	}
	claims, _ := v.found[tokenFilter]["payload"].(map[string]any)
	out := Decision{Admitted: true, By: "all filters", Claims: claims}
	if v.call.Request != nil {
		out.Headers, out.Path = v.call.Headers, v.call.Path
	}
	return out, nil
}

// visit is a call on its way through the filters.
type visit struct {
	gate *Gate
	call Call
	// found is what filters have found out.
	found map[string]map[string]any
}

func (v *visit) pass(f gateFilter) (bool, error) {
	switch config := f.config.(type) {
	case *httprbac.RBAC:
		return v.rbac("envoy.filters.http.rbac", config.GetRules(), config.GetShadowRules(), config.GetShadowRulesStatPrefix())
	case *tcprbac.RBAC:
		return v.rbac("envoy.filters.network.rbac", config.GetRules(), config.GetShadowRules(), config.GetShadowRulesStatPrefix())
	case *httpauthz.ExtAuthz:
		cluster := config.GetGrpcService().GetEnvoyGrpc().GetClusterName()
		if h := config.GetHttpService(); h != nil {
			cluster = h.GetServerUri().GetCluster()
		}
		return v.ask(cluster, config.GetFilterEnabledMetadata(), config.GetFailureModeAllow())
	case *tcpauthz.ExtAuthz:
		return v.ask(config.GetGrpcService().GetEnvoyGrpc().GetClusterName(), config.GetFilterEnabledMetadata(), config.GetFailureModeAllow())
	case *jwtauthn.JwtAuthentication:
		return v.tokens(config)
	case *tcpproxy.TcpProxy:
		return config.GetCluster() != "BlackHoleCluster", nil
	}
	if !harmless[f.name] {
		return false, fmt.Errorf("filter %s (%s) is not known here", f.name, f.config.ProtoReflect().Descriptor().FullName())
	}
	return true, nil
}

// ask asks a service, if the filter is on.
func (v *visit) ask(cluster string, on *matcher.MetadataMatcher, open bool) (bool, error) {
	if on != nil {
		matched, err := v.metadata(on)
		if err != nil || !matched {
			return !matched, err
		}
	}
	answer := Fails
	if v.gate.Ask != nil {
		answer = v.gate.Ask(cluster, v.call)
	}
	return answer == Admits || answer == Fails && open, nil
}

// rbac passes a filter: its shadow rules are only noted, for other filters.
func (v *visit) rbac(name string, rules, shadow *rbacv3.RBAC, prefix string) (bool, error) {
	if shadow != nil {
		admitted, policy, err := v.engine(shadow)
		if err != nil {
			return false, err
		}
		noted := map[string]any{prefix + "shadow_engine_result": map[bool]string{true: "allowed", false: "denied"}[admitted]}
		for key, value := range v.found[name] {
			if _, ok := noted[key]; !ok {
				noted[key] = value
			}
		}
		if policy != "" {
			noted[prefix+"shadow_effective_policy_id"] = policy
		}
		v.found[name] = noted
	}
	if rules == nil {
		return true, nil
	}
	admitted, _, err := v.engine(rules)
	return admitted, err
}

// text compares with a matcher of texts.
func (g *Gate) text(m *matcher.StringMatcher, text string) (bool, error) {
	pattern := m.GetExact() + m.GetPrefix() + m.GetSuffix() + m.GetContains()
	if m.GetIgnoreCase() {
		text, pattern = strings.ToLower(text), strings.ToLower(pattern)
	}
	switch m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return text == pattern, nil
	case *matcher.StringMatcher_Prefix:
		return strings.HasPrefix(text, pattern), nil
	case *matcher.StringMatcher_Suffix:
		return strings.HasSuffix(text, pattern), nil
	case *matcher.StringMatcher_Contains:
		return strings.Contains(text, pattern), nil
	case *matcher.StringMatcher_SafeRegex:
		return g.fullMatch(m.GetSafeRegex().GetRegex(), text)
	default:
		return false, fmt.Errorf("matcher of texts %v is not known here", m)
	}
}

func (g *Gate) fullMatch(expression, text string) (bool, error) {
	re := g.regexps[expression]
	if re == nil {
		var err error
		if re, err = regexp.Compile("^(?:" + expression + ")$"); err != nil {
			return false, err
		}
		g.regexps[expression] = re
	}
	return re.MatchString(text), nil
}
