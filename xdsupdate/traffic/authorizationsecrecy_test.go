// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// markedPolicies are policies of the security kinds in each namespace, whose texts say where they are from: some for all
// workloads, some for those with a label.
func markedPolicies(d policyDice, namespaces []string) (out configList) {
	for _, namespace := range append(namespaces, routesim.RootNamespace) {
		for i := range 1 + d.IntN(3) {
			var selector *apitype.WorkloadSelector
			app := pick(d.Rand, []string{"", "edge", "web"})
			if app != "" {
				selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": app}}
			}
			mark := markOf(namespace, app)
			key := fmt.Sprintf("%s/mark-%s-%d", namespace, namespace, i)
			p := d.policy()
			p.Selector, p.TargetRefs, p.Action = selector, nil, pick(d.Rand, []security.AuthorizationPolicy_Action{0, 1, 2})
			p.ActionDetail = nil
			p.Rules = []*security.Rule{{
				From: []*security.Rule_From{{Source: &security.Source{Namespaces: []string{mark}}}},
				To:   []*security.Rule_To{{Operation: &security.Operation{Paths: []string{"/" + mark}}}},
			}}
			out.add(istio.AuthorizationPolicy, key, p)
			out.add(istio.RequestAuthentication, key, &security.RequestAuthentication{
				Selector: selector, JwtRules: []*security.JWTRule{{Issuer: "https://" + mark, Jwks: `{"keys": []}`}},
			})
			out.add(istio.PeerAuthentication, key, &security.PeerAuthentication{
				Selector: selector, Mtls: &security.PeerAuthentication_MutualTLS{Mode: pick(d.Rand, []security.PeerAuthentication_MutualTLS_Mode{1, 2, 3})},
			})
		}
	}
	return out
}

func markOf(namespace, app string) string { return fmt.Sprintf("mark-%s-%s-", namespace, app) }

// TestPoliciesStaySecret: by whatever name a proxy asks, it is sent nothing of policies that are not in force for it.
func TestPoliciesStaySecret(t *testing.T) {
	t.Parallel()
	seen := 0
	namespaces := []string{"shop", "billing", "ingress"}
	for _, seed := range histories.Seeds(t, 12) {
		d := policyDice{rand.New(rand.NewPCG(seed, 28))}
		objects := append(objectsOf(t, guardedGateway, guardedRoutes), markedPolicies(d, namespaces)...)
		s := stage(t, traffic.Options{}, objects, populate(
			testService("istio-system", "echo.example.com", 80), testService("shop", "cart.shop.svc.cluster.local", 80), testService("billing", "ledger.billing.svc.cluster.local", 80)))
		for _, kind := range []string{"router", "sidecar", "grpc"} {
			for _, namespace := range namespaces {
				app := pick(d.Rand, []string{"edge", "web"})
				sent := s.everything(clientOf(kind, routesim.Proxy{Namespace: namespace, Labels: registry.Labels{"app": app}}))
				for _, of := range append(namespaces, routesim.RootNamespace) {
					for _, selected := range []string{"", "edge", "web"} {
						inForce := (of == namespace || of == routesim.RootNamespace) && (selected == "" || selected == app)
						found := strings.Contains(sent, markOf(of, selected))
						if found && !inForce {
							t.Errorf("seed %d: a %s of %s with app=%s is sent policies of %s for %q", seed, kind, namespace, app, of, selected)
						}
						if found {
							seen++
						}
					}
				}
			}
		}
		s.close()
	}
	if seen == 0 {
		t.Error("no policy was seen at all")
	}
}

// everything returns all that a client is sent, of all types and by all names that somebody may think of, as text.
func (s *scene) everything(n *core.Node) string {
	s.t.Helper()
	names := []string{
		"80", "http.80", "http.9000", "0.0.0.0_80", "0.0.0.0_9000", "virtualInbound", "echo.example.com:80", "cart.shop.svc.cluster.local:80", "ledger.billing.svc.cluster.local:80",
		"xds.istio.io/grpc/lds/inbound/0.0.0.0:80", "xds.istio.io/grpc/lds/inbound/10.0.0.1:80",
		"outbound|80||echo.example.com", "outbound|80||cart.shop.svc.cluster.local", "outbound|80||ledger.billing.svc.cluster.local",
	}
	var b strings.Builder
	for _, typeURL := range []string{envoy.ListenerType, envoy.ClusterType, envoy.RouteType, envoy.LoadAssignmentType} {
		asked := [][]string{names}
		if !isGRPC(n) && (typeURL == envoy.ListenerType || typeURL == envoy.ClusterType) {
			asked = append(asked, nil)
		}
		for _, list := range asked {
			for _, m := range s.ask(n, typeURL, list...).resources {
				b.WriteString(text(m))
			}
		}
	}
	return b.String()
}

// text returns a resource with all that is in it.
func text(m proto.Message) string { return protojson.Format(m) }
