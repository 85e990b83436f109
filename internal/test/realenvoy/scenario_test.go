// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// scenario describes a move of traffic from state to state.
type scenario struct {
	name string
	// options are the options of the control plane. Nil means the default ones.
	options func(*stage) planeOptions
	// write makes what writes states.
	write func(*stage) writer
	// fixed are the objects of every state, and state those of one. gatewayPorts stand for ports of
	// the gateway.
	fixed string
	state func(state int) string
	// entries are the WorkloadEntries of a state. Nil means all workloads in the namespace ingress.
	entries func(s *stage, state int) string
	// answers are the workloads that may respond in a state. Nil means the workload with its
	// number.
	answers func(state int) []string
	// call makes a call. Nil means a request to the port PLAIN.
	call func(*caller) (target string, err error)
	// play plays the scenario. Nil means with one gateway.
	play func(s *stage, n int)
	// mayLose reports whether calls may be lost in a variant. Nil means never.
	mayLose func(variant) bool
}

// writer changes the input of a control plane from one state to another.
type writer func(s *stage, changes []configstore.Mutation, all []configstore.Config)

// inOneBatch commits all changes as one.
func inOneBatch(*stage) writer {
	return func(s *stage, changes []configstore.Mutation, _ []configstore.Config) {
		if _, err := s.plane.Configs.Apply(changes...); err != nil {
			s.t.Fatal(err)
		}
	}
}

