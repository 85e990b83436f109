// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"strings"
	"testing"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/csds"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// registered is a registrar that keeps the service.
type registered struct {
	service statusv3.ClientStatusDiscoveryServiceServer
}

func (r *registered) RegisterService(_ *grpc.ServiceDesc, service any) {
	r.service, _ = service.(statusv3.ClientStatusDiscoveryServiceServer)
}

// TestKeysStaySecret: neither pages nor CSDS show private and symmetric members of keys, or
// passwords and queries of the URIs of keys, and gateways are not sent them. Public members are
// sent.
func TestKeysStaySecret(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.apply(mesh)
	p.apply(protected)
	p.apply(`
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: keys, namespace: infra}
spec:
  jwtRules:
  - {issuer: "https://two", jwks: '{"keys": [{"kty": "oct", "kid": "x", "k": "c2VjcmV0LW9uZQ"},
      {"kty": "EC", "kid": "public-id", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "d": "c2VjcmV0LXR3bw"}]}'}
  - {issuer: "https://three", jwksUri: "https://user:secret-three@127.0.0.1:1/keys?token=secret-four"}
`)
	secrets := []string{"c2VjcmV0LW9uZQ", "c2VjcmV0LXR3bw", "secret-three", "secret-four"}
	silent := func(where, text string) {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s:\n%.2000q", where, secret, text)
			}
		}
	}
	c := p.connectRouter("router~10.0.0.7~edge.infra~infra.svc", "infra", "edge")
	sent := ""
	for _, r := range c.State().Resources(envoy.ListenerType) {
		m, err := r.Message()
		p.must(err)
		data, err := proto.Marshal(m)
		p.must(err)
		sent += string(data)
	}
	silent("what a gateway is sent", sent)
	demand(t, "what a gateway is sent", sent, "public-id", "https://two", "https://three")
	crawl(t, p.pages, func(target, page string, _ bool) { silent(target, page) })
	var clients registered
	csds.New(p.server, csds.Options{Authorize: func(context.Context) error { return nil }}).Register(&clients)
	status, err := clients.service.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	p.must(err)
	data, err := proto.Marshal(status)
	p.must(err)
	silent("CSDS", string(data))
	demand(t, "CSDS", string(data), "public-id")
	for _, e := range p.policies.Ineffective() {
		silent("Ineffective", e.String())
	}
}
