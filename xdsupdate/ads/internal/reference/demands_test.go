// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// rules returns the rules of an RBAC filter, with policies of some names.
func rules(action rbacv3.RBAC_Action, policies ...string) *rbacv3.RBAC {
	out := &rbacv3.RBAC{Action: action, Policies: make(map[string]*rbacv3.Policy)}
	for _, name := range policies {
		out.Policies[name] = &rbacv3.Policy{}
	}
	return out
}

// filtered is a filter chain to routes with HTTP filters, and perhaps others before.
func filtered(tb testing.TB, routes string, http []proto.Message, before ...proto.Message) *listenerv3.FilterChain {
	tb.Helper()
	manager := &hcm.HttpConnectionManager{RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{RouteConfigName: routes}}}
	for _, m := range http {
		manager.HttpFilters = append(manager.HttpFilters, &hcm.HttpFilter{
			Name: string(m.ProtoReflect().Descriptor().Name()), ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: inAny(tb, m)},
		})
	}
	c := &listenerv3.FilterChain{}
	for _, m := range append(before, manager) {
		c.Filters = append(c.Filters, &listenerv3.Filter{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: inAny(tb, m)}})
	}
	return c
}

// matching is a filter chain for server names.
func matching(c *listenerv3.FilterChain, names ...string) *listenerv3.FilterChain {
	c.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: names}
	c.Name = names[0]
	return c
}

// TestTightened: Tightened finds the route configurations behind the stricter one of two states of
// a listener.
func TestTightened(t *testing.T) {
	http := func(list ...proto.Message) []proto.Message { return list }
	deny := func(policies ...string) proto.Message {
		return &httprbac.RBAC{Rules: rules(rbacv3.RBAC_DENY, policies...)}
	}
	allow := func(policies ...string) proto.Message {
		return &httprbac.RBAC{Rules: rules(rbacv3.RBAC_ALLOW, policies...)}
	}
	chain := func(filters ...proto.Message) *listenerv3.FilterChain { return filtered(t, "r", filters) }
	type state = []*listenerv3.FilterChain
	for name, test := range map[string]struct {
		a, b        state
		there, back bool // from a to b r is tightened, and from b to a
	}{
		"the same":                         {state{chain(deny("x"))}, state{chain(deny("x"))}, false, false},
		"a filter":                         {state{chain()}, state{chain(deny("x"))}, true, false},
		"an empty allow":                   {state{chain()}, state{chain(allow())}, true, false},
		"a rule that denies":               {state{chain(deny("x"))}, state{chain(deny("x", "y"))}, true, false},
		"a rule that allows":               {state{chain(allow("x"))}, state{chain(allow("x", "y"))}, false, true},
		"another rule":                     {state{chain(deny("x"))}, state{chain(deny("y"))}, true, true},
		"what only logs":                   {state{chain(&httprbac.RBAC{Rules: rules(rbacv3.RBAC_LOG, "x")})}, state{chain(&httprbac.RBAC{Rules: rules(rbacv3.RBAC_LOG, "y")})}, false, false},
		"an unknown filter":                {state{chain(wrapperspb.String("x"))}, state{chain(wrapperspb.String("y"))}, true, true},
		"an unknown filter more":           {state{chain(deny("x"))}, state{chain(deny("x"), wrapperspb.String("y"))}, true, false},
		"connections":                      {state{chain()}, state{filtered(t, "r", nil, &tcprbac.RBAC{Rules: rules(rbacv3.RBAC_DENY, "x")})}, true, false},
		"a rule for connections":           {state{filtered(t, "r", nil, &tcprbac.RBAC{Rules: rules(rbacv3.RBAC_DENY, "x")})}, state{filtered(t, "r", nil, &tcprbac.RBAC{Rules: rules(rbacv3.RBAC_DENY, "x", "y")})}, true, false},
		"from requests to others":          {state{chain(deny("x"))}, state{filtered(t, "r", nil, &tcprbac.RBAC{Rules: rules(rbacv3.RBAC_DENY, "x")})}, true, true},
		"what chains match":                {state{matching(chain(), "x")}, state{matching(chain(), "x", "y")}, false, false},
		"one more chain":                   {state{matching(chain(), "x")}, state{matching(chain(), "x"), matching(chain(deny("y")), "y")}, false, true},
		"one of two chains":                {state{matching(chain(), "x"), matching(chain(), "y")}, state{matching(chain(), "x"), matching(chain(deny("y")), "y")}, true, false},
		"no chain":                         {state{chain()}, nil, true, false},
		"other routes":                     {state{chain()}, state{chain(), filtered(t, "s", http(deny("x")))}, false, false},
		"routes and others":                {state{chain(), filtered(t, "s", nil)}, state{chain(deny("x")), filtered(t, "s", nil)}, true, false},
		"fewer that allow, more that deny": {state{chain(allow("x", "y"))}, state{chain(allow("x"), deny("y"))}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := found(t, test.a), found(t, test.b)
			for what, got := range map[string][2]bool{
				"there": {slices.Contains(a.Tightened(b), "r"), test.there}, "back": {slices.Contains(b.Tightened(a), "r"), test.back},
			} {
				if got[0] != got[1] {
					t.Errorf("%s: got %t, want %t", what, got[0], got[1])
				}
			}
			if slices.Contains(a.Tightened(b), "s") {
				t.Error("other routes are tightened")
			}
		})
	}
}

// found returns the references of a listener with filter chains, the last one of which is the
// default.
func found(tb testing.TB, chains []*listenerv3.FilterChain) *Set {
	tb.Helper()
	l := &listenerv3.Listener{FilterChains: chains}
	if n := len(chains); n > 1 {
		l.FilterChains, l.DefaultFilterChain = chains[:n-1], chains[n-1]
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(l)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range encoded {
		Find(envoy.ListenerType, "", encoded[:i]).Tightened(None) // truncated messages do no harm
	}
	if diff := cmp.Diff([]string(nil), None.Tightened(Find(envoy.ListenerType, "", encoded))); diff != "" {
		tb.Errorf("of nothing (-want +got):\n%s", diff)
	}
	return Find(envoy.ListenerType, "", encoded)
}
