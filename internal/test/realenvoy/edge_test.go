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

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// edge is a gateway whose plain HTTP port leads by VirtualServices to reporters.
type edge struct {
	*plane
	proxy  *envoyproxy.Proxy
	port   string
	client *http.Client
}

// edgeServers begins scenes: a Gateway "edge" in namespace ingress, whose servers follow.
const edgeServers = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress}
spec:
  selector: {app: edge}
  servers:`

// edgeGateway is that Gateway with a server that has HTTP for all hosts.
const edgeGateway = edgeServers + `
  - {port: {number: HTTPPORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
---`

// shopRoutes begins a VirtualService for shop.example.com of that Gateway; its HTTP rules follow.
const shopRoutes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: ingress}
spec:
  hosts: [shop.example.com]
  gateways: [edge]
  http: `

// shopGateway is that Gateway with an HTTP server for one host, followed by the rules of a
// VirtualService.
const shopGateway = edgeServers + `
  - {port: {number: HTTPPORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: [shop.example.com]}
---` + shopRoutes

// openEdge is that Gateway with an HTTP server and one that routes TCP to the service echo,
// followed by the rules of a VirtualService for HTTP.
const openEdge = edgeServers + `
  - {port: {number: HTTPPORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - {port: {number: TCPPORT, name: tcp, protocol: TCP}, bind: 127.0.0.1, hosts: ["*"]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  tcp: [{match: [{port: TCPPORT}], route: [{destination: {host: echo.local.test}}]}]
  http: `

// startEdge starts one in us/a/1, with further objects.
func startEdge(t *testing.T, delta bool, objects string, replace ...string) *edge {
	t.Helper()
	return startEdgeOf(t, envoyproxy.Options{Delta: delta}, objects, replace...)
}

// startEdgeOf is startEdge with further options of the proxy.
func startEdgeOf(t *testing.T, o envoyproxy.Options, objects string, replace ...string) *edge {
	t.Helper()
	e := &edge{plane: startPlane(t, planeOptions{mesh: withoutMeshTLS()}), port: strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))}
	e.client = &http.Client{
		Transport: newTransport(t), Timeout: testTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.Apply(edgeGateway+objects, append(replace, "HTTPPORT", e.port)...)
	e.Applied()
	e.start(o)
	return e
}

// start starts the proxy.
func (e *edge) start(o envoyproxy.Options) {
	e.TB.Helper()
	o.Server, o.Node = e.Address, envoyproxy.Node{
		Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"},
		Locality: &core.Locality{Region: "us", Zone: "a", SubZone: "1"},
	}
	e.proxy = envoyproxy.Start(e.TB, o)
	e.proxy.AwaitReady()
}

// onPort is an endpoint of service.
func onPort(port string) string { return fmt.Sprintf("{address: 127.0.0.1, ports: {p: %s}}", port) }

// service is a ServiceEntry of HOST.local.test in the namespace ingress, with port 80.
func service(name, protocol string, endpoints ...string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: ingress}
spec:
  hosts: [%[1]s.local.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: p, protocol: %[2]s}]
  endpoints:
  - %[3]s
`, name, protocol, strings.Join(endpoints, "\n  - "))
}

// rules is a VirtualService for shop.example.com, with HTTP rules in YAML.
func rules(text string) string { return shopRoutes + "\n" + text }

// policy is a DestinationRule for HOST.local.test, with a spec in YAML.
func policy(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: ingress}
spec:
  host: %[1]s.local.test
%[2]s`, name, spec)
}

// answer is that to a request.
type answer struct {
	*http.Response
	report
	body string
}

// call is a request for shop.example.com, with headers by name and value.
func (e *edge) call(method, path string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(e.TB.Context(), method, "http://"+local(e.port)+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	req.Host = "shop.example.com"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := e.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	out := answer{Response: res, body: string(data)}
	if res.Header.Get("x-backend") != "" && err == nil {
		err = json.Unmarshal(data, &out.report)
	}
	return out, err
}

// get is call that ends the test if there is no answer.
func (e *edge) get(path string, headers ...string) answer {
	e.TB.Helper()
	a, err := e.call(http.MethodGet, path, headers...)
	if err != nil {
		e.TB.Fatal(err)
	}
	return a
}

// who returns the workload that responds to a request, or the status of a failure.
func (e *edge) who(path string, headers ...string) string {
	e.TB.Helper()
	if a := e.get(path, headers...); a.StatusCode != http.StatusOK {
		return strconv.Itoa(a.StatusCode)
	} else {
		return a.By
	}
}

// await returns when a condition is true, which it asks about often.
func (e *edge) await(what string, condition func() bool) {
	e.TB.Helper()
	for deadline := time.Now().Add(testTimeout); !condition(); {
		if time.Now().After(deadline) {
			e.TB.Fatalf("no %s", what)
		}
	}
}

// fine fails the test if the Envoy rejected a resource, or got a deprecated field.
func (e *edge) fine() {
	e.TB.Helper()
	e.Accepted()
	if refused, outmoded := e.proxy.Refused(), e.proxy.Outmoded(); len(refused)+len(outmoded) > 0 {
		e.TB.Errorf("refused: %v, outmoded: %v", refused, outmoded)
	}
}
