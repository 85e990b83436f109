// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// protected is a gateway with a port for HTTP and one for TCP, that AuthorizationPolicies are for.
const protected = openEdge + `[{directResponse: {status: 200}}]
`

// authorizer decides by the header x-let-in of any request.
type authorizer struct {
	authv3.UnimplementedAuthorizationServer
}

func (authorizer) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	code := codes.PermissionDenied
	if r.GetAttributes().GetRequest().GetHttp().GetHeaders()["x-let-in"] == "yes" {
		code = codes.OK
	}
	return &authv3.CheckResponse{Status: &rpcstatus.Status{Code: int32(code)}}, nil //nolint:gosec // a code
}

// startAuthorizer runs an authorizer until the test ends, or it is stopped.
func startAuthorizer(t *testing.T) (port string, stop func()) {
	t.Helper()
	l := testserver.Listen(t, "127.0.0.1:0")
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, authorizer{})
	return portOf(l), testserver.Serve(t, l, server)
}

// guarded is a running gateway of protected.
type guarded struct {
	*plane
	proxy     *envoyproxy.Proxy
	http, tcp string
	// silence stops the authorizer.
	silence func()
}

func startGuarded(t *testing.T, o envoyproxy.Options) *guarded {
	t.Helper()
	authorizerPort, silence := startAuthorizer(t)
	provider := func(name, service string) *meshconfig.MeshConfig_ExtensionProvider {
		return &meshconfig.MeshConfig_ExtensionProvider{Name: name, Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{Service: service, Port: 80},
		}}
	}
	mesh := withoutMeshTLS()
	mesh.ExtensionProviders = append(mesh.ExtensionProviders, provider("asked", "authz.local.test"), provider("missing", "nobody.local.test"))
	g := &guarded{plane: startPlane(t, planeOptions{mesh: mesh}), silence: silence}
	ports := envoyproxy.FreePorts(t, 2)
	g.http, g.tcp = strconv.Itoa(int(ports[0])), strconv.Itoa(int(ports[1]))
	g.Apply(service("echo", "TCP", onPort(startEcho(t)))+"---"+
		service("authz", "GRPC", onPort(authorizerPort))+"---"+protected,
		"HTTPPORT", g.http, "TCPPORT", g.tcp)
	g.proxy = g.readyEdge(o)
	return g
}

// status is the answer to a request "METHOD PATH [header=value]", or to the connection "TCP".
func (g *guarded) status(request string) string {
	g.TB.Helper()
	if request == "TCP" {
		return g.line()
	}
	fields := strings.Fields(request)
	r, err := http.NewRequestWithContext(g.TB.Context(), fields[0], "http://"+local(g.http)+fields[1], http.NoBody)
	if err != nil {
		g.TB.Fatal(err)
	}
	for _, header := range fields[2:] {
		name, value, _ := strings.Cut(header, "=")
		r.Header.Set(name, value)
	}
	answer, err := newTransport(g.TB).RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	_ = answer.Body.Close()
	return strconv.Itoa(answer.StatusCode)
}

// line says whether a connection is served: "echo", or "closed".
func (g *guarded) line() string {
	g.TB.Helper()
	conn, err := new(net.Dialer).DialContext(g.context(), "tcp", local(g.tcp))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x")); err != nil {
		return "closed"
	}
	if n, _ := conn.Read(make([]byte, 1)); n == 0 {
		return "closed"
	}
	return "echo"
}

// TestAuthorization: gateways decide as AuthorizationPolicies say, and refuse where they cannot find out.
func TestAuthorization(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				t.Helper()
				testAuthorization(t, envoyproxy.Options{Program: program, Delta: delta, Runtime: envoyproxy.RegexProgramSize(32768)})
			})
		})
	}
}

