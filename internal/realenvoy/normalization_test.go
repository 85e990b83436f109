// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/envoyproxy"
)

// normalizations are the columns of the table of docs/security.md.
var normalizations = []meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType{
	meshconfig.MeshConfig_ProxyPathNormalization_NONE, meshconfig.MeshConfig_ProxyPathNormalization_BASE,
	meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES, meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES,
}

// documentedPaths returns the rows of the table: what a client asks for, and what becomes of it by each normalization.
func documentedPaths(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
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

// answerToTarget sends a request target as it is.
func answerToTarget(t *testing.T, address, target string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	word, known := map[int]string{http.StatusOK: "admitted", http.StatusForbidden: "denied", http.StatusTemporaryRedirect: "redirected", http.StatusBadRequest: "bad request"}[answer.StatusCode]
	if !known {
		return answer.Status
	}
	return word
}

// TestDocumentedPaths: what the normalization of the mesh does to paths that a policy denies is as docs/security.md says.
func TestDocumentedPaths(t *testing.T) {
	programs := envoyproxy.Programs(t)
	rows := documentedPaths(t)
	for column, normalization := range normalizations {
		program := programs[column%len(programs)]
		mesh := withoutMeshTLS()
		mesh.PathNormalization = &meshconfig.MeshConfig_ProxyPathNormalization{Normalization: normalization}
		p := startPlane(t, planeOptions{mesh: mesh})
		port := fmt.Sprint(envoyproxy.FreePorts(t, 1)[0])
		p.apply(documentedPolicy, "HTTPPORT", port)
		p.flush()
		proxy := envoyproxy.Start(t, envoyproxy.Options{
			Program: program, Server: p.address, Delta: column%2 == 0,
			Node: envoyproxy.Node{Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}},
		})
		proxy.AwaitReady()
		p.applied()
		for _, row := range rows {
			if got, want := answerToTarget(t, local(port), row[0]), row[1+column]; got != want {
				t.Errorf("%s, %s: %s is %s, documented as %s", program, normalization, row[0], got, want)
			}
		}
		p.accepted()
	}
}

// documentedPolicy is the policy of the table.
const documentedPolicy = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress}
spec:
  selector: {app: edge}
  servers: [{port: {number: HTTPPORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{directResponse: {status: 200}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: ingress}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/admin, "/admin/*", "/t/{**}"]}}]}]}
`
