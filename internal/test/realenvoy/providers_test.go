// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// askingGate is a gateway with requests and connections that are asked about.
const askingGate = openEdge + `[{route: [{destination: {host: shop.local.test}}]}]
`

// Providers that differ in the outcome of calls when they fail.
const (
	closedProvider = "closed" // refused, with Envoy's status
	statusProvider = "status" // refused, with one of the provider's
	openProvider   = "open"   // let in
)

// providerPatience is the timeout of all providers.
const providerPatience = 300 * time.Millisecond

// extensionProviders are the providers of both kinds, which are prefixes of their names.
func extensionProviders() (out []*meshconfig.MeshConfig_ExtensionProvider) {
	patience := durationpb.New(providerPatience)
	for name, code := range map[string]string{closedProvider: "", statusProvider: "503", openProvider: ""} {
		out = append(out, &meshconfig.MeshConfig_ExtensionProvider{Name: "grpc-" + name, Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{
				Service: "grpc.local.test", Port: 80, Timeout: patience, FailOpen: name == openProvider, StatusOnError: code,
			},
		}}, &meshconfig.MeshConfig_ExtensionProvider{Name: "http-" + name, Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp{
			EnvoyExtAuthzHttp: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{
				Service: "http.local.test", Port: 80, Timeout: patience, FailOpen: name == openProvider, StatusOnError: code, PathPrefix: "/check",
				IncludeRequestHeadersInCheck: []string{"x-do"}, IncludeAdditionalHeadersInCheck: map[string]string{"x-gate": "edge"},
				HeadersToUpstreamOnAllow: []string{"x-user"}, HeadersToDownstreamOnAllow: []string{"x-added"}, HeadersToDownstreamOnDeny: []string{"x-why"},
			},
		}})
	}
	return out
}

// asking is a gateway that asks real services.
type asking struct {
	*plane
	proxy     *envoyproxy.Proxy
	web, tcp  string
	services  map[string]*askedService // by kind
	decisions *grpcAuthorizer
}

func startAsking(t *testing.T, o envoyproxy.Options) *asking {
	t.Helper()
	mesh := withoutMeshTLS()
	mesh.ExtensionProviders = extensionProviders()
	a := &asking{plane: startPlane(t, planeOptions{mesh: mesh}), decisions: &grpcAuthorizer{}}
	a.services = map[string]*askedService{"grpc": startAsked(t, a.decisions.serveGRPC), "http": startAsked(t, serveHTTP)}
	ports := envoyproxy.FreePorts(t, 2)
	a.web, a.tcp = strconv.Itoa(int(ports[0])), strconv.Itoa(int(ports[1]))
	a.Apply(strings.Join([]string{
		service("shop", "HTTP", startReporter(t, "shop").endpoint("")), service("echo", "TCP", onPort(startEcho(t))),
		service("grpc", "GRPC", onPort(a.services["grpc"].port)), service("http", "HTTP", onPort(a.services["http"].port)), askingGate,
	}, "---"), "HTTPPORT", a.web, "TCPPORT", a.tcp)
	a.proxy = a.readyEdge(o)
	return a
}