func testAuthorization(t *testing.T, o envoyproxy.Options) {
	t.Helper()
	g := startGuarded(t, o)
	const policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: policy, namespace: NAMESPACE, annotations: {ANNOTATIONS}}\nspec: SPEC\n"
	for _, tc := range []struct {
		name, spec             string
		namespace, annotations string
		want                   map[string]string
	}{
		{
			name: "deny a path", spec: `{action: DENY, rules: [{to: [{operation: {paths: ["/admin*"], ports: ["HTTPPORT"]}}]}]}`,
			want: map[string]string{"GET /admin/x": "403", "GET /": "200", "GET /x/../admin": "403", "GET /Admin": "200", "TCP": "echo"},
		},
		{
			name: "deny what only HTTP has", spec: `{action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]}`,
			want: map[string]string{"GET /admin": "403", "GET /admin?q": "403", "GET /": "200", "TCP": "closed"},
		},
		{
			name: "allow a method", spec: `{rules: [{to: [{operation: {methods: [GET]}}]}]}`,
			want: map[string]string{"GET /": "200", "POST /": "403", "TCP": "closed"},
		},
		{
			name: "allow nothing", spec: `{}`,
			want: map[string]string{"GET /": "403", "TCP": "closed"},
		},
		{
			name: "a path template", spec: `{action: DENY, rules: [{to: [{operation: {paths: ["/v/{*}/x", "/all/{**}"], ports: ["HTTPPORT"]}}]}]}`,
			want: map[string]string{"GET /v/1/x": "403", "GET /v/1/2/x": "200", "GET /all/1/2": "403", "TCP": "echo"},
		},
		{
			name: "allow by header", spec: `{rules: [{when: [{key: "request.headers[X-User]", values: [al*], notValues: [alan]}]}]}`,
			want: map[string]string{"GET / x-user=alice": "200", "GET / x-user=alan": "403", "GET /": "403", "TCP": "closed"},
		},
		{
			name: "allow an address", spec: `{rules: [{from: [{source: {ipBlocks: [127.0.0.0/8]}}]}]}`,
			want: map[string]string{"GET /": "200", "TCP": "echo"},
		},
		{
			name: "deny other addresses", spec: `{action: DENY, rules: [{from: [{source: {notIpBlocks: [10.0.0.0/8]}}]}]}`,
			want: map[string]string{"GET /": "403", "TCP": "closed"},
		},
		{
			name: "identities without certificates", spec: `{rules: [{from: [{source: {namespaces: [shop]}}]}]}`,
			want: map[string]string{"GET /": "403", "TCP": "closed"},
		},
		{
			name: "tried only", spec: `{action: DENY, rules: [{}]}`, annotations: `istio.io/dry-run: "true"`,
			want: map[string]string{"GET /": "200", "TCP": "echo"},
		},
		{
			name: "everywhere", spec: `{action: DENY, rules: [{}]}`, namespace: "istio-system",
			want: map[string]string{"GET /": "403", "TCP": "closed"},
		},
		{
			name: "another namespace", spec: `{action: DENY, rules: [{}]}`, namespace: "shop",
			want: map[string]string{"GET /": "200", "TCP": "echo"},
		},
		{
			name: "other workloads", spec: `{selector: {matchLabels: {app: shop}}, action: DENY, rules: [{}]}`,
			want: map[string]string{"GET /": "200", "TCP": "echo"},
		},
		{
			name: "audit", spec: `{action: AUDIT, rules: [{}]}`,
			want: map[string]string{"GET /": "200", "TCP": "echo"},
		},
		{
			name: "a provider", spec: `{action: CUSTOM, provider: {name: asked}, rules: [{to: [{operation: {paths: [/asked], ports: ["HTTPPORT"]}}]}]}`,
			want: map[string]string{"GET /asked": "403", "GET /asked x-let-in=yes": "200", "GET /": "200", "TCP": "echo"},
		},
		{
			name: "a provider without a service", spec: `{action: CUSTOM, provider: {name: missing}, rules: [{to: [{operation: {paths: [/asked], ports: ["HTTPPORT"]}}]}]}`,
			want: map[string]string{"GET /asked x-let-in=yes": "403", "GET /": "200", "TCP": "echo"},
		},
		{
			name: "no provider", spec: `{action: CUSTOM, provider: {name: nobody}, rules: [{to: [{operation: {paths: [/asked]}}]}]}`,
			want: map[string]string{"GET /asked": "403", "GET /": "200", "TCP": "closed"},
		},
	} {
		namespace := tc.namespace
		if namespace == "" {
			namespace = "ingress"
		}
		g.Apply(policy, "SPEC", strings.ReplaceAll(tc.spec, "HTTPPORT", g.http), "NAMESPACE", namespace, "ANNOTATIONS", tc.annotations)
		g.Applied()
		for request, want := range tc.want {
			g.proxy.Await(fmt.Sprintf("%s: %s is answered with %s", tc.name, request, want), func() bool { return g.status(request) == want })
		}
		g.Delete(istio.AuthorizationPolicy, namespace, "policy")
		g.Applied()
		for _, request := range []string{"GET /admin", "TCP"} {
			g.proxy.Await(tc.name+" has gone", func() bool {
				return g.status(request) == map[string]string{"GET /admin": "200", "TCP": "echo"}[request]
			})
		}
	}
	g.Apply(policy, "NAMESPACE", "ingress", "ANNOTATIONS", "", "SPEC", `{action: CUSTOM, provider: {name: asked}, rules: [{to: [{operation: {paths: [/asked]}}]}]}`)
	g.Applied()
	g.proxy.Await("it is asked", func() bool { return g.status("GET /asked x-let-in=yes") == "200" })
	g.silence()
	g.proxy.Await("nobody answers", func() bool { return g.status("GET /asked x-let-in=yes") == "403" })
	g.Accepted()
}

// TestAuthorizationQuarantine: an Envoy that rejects a policy's resources denies all calls that the
// policy may apply to, rather than working without it. Here the regular expression of an account is
// too long for it.
func TestAuthorizationQuarantine(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		g := startGuarded(t, envoyproxy.Options{Delta: delta})
		account := strings.Repeat("n", 63) + "/" + strings.Repeat("a", 63)
		for action, becomes := range map[string]string{"DENY": "403", "ALLOW": "403", "AUDIT": "200"} {
			g.Apply(`
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: policy, namespace: ingress}
spec: {action: ACTION, rules: [{from: [{source: {serviceAccounts: [ACCOUNT]}}]}]}
`, "ACTION", action, "ACCOUNT", account)
			g.Flush()
			g.proxy.Await(action+" is left out", func() bool {
				for _, e := range g.policies.Ineffective() {
					if e.Kind == istio.AuthorizationPolicy && strings.Contains(e.Reason, "refuses") {
						return true
					}
				}
				return false
			})
			g.proxy.Await(action+" becomes "+becomes, func() bool { return g.status("GET /") == becomes })
			g.proxy.Await(action+" is explained", func() bool { // once the server knows the resources that the Envoy has accepted
				d := decisionOf(g.plane, g.http, "/")
				return d != nil && d.Allowed == (becomes == "200") && strings.Contains(fmt.Sprint(d.Problems), "AuthorizationPolicy/ingress/policy is left out of")
			})
			g.Delete(istio.AuthorizationPolicy, "ingress", "policy")
			g.Applied()
			g.proxy.Await("it has gone", func() bool { return g.status("GET /") == "200" })
		}
	})
}
