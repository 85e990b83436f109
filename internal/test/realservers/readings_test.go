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
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestServersDecideAsPoliciesSay: the engine of grpc-go decides about calls as PeerAuthentications
// and AuthorizationPolicies say, for random ones. Most rounds are of policies that admit some calls
// and deny others: of random ones by themselves three in four decide about all calls in one way,
// and tell little.
func TestServersDecideAsPoliciesSay(t *testing.T) {
	t.Parallel()
	rounds := uint64(tier.Share(150))
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
	listener := testserver.Listen(t, "127.0.0.1:0")
	server := netip.MustParseAddrPort(listener.Addr().String())
	text := workload(server.String(), more)
	if m := security.PeerAuthentication_MutualTLS_Mode(d.IntN(4)); m > 0 { //nolint:gosec // four modes
		text += mode(m.String())
		read.Peers = append(read.Peers, &routesim.PeerAuthentication{Namespace: routesim.RootNamespace, PeerAuthentication: &security.PeerAuthentication{
			Mtls: &security.PeerAuthentication_MutualTLS{Mode: m},
		}})
	}
	c := caller{t: t, dice: d, read: read, who: routesim.Proxy{Namespace: "shop", Labels: labels}, server: server, counts: counts, words: wordsOf}
	anything := d.IntN(8) == 0
	for c.draw(); !anything && !c.tells(); {
		c.draw()
	}
	for _, of := range read.Policies.Policies {
		data, err := protojson.Marshal(of.AuthorizationPolicy)
		if err != nil {
			t.Fatal(err)
		}
		text += policy(of.Name, string(data))
	}
	c.issuer = authority.New(t)
	p := startPlane(t, text)
	content, _ := bootstrap(t, p.Address, c.issuer)
	serveGo(t, listener, content)
	c.callAll()
	if p.Accepted(); t.Failed() {
		t.Log(text)
	}
	return len(read.Policies.Policies)
}

// draw draws new policies.
func (c *caller) draw() {
	c.read.Policies.Policies = nil
	for i := range 1 + c.IntN(6) {
		spec := c.policy(c.words(c.server.Port()))
		for !valid(c.t, spec) {
			spec = c.policy(c.words(c.server.Port()))
		}
		c.read.Policies.Policies = append(c.read.Policies.Policies, &routesim.AuthorizationPolicy{
			Namespace: "shop", Name: fmt.Sprint("p", i), AuthorizationPolicy: spec,
		})
	}
}

// tells reports whether the policies admit some of some random calls, and deny others.
func (c *caller) tells() bool {
	outcomes := map[bool]bool{}
	for range 40 {
		from := c.place(c.taken())
		method, headers := c.request()
		outcomes[c.decide(from, method, headers...).Admitted] = true
	}
	return len(outcomes) > 1
}

// valid reports whether validation takes a policy.
func valid(t *testing.T, spec *security.AuthorizationPolicy) bool {
	t.Helper()
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	_, err := schema.Check(configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.AuthorizationPolicy, Namespace: "shop", Name: "p"}, Spec: spec})
	return err == nil
}
