// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// documentedBlocks are the JSON texts of docs/envoy.md: the bootstraps of a gateway and of
// a sidecar, TLS to the server, and the two files that it names. In them each pair of old
// and new texts is replaced.
func documentedBlocks(t *testing.T, replace ...string) (blocks [][]byte) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, []byte(strings.NewReplacer(replace...).Replace(string(block[1]))))
	}
	if len(blocks) != 5 {
		t.Fatalf("docs/envoy.md has %d texts in JSON, want 5", len(blocks))
	}
	return blocks
}

// documentedBootstraps are the bootstraps of a gateway and of a sidecar.
func documentedBootstraps(t *testing.T, replace ...string) (gateway, sidecar *bootstrap.Bootstrap) {
	t.Helper()
	blocks := documentedBlocks(t, replace...)
	gateway, sidecar = &bootstrap.Bootstrap{}, &bootstrap.Bootstrap{}
	if err := errors.Join(protojson.Unmarshal(blocks[0], gateway), protojson.Unmarshal(blocks[1], sidecar)); err != nil {
		t.Fatal(err)
	}
	return gateway, sidecar
}

// TestDocumentedBootstraps: Envoys run on the bootstraps of docs/envoy.md, by both
// protocols, with the newest and the oldest release.
func TestDocumentedBootstraps(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		for _, protocol := range []string{"DELTA_GRPC", "GRPC"} {
			t.Run(program.String()+"/"+protocol, func(t *testing.T) { testDocumented(t, program, protocol) })
		}
	}
}

func testDocumented(t *testing.T, program envoyproxy.Program, protocol string) {
	t.Helper()
	p := startPlane(t, planeOptions{})
	ports := envoyproxy.FreePorts(t, 3)
	one := startBackend(t, "one")
	p.Apply(shopGateway+`[{match: [{uri: {regex: "/|`+largeExpression+`"}}], route: [{destination: {host: shop.local.test}}]}]
---`+serviceEntry("shop.local.test", "HTTP", one)+`
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: ingress}
spec:
  hosts: [db.example.com]
  resolution: STATIC
  ports: [{number: 5432, name: p, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {p: ECHO}}]
`, "HTTPPORT", fmt.Sprint(ports[0]), "ECHO", startEcho(t))
	p.Applied()
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	ofGateway, ofSidecar := documentedBootstraps(t, `"control-plane.example.com"`, fmt.Sprintf("%q", host), "15010", port, "9901", "0",
		"DELTA_GRPC", protocol, "15080", fmt.Sprint(ports[1]), "15432", fmt.Sprint(ports[2]))
	for _, of := range []struct {
		bootstrap *bootstrap.Bootstrap
		port      uint32
		host      string
	}{{ofGateway, ports[0], "shop.example.com"}, {ofSidecar, ports[1], "shop.local.test"}} {
		proxy := envoyproxy.StartWith(t, envoyproxy.Options{Program: program}, of.bootstrap)
		proxy.AwaitReady()
		proxy.Await(of.host+" is answered", func() bool {
			status, err := statusOf(t, local(fmt.Sprint(of.port)), of.host)
			return err == nil && status == http.StatusOK
		})
	}
	(&sidecar{edge: &edge{plane: p}, tcp: fmt.Sprint(ports[2])}).testEcho()
	p.Applied()
	p.Accepted()
}
