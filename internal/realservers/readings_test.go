// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/authority"
	"github.com/pilotkit/pilotkit/internal/routesim"
)

// TestServersDecideAsPoliciesSay: the engine of grpc-go decides about calls as PeerAuthentications and AuthorizationPolicies
// say, for random ones.
func TestServersDecideAsPoliciesSay(t *testing.T) {
	t.Parallel()
	rounds := uint64(500)
	if testing.Short() {
		rounds = 10
	}
	counts, policies := map[codes.Code]int{}, 0
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			policies += decideOnce(t, dice{rand.New(rand.NewPCG(seed, 29))}, counts) //nolint:gosec // repeatable
		})
	}
	t.Logf("%d policies; calls: %v", policies, counts)
	for _, outcome := range []codes.Code{allowed, denied, closed} {
		if counts[outcome] < 10*int(rounds) { //nolint:gosec // few
			t.Errorf("the calls tell little: %v", counts)
		}
	}
}

// decideOnce tries a server with some policies, and returns how many.
func decideOnce(t *testing.T, d dice, counts map[codes.Code]int) int {
	t.Helper()
	read := &routesim.Server{Policies: &routesim.Authorization{TrustDomain: "cluster.local"}}
	labels, more := map[string]string{"app": "quotes"}, ""
	if d.IntN(2) == 0 {
		labels["security.istio.io/tlsMode"], more = "istio", ", security.istio.io/tlsMode: istio"
	}
	listener := listen(t, "127.0.0.1:0")
	server := netip.MustParseAddrPort(listener.Addr().String())
	text := workload(server.String(), more)
	if m := security.PeerAuthentication_MutualTLS_Mode(d.IntN(4)); m > 0 { //nolint:gosec // four modes
		text += mode(m.String())
		read.Peers = append(read.Peers, &routesim.PeerAuthentication{Namespace: routesim.RootNamespace, PeerAuthentication: &security.PeerAuthentication{
			Mtls: &security.PeerAuthentication_MutualTLS{Mode: m},
		}})
	}
	for i := range 1 + d.IntN(6) {
		spec, name := d.policy(server.Port()), fmt.Sprint("p", i)
		for !valid(t, spec) {
			spec = d.policy(server.Port())
		}
		data, err := protojson.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		text += policy(name, string(data))
		read.Policies.Policies = append(read.Policies.Policies, &routesim.AuthorizationPolicy{Namespace: "shop", Name: name, AuthorizationPolicy: spec})
	}
	issuer := authority.New(t)
	p := startPlane(t, text)
	content, _ := bootstrap(t, p.address, issuer)
	serveGo(t, listener, content)
	c := caller{t: t, dice: d, read: read, who: routesim.Proxy{Namespace: "shop", Labels: labels}, server: server, issuer: issuer, counts: counts}
	c.callAll()
	if p.accepted(); t.Failed() {
		t.Log(text)
	}
	return len(read.Policies.Policies)
}

// valid reports whether validation takes a policy.
func valid(t *testing.T, spec *security.AuthorizationPolicy) bool {
	t.Helper()
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	_, err := schema.Check(configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.AuthorizationPolicy, Namespace: "shop", Name: "p"}, Spec: spec})
	return err == nil
}