// asked is the response to a request to a path: the status, the user and the client's secret as
// seen by the shop, if it was reached, or the body of a service, and the headers that services set.
func (a *asking) asked(path, do string) string {
	a.TB.Helper()
	r, err := http.NewRequestWithContext(a.TB.Context(), http.MethodGet, "http://"+local(a.web)+path, http.NoBody)
	if err != nil {
		a.TB.Fatal(err)
	}
	r.Header.Set("x-do", do)
	r.Header.Set("x-secret", "s")
	answer, err := newTransport(a.TB).RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	out := []string{strconv.Itoa(answer.StatusCode)}
	var seen report
	if json.Unmarshal(body, &seen) == nil {
		out = append(out, "user="+seen.Header.Get("x-user"), "secret="+seen.Header.Get("x-secret"))
	} else if answer.StatusCode == http.StatusPaymentRequired {
		out = append(out, string(body))
	}
	for _, name := range []string{"x-added", "x-why", "x-hidden"} {
		if value := answer.Header.Get(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return strings.Join(out, " ")
}

// becomes waits until requests that are asked about are answered so.
func (a *asking) becomes(provider, do, want string) {
	a.TB.Helper()
	if got := a.asked("/asked/x", do); got != want { // a worker may be behind
		a.proxy.Await(fmt.Sprintf("%s, %s: %q, not %q", provider, do, want, got), func() bool { return a.asked("/asked/x", do) == want })
	}
}

// TestProviders: what CUSTOM policies are about is decided by the service of their provider, and as
// the provider says if the service is away, slow or fails.
func TestProviders(t *testing.T) {
	for i, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			a := startAsking(t, envoyproxy.Options{Program: program, Delta: i%2 == 0})
			allowed := map[string]string{
				"grpc": "200 user=alice secret= x-added=yes", // the service removes the secret
				"http": "200 user=alice secret=s x-added=yes",
			}
			const denied, without = "402 pay x-why=debts", "200 user= secret=s"
			for kind, asked := range a.services {
				for name, failing := range map[string]string{closedProvider: "403", statusProvider: "503", openProvider: without} {
					provider := kind + "-" + name
					a.Apply(customPolicy, "PROVIDER", provider, "OPERATION", `paths: ["/asked*"], ports: ["`+a.web+`"]`)
					a.Applied()
					a.becomes(provider, doAllow, allowed[kind])
					a.becomes(provider, doDeny, denied)
					a.becomes(provider, "what it does not know", denied)
					a.becomes(provider, doFail, failing)
					a.becomes(provider, doSlow, failing)
					asked.leave()
					a.becomes(provider+", away", doAllow, failing)
					a.becomes(provider+", away", doDeny, failing)
					if got := a.asked("/other", doDeny); got != without {
						t.Errorf("%s: what is not asked about is answered with %q", provider, got)
					}
					asked.come()
					a.becomes(provider+", back", doAllow, allowed[kind])
					a.becomes(provider+", back", doDeny, denied)
				}
			}
			a.testConnections()
			a.Accepted()
		})
	}
}

const customPolicy = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: asked, namespace: ingress}
spec: {action: CUSTOM, provider: {name: PROVIDER}, rules: [{to: [{operation: {OPERATION}}]}]}
`

// testConnections: about connections a service of gRPC is asked, and one of HTTP is not (S43).
func (a *asking) testConnections() {
	a.TB.Helper()
	g := &guarded{plane: a.plane, proxy: a.proxy, tcp: a.tcp}
	served := map[bool]string{true: "echo", false: "closed"}
	becomes := func(provider, do string, want bool) {
		a.decisions.lines.Store(do)
		a.proxy.Await(fmt.Sprintf("%s, connections, %s: served %t", provider, do, want), func() bool { return g.line() == served[want] })
	}
	for name, open := range map[string]bool{closedProvider: false, statusProvider: false, openProvider: true} {
		provider := "grpc-" + name
		a.Apply(customPolicy, "PROVIDER", provider, "OPERATION", `ports: ["`+a.tcp+`"]`)
		a.Applied()
		becomes(provider, doDeny, false)
		becomes(provider, doAllow, true)
		becomes(provider, doFail, open)
		becomes(provider, doSlow, open)
		a.services["grpc"].leave()
		becomes(provider+", away", doAllow, open)
		a.services["grpc"].come()
		becomes(provider+", back", doDeny, false)
		becomes(provider+", back", doAllow, true)
	}
	a.decisions.lines.Store(doDeny)
	a.Apply(customPolicy, "PROVIDER", "http-"+closedProvider, "OPERATION", `ports: ["`+a.tcp+`"]`)
	a.Applied()
	becomes("http-"+closedProvider, doDeny, true)
	a.Delete(istio.AuthorizationPolicy, "ingress", "asked")
}
