// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// securityCorpus has the scenarios with the tested policies.
const securityCorpus = "../../../testdata/conformance/security"

// policyGate serves HTTP, HTTPS for clients with certificates, and TCP.
const policyGate = protected + `---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: secure, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: HTTPSPORT, name: https, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*"], tls: {mode: MUTUAL, credentialName: edge}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: secure, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [secure]
  http: [{directResponse: {status: 200}}]
`

// policyScenario is a scenario: the objects that its steps leave.
type policyScenario struct {
	Name, Description string
	Options           map[string]any
	Proxies           []map[string]any
	Steps             []policyStep
}

type policyStep struct {
	Note   string
	Apply  *string
	Delete *struct{ Kind, Namespace, Name string }
}

// Actions implements corpus.Step.
func (s policyStep) Actions() []bool { return []bool{s.Apply != nil, s.Delete != nil} }

// gatePorts are the ports of the gateway.
type gatePorts struct{ http, https, tcp uint16 }

// policies returns the AuthorizationPolicies that the steps leave, with the gateway's own ports and
// addresses of this machine.
func (s *policyScenario) policies(ports gatePorts) (out []*configstore.Config) {
	texts := strings.NewReplacer(`"80"`, strconv.Quote(strconv.Itoa(int(ports.http))), `"9000"`, strconv.Quote(strconv.Itoa(int(ports.tcp))))
	for _, step := range s.Steps {
		if d := step.Delete; d != nil {
			out = slices.DeleteFunc(out, func(c *configstore.Config) bool {
				return d.Kind == c.GroupVersionKind.Kind && d.Namespace == c.Namespace && d.Name == c.Name
			})
			continue
		}
		text := ownAddress.ReplaceAllString(texts.Replace(*step.Apply), "${1}127.")
		for _, d := range manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{}) {
			if d.Err != nil || d.Config.GroupVersionKind != istio.AuthorizationPolicy {
				continue
			}
			if schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy); schema.Validate != nil {
				if _, err := schema.Check(d.Config); err != nil {
					continue
				}
			}
			out = slices.DeleteFunc(out, func(c *configstore.Config) bool { return c.Namespace == d.Config.Namespace && c.Name == d.Config.Name })
			out = append(out, &d.Config)
		}
	}
	return out
}

var ownAddress = regexp.MustCompile(`(["\[ ,])10\.`)

// The trust domain of the mesh, and one that stands for it.
const (
	trustDomain = "td1.example.com"
	trustAlias  = "old.example.com"
)

// policyCourt is a gateway for testing policies.
type policyCourt struct {
	*plane
	proxy *envoyproxy.Proxy
	ports gatePorts
	// issuer issues certificates, which are kept by identity.
	issuer       *authority
	certificates map[string]tls.Certificate
	providers    map[string]*routesim.AuthorizationProvider
	written      []*configstore.Config
}

func startCourt(t *testing.T, o envoyproxy.Options, providers []string) *policyCourt {
	t.Helper()
	authorizerPort, _ := startAuthorizer(t)
	mesh := withoutMeshTLS()
	mesh.TrustDomain, mesh.TrustDomainAliases = trustDomain, []string{trustAlias}
	mesh.DefaultConfig = &meshconfig.ProxyConfig{GatewayTopology: &meshconfig.Topology{NumTrustedProxies: 1}}
	c := &policyCourt{certificates: make(map[string]tls.Certificate), providers: make(map[string]*routesim.AuthorizationProvider)}
	for _, name := range providers {
		mesh.ExtensionProviders = append(mesh.ExtensionProviders, &meshconfig.MeshConfig_ExtensionProvider{Name: name, Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{Service: "authz.local.test", Port: 80},
		}})
		c.providers[name] = &routesim.AuthorizationProvider{Answer: func(call routesim.Call) routesim.Answer {
			if call.Request != nil && call.Headers["x-let-in"] == "yes" {
				return routesim.Admits
			}
			return routesim.Refuses
		}}
	}
	c.plane, c.issuer = startPlane(t, planeOptions{mesh: mesh}), newAuthority(t)
	c.vault.set("ingress", "kubernetes://edge", c.issuer.secret("gate.example.com"))
	ports := envoyproxy.FreePorts(t, 3)
	c.ports = gatePorts{uint16(ports[0]), uint16(ports[1]), uint16(ports[2])} //nolint:gosec // ports
	text := func(port uint16) string { return strconv.Itoa(int(port)) }
	c.Apply(service("echo", "TCP", onPort(startEcho(t)))+"---"+
		service("authz", "GRPC", onPort(authorizerPort))+"---"+policyGate,
		"HTTPPORT", text(c.ports.http), "HTTPSPORT", text(c.ports.https), "TCPPORT", text(c.ports.tcp))
	c.proxy = c.readyEdge(o)
	return c
}