// inSeparateWrites commits one change right after the other.
func inSeparateWrites(*stage) writer {
	return func(s *stage, changes []configstore.Mutation, _ []configstore.Config) {
		for _, m := range changes {
			if _, err := s.plane.Configs.Apply(m); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// inOneFile replaces a file with all objects.
func inOneFile(s *stage) writer {
	dir := s.t.TempDir()
	source := file.New(dir, s.plane.Configs)
	return func(s *stage, _ []configstore.Mutation, all []configstore.Config) {
		var text []byte
		for _, c := range all {
			data, err := manifest.Marshal(c)
			if err != nil {
				s.t.Fatal(err)
			}
			text = append(append(text, "---\n"...), data...)
		}
		if err := os.WriteFile(filepath.Join(dir, "all.yaml"), text, 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := source.Reload(); err != nil {
			s.t.Fatal(err)
		}
		if errs := source.Errors(); len(errs) > 0 {
			s.t.Fatal(errs)
		}
	}
}

// eachChangePushed are options of a control plane that waits for no further changes before
// it pushes.
func eachChangePushed(*stage) planeOptions {
	return planeOptions{ads: ads.Options{Debounce: xdsupdate.Debounce{After: -1}}}
}

// shopHost is the host that clients call.
const shopHost = "shop.example.com"

// gatewayPorts are the names that ports of the gateway have in texts: for HTTP, for TCP, for
// TLS that is passed through, and for HTTPS.
var gatewayPorts = []string{"PLAIN", "RAW", "PASSED", "SECURE"}

// allPorts is a Gateway with all of them.
const allPorts = `---` + edgeServers + `
  - {port: {number: PLAIN, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - {port: {number: RAW, name: tcp, protocol: TCP}, bind: 127.0.0.1, hosts: ["*"]}
  - {port: {number: PASSED, name: tls, protocol: TLS}, bind: 127.0.0.1, hosts: [shop.example.com], tls: {mode: PASSTHROUGH}}
`

// selecting is a ServiceEntry NAME.local.test, in a namespace, of the workloads of a backend.
func selecting(namespace, name, backend, port string) string {
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  hosts: [%[2]s.local.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [%[4]s]
  workloadSelector: {labels: {%[3]s}}
`, namespace, name, backend, port)
}

// Ports of services.
const (
	httpPort = "{number: 80, name: p, protocol: HTTP}"
	linePort = "{number: 80, name: tcp, protocol: TCP}"
	tlsPort  = "{number: 80, name: tls, protocol: TLS}"
)

// numbered is a service with a number, of the workload whose turn it is.
func numbered(i int, port string) string {
	return selecting("ingress", "s"+strconv.Itoa(i), "backend: "+targetName(i), port)
}

// route is a VirtualService of the Gateways edge and other; spec has its routes.
func route(namespace, name, host, spec string) string {
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: %s}
spec:
  hosts: [%s]
  gateways: [ingress/edge, ingress/other]
%s
`, name, namespace, host, spec)
}

// shopTo leads clients to destinations by HTTP.
func shopTo(destinations ...string) string {
	return route("ingress", "shop", shopHost, "  http: [{route: ["+strings.Join(destinations, ", ")+"]}]")
}

func service80(i int) string { return fmt.Sprintf("{destination: {host: s%d.local.test}}", i) }

// toANewService: in each state clients are led to a service that is not in any other one.
func toANewService(state int) string { return numbered(state, httpPort) + shopTo(service80(state)) }

// toANewServiceOfLines is toANewService for TCP.
func toANewServiceOfLines(state int) string {
	return numbered(state, linePort) + route("ingress", "lines", `"*"`, "  tcp: [{match: [{port: RAW}], route: ["+service80(state)+"]}]")
}

// scenarios are all that are played with one gateway.
var scenarios = []scenario{
	{name: "new service, in one batch", write: inOneBatch, state: toANewService},
	{name: "new service, in one file", write: inOneFile, state: toANewService},
	{name: "new service, in separate writes", write: inSeparateWrites, state: toANewService},
	{name: "new service, in separate pushes", write: inSeparateWrites, state: toANewService, options: eachChangePushed},
	{name: "new subset", write: inOneBatch, fixed: allPorts + selecting("ingress", "shop", "app: shop", httpPort), state: func(state int) string {
		return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: shop, namespace: ingress}
spec: {host: shop.local.test, subsets: [{name: v%[1]d, labels: {backend: %[2]s}}]}
`, state, targetName(state)) + shopTo(fmt.Sprintf("{destination: {host: shop.local.test, subset: v%d}}", state))
	}},
	{name: "weights", write: inOneBatch, state: shiftingWeights, answers: func(state int) []string {
		if state%3 == 0 {
			return []string{targetName(state / 3)}
		}
		return []string{targetName(state / 3), targetName(state/3 + 1)}
	}},
	{name: "TCP", write: inOneBatch, state: toANewServiceOfLines, call: func(c *caller) (string, error) { return c.line("RAW") }},
	{name: "TCP connections that stay", write: inOneBatch, state: toANewServiceOfLines, answers: func(int) []string {
		return allTargets()
	}, call: (*caller).lineOfMany},
	{name: "TLS", write: inOneBatch, state: func(state int) string {
		return numbered(state, tlsPort) + route("ingress", "passed", shopHost, "  tls: [{match: [{sniHosts: [shop.example.com]}], route: ["+service80(state)+"]}]")
	}, call: func(c *caller) (string, error) {
		c.transport.DisableKeepAlives = true // a connection stays with its workload
		return c.http("https", "PASSED", shopHost)
	}},
	{name: "host to another server", write: inOneBatch, fixed: "\n", state: func(state int) string {
		return movingHost(state) + toANewService(state)
	}, call: func(c *caller) (string, error) { return c.http("https", "SECURE", shopHost) }},
	{name: "port of a service", write: inOneBatch, state: func(state int) string {
		return selecting("ingress", "shop", "backend: "+targetName(state), fmt.Sprintf("{number: %d, name: p, protocol: HTTP}", 1000+state)) +
			shopTo(fmt.Sprintf("{destination: {host: shop.local.test, port: {number: %d}}}", 1000+state))
	}},
	{name: "protocol of a service", write: inOneBatch, state: func(state int) string {
		protocol := []string{"HTTP", "HTTP2", "GRPC"}[state%3]
		return selecting("ingress", "shop", "backend: "+targetName(state), "{number: 80, name: p, protocol: "+protocol+"}") + shopTo("{destination: {host: shop.local.test}}")
	}},
	{name: "namespace", write: inOneBatch, state: namespace, entries: func(s *stage, state int) string {
		w := s.targets[state%targetCount]
		return w.entry(fmt.Sprintf("team-%d", state), w.name)
	}, call: func(c *caller) (string, error) {
		return c.http("http", "PLAIN", fmt.Sprintf("h%d.example.com", c.number%namespaceHosts))
	}},
}

// shiftingWeights: in three states traffic goes from one service to the next, which comes in
// the second of them.
func shiftingWeights(state int) string {
	from, to := state/3, state/3+1
	weighted := func(i, weight int) string {
		return fmt.Sprintf("{destination: {host: s%d.local.test}, weight: %d}", i, weight)
	}
	switch state % 3 {
	case 0:
		return numbered(from, httpPort) + shopTo(service80(from))
	case 1:
		return numbered(from, httpPort) + numbered(to, httpPort) + shopTo(weighted(from, 80), weighted(to, 20))
	default:
		return numbered(from, httpPort) + numbered(to, httpPort) + shopTo(weighted(from, 20), weighted(to, 80))
	}
}

// movingHost: the host of the clients is at one of the servers of one port, of two Gateways.
func movingHost(state int) string {
	hosts := []string{"one.example.com", "two.example.com", "three.example.com"}
	hosts[state%3] += ", " + shopHost
	server := func(i int) string {
		return fmt.Sprintf("  - {port: {number: SECURE, name: s%d, protocol: HTTPS}, bind: 127.0.0.1, hosts: [%s], tls: {mode: SIMPLE, credentialName: edge}}\n", i, hosts[i])
	}
	const gateway = "---\napiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: %s, namespace: ingress}\nspec:\n  selector: {app: edge}\n  servers:\n"
	return fmt.Sprintf(gateway, "edge") + server(0) + server(1) + fmt.Sprintf(gateway, "other") + server(2)
}

// namespaceHosts is how many hosts the namespaces of the scenario have.
const namespaceHosts = 3

// namespace has all objects that route clients to workloads.
func namespace(state int) string {
	name, text := fmt.Sprintf("team-%d", state), ""
	for i := range namespaceHosts {
		service := fmt.Sprintf("s%d-%d", i, state)
		text += selecting(name, service, "app: shop", httpPort) + fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: %[2]s}
spec: {host: %[1]s.local.test, subsets: [{name: all, labels: {app: shop}}]}
`, service, name) + route(name, service, fmt.Sprintf("h%d.example.com", i), fmt.Sprintf("  http: [{route: [{destination: {host: %s.local.test, subset: all}}]}]", service))
	}
	return text
}

// withDefaults fills in the defaults of a scenario.
func (s scenario) withDefaults() scenario {
	if s.fixed == "" {
		s.fixed = allPorts
	}
	if s.answers == nil {
		s.answers = func(state int) []string { return []string{targetName(state)} }
	}
	if s.call == nil {
		s.call = func(c *caller) (string, error) { return c.http("http", "PLAIN", shopHost) }
	}
	if s.mayLose == nil {
		s.mayLose = func(variant) bool { return false }
	}
	return s
}
