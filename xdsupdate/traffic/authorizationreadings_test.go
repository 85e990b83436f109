// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// guardedGateway serves a port of HTTP and one of TCP at every router with the label app=edge.
const guardedGateway = `Gateway istio-system/edge {"selector": {"app": "edge"}, "servers": [
	{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}, {"hosts": ["*"], "port": {"number": 9000, "name": "tcp", "protocol": "TCP"}}]}`

const guardedRoutes = `VirtualService istio-system/all {"hosts": ["*"], "gateways": ["edge"], "http": [{"directResponse": {"status": 200}}],
	"tcp": [{"route": [{"destination": {"host": "echo.example.com", "port": {"number": 80}}}]}]}`

// guardedScene has the gateway, policies, and the services of the providers.
func guardedScene(tb testing.TB, options traffic.Options, schemas configstore.Schemas, policies configList) *scene {
	tb.Helper()
	services := []*registry.Service{testService("istio-system", "echo.example.com", 80)}
	for _, name := range sortedKeys(providerServices) {
		services = append(services, testService("istio-system", registry.Hostname(providerServices[name]), 80))
	}
	return given(tb, options, schemas, append(objectsOf(tb, guardedGateway, guardedRoutes), policies...), populate(services...))
}

// gates are those of the listeners of a router: for requests, and for connections.
type gates struct{ http, tcp *routesim.Gate }

func (s *scene) gates(n *core.Node) gates {
	s.t.Helper()
	answer := s.ask(n, envoy.ListenerType)
	return gates{s.gate(answer.resources["0.0.0.0_80"]), s.gate(answer.resources["0.0.0.0_9000"])}
}

// gate returns that of a listener with one filter chain.
func (s *scene) gate(resource any) *routesim.Gate {
	s.t.Helper()
	l, _ := resource.(*listenerv3.Listener)
	if len(l.GetFilterChains()) != 1 {
		s.t.Fatalf("the listener has %d filter chains: %v", len(l.GetFilterChains()), l)
	}
	g, err := routesim.NewGate(l.GetFilterChains()[0])
	s.must(err)
	g.Ask = providerAsked
	return g
}

// decide says what becomes of a call.
func (g gates) decide(tb testing.TB, c routesim.Call) routesim.Decision {
	tb.Helper()
	gate := g.http
	if c.Request == nil {
		gate = g.tcp
	}
	d, err := gate.Decide(c)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// randomPolicies are policies of namespaces and the root, of which validation takes each.
func (d policyDice) randomPolicies(namespaces int) (out configList) {
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	add := func(namespace string, n int) {
		for i := 0; i < n; {
			out.add(istio.AuthorizationPolicy, fmt.Sprintf("%s/p%d", namespace, i), d.policy())
			c := out[len(out)-1]
			if d.chance(5) {
				c.Annotations = map[string]string{"istio.io/dry-run": pick(d.Rand, []string{"true", "T", "false"})}
			}
			if _, err := schema.Check(*c); err != nil {
				out = out[:len(out)-1]
				continue
			}
			i++
		}
	}
	add(routesim.RootNamespace, pick(d.Rand, []int{0, 0, 0, 1}))
	for n := range namespaces {
		add(fmt.Sprint("n", n), pick(d.Rand, []int{0, 1, 1, 2, 3, 4}))
	}
	return out
}

// readPolicies returns the policies as they are read by the API's documentation.
func readPolicies(policies configList, many bool) *routesim.Authorization {
	out := &routesim.Authorization{TrustDomain: "td1", Aliases: []string{"old"}, Providers: providersRead(), ManyProviders: many, Paths: routesim.PathsOf(meshconfig.MeshConfig_ProxyPathNormalization_DEFAULT)}
	for _, c := range policies {
		out.Policies = append(out.Policies, &routesim.AuthorizationPolicy{
			Namespace: c.Namespace, Name: c.Name, AuthorizationPolicy: c.Spec.(*security.AuthorizationPolicy),
			DryRun: strings.HasPrefix(strings.ToLower(c.Annotations["istio.io/dry-run"]), "t"),
		})
	}
	return out
}

// TestReadingsOfAuthorizationAgree: gateways decide about calls by what they are sent as the policies say.
func TestReadingsOfAuthorizationAgree(t *testing.T) {
	t.Parallel()
	const namespaces, calls = 40, 100
	scenes := uint64(tier.Share(75))
	counts := map[string]int{}
	for seed := range scenes {
		d := policyDice{rand.New(rand.NewPCG(seed, 26))}
		policies, many := d.randomPolicies(namespaces), d.chance(50)
		s := guardedScene(t, traffic.Options{Mesh: authorizationMesh(), MultipleCustomProviders: many}, istio.Schemas(), policies)
		read := readPolicies(policies, many)
		for n := range namespaces {
			who := routesim.Proxy{Namespace: fmt.Sprint("n", n), Labels: map[string]string{"app": "edge"}}
			if d.chance(30) {
				who.Labels["gateway.networking.k8s.io/gateway-name"] = "g1"
			}
			g := s.gates(clientOf("router", who))
			for range calls {
				c := d.call(d.chance(30))
				want, got := read.Decide(who, c), g.decide(t, c)
				if got.Admitted != want.Admitted {
					t.Fatalf("scene %d, router %+v, call %+v, request %+v: sent %+v, want %+v\n%s", seed, who, c, c.Request, got, want, describePolicies(policies, who.Namespace))
				}
				counts[fmt.Sprintf("HTTP %t, admitted %t", c.Request != nil, got.Admitted)]++
			}
		}
		s.close()
	}
	t.Log(counts)
	for _, n := range counts {
		if n < int(scenes)*100 {
			t.Errorf("the calls tell little: %v", counts)
		}
	}
}

func describePolicies(policies configList, namespace string) string {
	var b strings.Builder
	for _, c := range policies {
		if c.Namespace == namespace || c.Namespace == routesim.RootNamespace {
			fmt.Fprintf(&b, "%s/%s %v %s\n", c.Namespace, c.Name, c.Annotations, protojson.MarshalOptions{}.Format(c.Spec))
		}
	}
	return b.String()
}
