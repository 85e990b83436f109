// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// claimRoutes route by claims: see routeOfClaims.
const claimRoutes = `VirtualService istio-system/all {"hosts": ["*"], "gateways": ["edge"], "http": [
	{"match": [{"headers": {"@request.auth.claims.group": {"exact": "one"}}}], "directResponse": {"status": 201}},
	{"match": [{"withoutHeaders": {"@request.auth.claims[sub]": {}}}], "directResponse": {"status": 202}},
	{"match": [{"headers": {"@request.auth.claims.a.b": {"prefix": "o"}}}], "directResponse": {"status": 203}},
	{"directResponse": {"status": 200}}],
	"tcp": [{"route": [{"destination": {"host": "echo.example.com", "port": {"number": 80}}}]}]}`

// routeOfClaims is the status of the route of claimRoutes for claims.
func routeOfClaims(claims map[string]any) uint32 {
	nested, _ := claims["a"].(map[string]any)
	list, _ := claims["group"].([]any)
	switch {
	case claims["group"] == "one" || slices.Contains(list, any("one")):
		return 201
	case claims["sub"] == nil:
		return 202
	case nested["b"] == "one":
		return 203
	default:
		return 200
	}
}

// tokenGates are the gates of a router with its routes.
type tokenGates struct {
	gates
	routes *routev3.RouteConfiguration
}

func (s *scene) tokenGates(n *core.Node, signatures *routesim.Signatures) tokenGates {
	s.t.Helper()
	g := tokenGates{s.gates(n), s.routes(n, "http.80")}
	g.http.Signatures = signatures
	return g
}

// outcome is what becomes of a call: "refused", or "admitted" with the status of its route.
func (g tokenGates) outcome(d routesim.Decision, c routesim.Call) string {
	if !d.Admitted {
		return "refused"
	}
	if c.Request == nil {
		return "admitted"
	}
	request := *c.Request
	request.Claims = routesim.FlatClaims("", d.Claims, map[string][]string{})
	_, route := routesim.Choose(g.routes, request)
	return fmt.Sprint("admitted ", route.GetDirectResponse().GetStatus())
}

// readTokens returns RequestAuthentications as they are read by the API's documentation.
func readTokens(w *tokenWorld, objects configList) *routesim.Authentication {
	out := &routesim.Authentication{Tokens: w.tokens, Signers: w.signers}
	for _, c := range objects {
		if spec, ok := c.Spec.(*security.RequestAuthentication); ok {
			out.Policies = append(out.Policies, &routesim.RequestAuthentication{Namespace: c.Namespace, Name: c.Name, RequestAuthentication: spec})
		}
	}
	return out
}

// randomAuthentications are objects of namespaces and the root, of which validation takes each.
func (d policyDice) randomAuthentications(w *tokenWorld, namespaces int) (out configList) {
	schema, _ := istio.Schemas().Find(istio.RequestAuthentication)
	add := func(namespace string, n int) {
		for i := 0; i < n; {
			out.add(istio.RequestAuthentication, fmt.Sprintf("%s/t%d", namespace, i), d.authentication(w))
			if _, err := schema.Check(*out[len(out)-1]); err != nil {
				out = out[:len(out)-1]
				continue
			}
			i++
		}
	}
	add(routesim.RootNamespace, d.IntN(2))
	for n := range namespaces {
		add(fmt.Sprint("n", n), pick(d.Rand, []int{0, 1, 1, 2, 3}))
	}
	return out
}

// outputHeaders are those that tell workloads of tokens.
var outputHeaders = []string{"x-payload", "x-sub", "x-group"}

// withOutputs has a rule tell workloads of tokens.
func (d policyDice) withOutputs(r *security.JWTRule) {
	if d.chance(20) {
		r.OutputPayloadToHeader = "X-Payload"
	}
	for _, claim := range []string{"sub", "group"} {
		if d.chance(20) {
			r.OutputClaimToHeaders = append(r.OutputClaimToHeaders, &security.ClaimToHeader{Header: "X-" + claim, Claim: claim})
		}
	}
}