// write puts policies in the place of those before, in one batch.
func (c *policyCourt) write(policies []*configstore.Config) {
	c.TB.Helper()
	var batch []configstore.Mutation
	for _, p := range policies {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: *p})
	}
	for _, p := range c.written {
		if !slices.ContainsFunc(policies, func(o *configstore.Config) bool { return o.Namespace == p.Namespace && o.Name == p.Name }) {
			batch = append(batch, configstore.Mutation{Op: configstore.OpDelete, Config: *p})
		}
	}
	c.written = policies
	if _, err := c.Configs.Apply(batch...); err != nil {
		c.TB.Fatal(err)
	}
	c.Applied()
}

// verdict makes a call: whether it is let in, or else how it ends.
func (c *policyCourt) verdict(t *testing.T, call routesim.Call) string {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: call.From.AsSlice()}}
	if call.Request == nil {
		conn, err := dialer.DialContext(t.Context(), "tcp", call.To.String())
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("x")); err != nil {
			return "refused"
		}
		if n, _ := conn.Read(make([]byte, 1)); n == 0 {
			return "refused"
		}
		return "admitted"
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if call.Certificate != nil {
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{
			RootCAs: c.issuer.Pool(), ServerName: call.ServerName, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.certificate(t, call.Certificate.URIs[0])},
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), call.Method, scheme+"://"+call.To.String()+call.Path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	r.Host = call.Authority
	for name, value := range call.Headers {
		r.Header.Set(name, value)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	_ = answer.Body.Close()
	return map[int]string{http.StatusOK: "admitted", http.StatusForbidden: "refused"}[answer.StatusCode]
}

func (c *policyCourt) certificate(t *testing.T, identity string) tls.Certificate {
	t.Helper()
	if _, ok := c.certificates[identity]; !ok {
		c.certificates[identity] = c.issuer.pair(t, identity)
	}
	return c.certificates[identity]
}

// scenariosOfPolicies are those about AuthorizationPolicies at gateways.
func scenariosOfPolicies(t *testing.T) (out []*policyScenario) {
	t.Helper()
	names, err := corpus.Names(securityCorpus)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "authorization/") && !strings.HasPrefix(name, "random/a") {
			continue
		}
		s, err := corpus.Load(filepath.Join(securityCorpus, filepath.FromSlash(name)), func(s *policyScenario) []policyStep { return s.Steps })
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// TestPoliciesOfScenarios: real Envoys decide about calls as the policies of each scenario say.
func TestPoliciesOfScenarios(t *testing.T) {
	programs := envoyproxy.Programs(t)
	scenarios := scenariosOfPolicies(t)
	const calls = 40
	for i, program := range programs {
		t.Run(program.String(), func(t *testing.T) {
			testScenarios(t, scenarios, envoyproxy.Options{Program: program, Delta: i%2 == 0, Runtime: envoyproxy.RegexProgramSize(32768)}, calls)
		})
	}
}

func testScenarios(t *testing.T, scenarios []*policyScenario, o envoyproxy.Options, calls int) {
	t.Helper()
	// The providers of the scenarios that there are; all ask the same service.
	court := startCourt(t, o, []string{"ext-grpc", "ext-http", "ext-grpc-closed"})
	counts := map[string]int{}
	for i, s := range scenarios {
		policies := s.policies(court.ports)
		court.write(policies)
		read := &routesim.Authorization{TrustDomain: trustDomain, Aliases: []string{trustAlias}, Providers: court.providers}
		for _, c := range policies {
			dry, _ := strconv.ParseBool(c.Annotations["istio.io/dry-run"])
			read.Policies = append(read.Policies, &routesim.AuthorizationPolicy{
				Namespace: c.Namespace, Name: c.Name, DryRun: dry, AuthorizationPolicy: c.Spec.(*security.AuthorizationPolicy),
			})
		}
		words, random := newPolicyWords(policies), rand.New(rand.NewPCG(uint64(i), 26)) //nolint:gosec // an index
		for range calls {
			call := words.call(random, court.ports)
			want := "refused"
			d := read.Decide(routesim.Proxy{Namespace: "ingress", Labels: map[string]string{"app": "edge"}}, call)
			if d.Admitted {
				want = "admitted"
			}
			counts[want]++
			if got := court.verdict(t, call); got != want { // a worker may be behind
				court.proxy.Await(fmt.Sprintf("%s: %+v %+v is %s (%s), not %s", s.Name, call, call.Request, want, d.By, got), func() bool {
					return court.verdict(t, call) == want
				})
			}
		}
	}
	t.Log(counts)
	if counts["admitted"] < calls || counts["refused"] < calls {
		t.Errorf("the calls tell little: %v", counts)
	}
	court.Accepted()
}
