// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestEffectsOfAuthorization: what policies protect is said, and what they do not.
func TestEffectsOfAuthorization(t *testing.T) {
	t.Parallel()
	objects := objectsOf(t,
		`Gateway infra/edge {"selector": {"app": "edge"}, "servers": [
			{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}, {"hosts": ["*"], "port": {"number": 90, "name": "tcp", "protocol": "TCP"}}]}`,
		`Gateway infra/networks {"selector": {"app": "networks"}, "servers": [
			{"hosts": ["*"], "port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "AUTO_PASSTHROUGH"}}]}`,
		`AuthorizationPolicy infra/networks {"action": "DENY", "selector": {"matchLabels": {"app": "networks"}}, "rules": [{"to": [{"operation": {"paths": ["/a"]}}]}]}`,
		`AuthorizationPolicy infra/all {"rules": [{"from": [{"source": {"namespaces": ["shop"]}}]}]}`,
		`AuthorizationPolicy istio-system/mesh {"action": "AUDIT", "rules": [{}]}`,
		`AuthorizationPolicy infra/edge {"action": "DENY", "selector": {"matchLabels": {"app": "edge"}}, "rules": [{"to": [{"operation": {"paths": ["/a"]}}]}]}`,
		`AuthorizationPolicy shop/server {"action": "DENY", "selector": {"matchLabels": {"app": "cart"}}, "rules": [{}]}`,
		`AuthorizationPolicy shop/waypoint {"targetRefs": [{"kind": "Service", "name": "cart"}], "rules": [{}]}`,
		`AuthorizationPolicy infra/gateway {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}], "rules": [{}]}`,
		`AuthorizationPolicy infra/tokens {"rules": [{"from": [{"source": {"requestPrincipals": ["*"]}}]}, {"when": [{"key": "request.auth.claims[a]", "values": ["b"]}]}]}`,
		`AuthorizationPolicy infra/nobody {"action": "CUSTOM", "provider": {"name": "nobody"}, "rules": [{}]}`,
		`AuthorizationPolicy infra/web {"action": "CUSTOM", "provider": {"name": "web"}, "rules": [{}]}`,
	)
	mesh := &meshconfig.MeshConfig{ExtensionProviders: []*meshconfig.MeshConfig_ExtensionProvider{{
		Name: "web", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp{
			EnvoyExtAuthzHttp: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{Service: "authz", Port: 80},
		},
	}}}
	s := stage(t, traffic.Options{Mesh: mesh}, objects, populate())
	const noTokens = "no RequestAuthentication is for these routers, so that no request has what it is about"
	const notOfTCP = "the rule allows no TCP connection: it is of HTTP requests, and is not known of TCP connections"
	for name, want := range map[string][]string{
		"infra/all":         {"routers of namespace infra: what they serve: ALLOW"},
		"istio-system/mesh": {"routers of all namespaces: what they serve: AUDIT"},
		"infra/edge": {
			"routers of namespace infra with the labels app=edge: what they serve: DENY",
			"spec.rules[0].to[0].operation.paths: of TCP connections it is not looked at, so that the rule is about more of them: " +
				"it is of HTTP requests, and is not known of TCP connections",
		},
		"infra/networks": {
			"routers of namespace infra with the labels app=networks: what they serve: DENY",
			"spec.servers[0] of Gateway infra/networks has the mode AUTO_PASSTHROUGH and checks no policies: the workloads behind it do",
			"spec.rules[0].to[0].operation.paths: of TCP connections it is not looked at, so that the rule is about more of them: " +
				"it is of HTTP requests, and is not known of TCP connections",
		},
		"shop/server":   {"only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and no service has a workload that it does"},
		"shop/waypoint": {"spec.targetRefs: policies for a Service are for waypoints, which are not configured"},
		"infra/gateway": {"routers of namespace infra of the Kubernetes Gateway g: what they serve: ALLOW"},
		"infra/tokens": {
			"routers of namespace infra: what they serve: ALLOW",
			"spec.rules[0].from[0].source: " + noTokens, "spec.rules[1].when[0]: " + noTokens,
			"spec.rules[0].from[0].source.requestPrincipals: " + notOfTCP, "spec.rules[1].when[0].values: " + notOfTCP,
		},
		"infra/nobody": {
			"routers of namespace infra: what they serve: CUSTOM",
			`spec.provider.name: the mesh configuration has no extension provider "nobody" for authorization: what the policy is about is refused`,
		},
		"infra/web": {
			"routers of namespace infra: what they serve: CUSTOM",
			`spec.provider.name: the provider "web" decides about requests only: TCP connections are not checked`,
		},
	} {
		namespace, object, _ := strings.Cut(name, "/")
		does, not := s.policies.Effects(configstore.ConfigKey{Kind: istio.AuthorizationPolicy, Namespace: namespace, Name: object})
		var got []string
		for _, e := range does {
			got = append(got, e.String())
		}
		for _, e := range not {
			got = append(got, strings.TrimPrefix(e.String(), "AuthorizationPolicy "+name+": "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("effects of %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPoliciesTooLarge: a listener that would repeat policies too often closes connections, rather than serve without them.
func TestPoliciesTooLarge(t *testing.T) {
	t.Parallel()
	objects := objectsOf(t,
		`Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`,
		`AuthorizationPolicy infra/large {"rules": [{"to": [{"operation": {"paths": ["/`+strings.Repeat("a", 3000)+`"]}}]}]}`,
	)
	s := stage(t, traffic.Options{Limits: traffic.Limits{SharedBytes: 2000}}, objects, populate())
	answer := s.ask(in("router", "infra", "app=edge"), envoy.ListenerType)
	l, ok := answer.resources["0.0.0.0_80"].(*listenerv3.Listener)
	if !ok {
		t.Fatalf("the listeners are %q", answer.names)
	}
	if failed := answer.failed["0.0.0.0_80"]; !strings.Contains(failed, "all connections are closed: its policies") {
		t.Errorf("it is reported as %q", failed)
	}
	if text := l.String(); !strings.Contains(text, xdsbuild.BlackHole) || strings.Contains(text, "http_connection_manager") {
		t.Errorf("the listener serves: %s", text)
	}
}

// TestExplainedAuthorization: what is asked before a route is said, in its order.
func TestExplainedAuthorization(t *testing.T) {
	t.Parallel()
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`,
		`AuthorizationPolicy ingress/a {"rules": [{}]}`,
		`AuthorizationPolicy istio-system/d {"action": "DENY", "rules": [{}]}`,
		`AuthorizationPolicy ingress/c {"action": "CUSTOM", "provider": {"name": "nobody"}, "rules": [{}]}`,
		`AuthorizationPolicy shop/other {"action": "DENY", "rules": [{}]}`,
	), populate())
	call := traffic.Call{Host: "a.example.com", Port: 80}
	e := s.explain(edge(), call)
	if diff := cmp.Diff([]string{"CUSTOM ingress/c", "DENY istio-system/d", "ALLOW ingress/a"}, e.AuthorizationPolicies); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if text := e.String(); !strings.Contains(text, "AuthorizationPolicies are asked first: CUSTOM ingress/c, DENY istio-system/d, ALLOW ingress/a\n") {
		t.Errorf("it says %s", text)
	}
	if asked := s.explain(in("sidecar", "ingress", "app=edge"), call).AuthorizationPolicies; asked != nil {
		t.Errorf("a sidecar asks %q", asked)
	}
}