// TestReadingsOfTokensAgree: gateways verify tokens, tell workloads of them, decide and route by their claims as RequestAuthentications, AuthorizationPolicies
// and VirtualServices say.
func TestReadingsOfTokensAgree(t *testing.T) {
	t.Parallel()
	const namespaces, calls = 40, 500
	scenes := uint64(tier.Share(10))
	w, signatures, counts := newTokenWorld(t), &routesim.Signatures{}, map[string]int{}
	for seed := range scenes {
		d := policyDice{rand.New(rand.NewPCG(seed, 27))}
		objects := d.randomAuthentications(w, namespaces)
		policies := slices.DeleteFunc(d.randomPolicies(namespaces), func(*configstore.Config) bool { return d.chance(50) })
		all := append(slices.Clone(objects), policies...)
		s := guardedScene(t, traffic.Options{Mesh: authorizationMesh()}, istio.Schemas(), all)
		s.change(objectsOf(t, claimRoutes))
		tokens, read := readTokens(w, objects), readPolicies(policies, false)
		for n := range namespaces {
			who := routesim.Proxy{Namespace: fmt.Sprint("n", n), Labels: map[string]string{"app": "edge"}}
			if d.chance(30) {
				who.Labels["gateway.networking.k8s.io/gateway-name"] = "g1"
			}
			rules := tokens.RulesIn(who.Namespace)
			g := s.tokenGates(clientOf("router", who), signatures)
			for range calls {
				c := d.call(d.chance(10))
				if c.Claims = nil; c.Request != nil {
					d.withTokens(w, rules, &c)
					for _, name := range outputHeaders { // whatever clients say of tokens
						if d.chance(10) {
							c.Headers[name] = "forged"
						}
					}
				}
				d := g.decide(t, c)
				want, got := outcomesRead(tokens, read, who, c), g.outcome(d, c)
				if !slices.Contains(want, got) {
					t.Fatalf("scene %d, router %+v, call %+v, request %+v: sent %s, want %q\n%s", seed, who, c, c.Request, got, want, describePolicies(all, who.Namespace))
				}
				counts[fmt.Sprintf("%s of %d", got, len(want))]++
				for name, value := range tokens.Identify(who, c).Outputs {
					if !d.Admitted {
						continue
					}
					if d.Headers[name] != value {
						t.Fatalf("scene %d, router %+v, request %+v: the workload gets %s %q, want %q\n%s", seed, who, c.Request, name, d.Headers[name], value, describePolicies(all, who.Namespace))
					}
					counts[fmt.Sprintf("output is set: %t", value != "")]++
				}
			}
		}
		s.close()
	}
	t.Log(counts)
	for _, often := range []string{"output is set: true", "output is set: false", "refused of 1", "admitted 200 of 1", "admitted 201 of 1", "admitted 202 of 1", "admitted 203 of 1"} {
		if counts[often] < int(scenes)*10 {
			t.Errorf("the calls tell little: %v", counts)
		}
	}
}

// outcomesRead are what may become of a call as the objects are read: one thing, unless the API leaves it open.
func outcomesRead(tokens *routesim.Authentication, policies *routesim.Authorization, p routesim.Proxy, c routesim.Call) (out []string) {
	add := func(outcome string) {
		if !slices.Contains(out, outcome) {
			out = append(out, outcome)
		}
	}
	known := tokens.Identify(p, c)
	if known.MayRefuse {
		add("refused")
	}
	if !known.MayAdmit {
		return out
	}
	for _, claims := range known.Claims {
		c.Claims = claims
		switch {
		case !policies.Decide(p, c).Admitted:
			add("refused")
		case c.Request == nil:
			add("admitted")
		default:
			add(fmt.Sprint("admitted ", routeOfClaims(claims)))
		}
	}
	return out
}
