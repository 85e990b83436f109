// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// normalizations are the columns of the table of docs/security.md.
var normalizations = []meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType{
	meshconfig.MeshConfig_ProxyPathNormalization_NONE, meshconfig.MeshConfig_ProxyPathNormalization_BASE,
	meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES, meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES,
}

// documentedPaths returns the rows of the table: the request target of a client, and its outcome
// with each normalization.
func documentedPaths(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| request target | NONE |")
	if !found {
		t.Fatal("docs/security.md has no table of request targets")
	}
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 1+len(normalizations) {
			break
		}
		cells[0] = strings.Trim(cells[0], "`")
		rows = append(rows, cells)
	}
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	return rows
}

// answerToTarget sends a request target as it is, and returns what becomes of it and the path that routes see.
func answerToTarget(t *testing.T, address, target string) (answer, path string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	_ = response.Body.Close()
	word, known := map[int]string{http.StatusFound: admitted, http.StatusForbidden: "denied", http.StatusTemporaryRedirect: "redirected", http.StatusBadRequest: "bad request"}[response.StatusCode]
	if !known {
		return response.Status, ""
	}
	return word, strings.TrimPrefix(response.Header.Get("Location"), "http://seen.test")
}

const admitted = "admitted"

// randomTarget is a request target of HTTP/1.1.
func randomTarget(r *rand.Rand) string {
	target := pickOf(r, "/", "/", "/", "/admin", "/t/")
	for range r.IntN(9) {
		target += pickOf(r, "/", "/", "/", "//", "\\", "%2f", "%2F", "%5c", "%5C", ".", "..", "/./", "/../", "%2e", "%2E", "admin", "admin", "t", "x", "[", "%61dmin", "a%64min", "%41",
			"%", "%4", "%25", "%00", "^", "|", "\"", "%7e", "~", ";", "?", "#", "%zz", "*", "+", "%3f", "%23")
	}
	return target
}

func pickOf(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// decisionOf is what Explain says of a request target to the Envoy.
func decisionOf(p *plane, port, target string) *traffic.Decision {
	number, _ := strconv.ParseUint(port, 10, 16)
	return p.policies.Explain(p.Server.Proxies()[0].View, traffic.Call{Host: "a.test", Port: uint32(number), Path: target}).Decision
}

// explained is what becomes of a request target as Explain says it.
func explained(p *plane, port, target string) string {
	d := decisionOf(p, port, target)
	switch {
	case d == nil:
		return "nothing"
	case d.Allowed:
		return admitted
	default:
		return map[string]string{"400": "bad request", "403": "denied"}[d.Answer]
	}
}

// TestDocumentedPaths: what the normalization of the mesh does to paths that a policy denies is as
// docs/security.md and Explain say, and what routes see of random ones is as it is read here.
func TestDocumentedPaths(t *testing.T) {
	programs := envoyproxy.Programs(t)
	rows := documentedPaths(t)
	for column, normalization := range normalizations {
		program := programs[column%len(programs)]
		mesh := withoutMeshTLS()
		mesh.PathNormalization = &meshconfig.MeshConfig_ProxyPathNormalization{Normalization: normalization}
		p := startPlane(t, planeOptions{mesh: mesh})
		port := fmt.Sprint(envoyproxy.FreePorts(t, 1)[0])
		p.Apply(documentedPolicy, "HTTPPORT", port)
		p.readyEdge(envoyproxy.Options{Program: program, Delta: column%2 == 0})
		for _, row := range rows {
			if got, _ := answerToTarget(t, local(port), row[0]); got != row[1+column] || got != explained(p, port, row[0]) {
				t.Errorf("%s, %s: %s is %s, documented as %s, explained as %s", program, normalization, row[0], got, row[1+column], explained(p, port, row[0]))
			}
		}
		r := rand.New(rand.NewPCG(uint64(column), 26)) //nolint:gosec // repeatable
		for range 300 {
			target := randomTarget(r)
			paths := routesim.PathsOf(normalization)
			newer, _ := paths.Of(target)
			paths.Parameters = program.String() == programs[len(programs)-1].String()
			read, taken := paths.Of(target)
			got, seen := answerToTarget(t, local(port), target)
			if said := explained(p, port, target); got != said && read == newer || taken == (got == "bad request") || got == admitted && seen != read {
				t.Errorf("%s, %s: %s is %s, explained as %s; routes see %q, read as %q", program, normalization, target, got, said, seen, read)
			}
		}
		p.Accepted()
	}
}

// documentedPolicy is the policy of the table.
const documentedPolicy = edgeGateway + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{redirect: {authority: seen.test, redirectCode: 302}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: ingress}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/admin, "/admin/*", "/t/{**}"]}}]}]}
`
