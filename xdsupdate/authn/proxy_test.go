// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestNoOtherNamespace: a client with any claims gets the resources of its certificate's namespace,
// or none.
func TestNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{})
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same history each time.
		conns := map[string]*grpc.ClientConn{"a": p.dial(spiffe("a")), "b": p.dial(spiffe("b")), "c": p.dial(spiffe("c"))}
		served, refused := 0, 0
		for range 300 {
			own := []string{"a", "b", "c"}[random.IntN(3)]
			claimed := claim(random)
			got, err := p.clusters(p.context(), conns[own], claimed)
			if err == nil {
				served++
				check(t, fmt.Sprintf("clusters of %s that claims %v", own, claimed), got, seen(own))
				continue
			}
			refused++
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s that claims %v: %v", own, claimed, err)
			}
			if isHonest(claimed, own) {
				t.Errorf("%s that claims no more, %v, is refused: %v", own, claimed, err)
			}
		}
		if served < 30 || refused < 30 {
			t.Errorf("%d were served and %d refused: the claims are poor", served, refused)
		}
	})
}

// claim returns a node that may claim anything.
func claim(random *rand.Rand) *core.Node {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	namespace := func() string { return one("a", "a", "b", "c", "", "x.a", "a.b", "A", "a ", "a~b", "*", "a/b") }
	id := one("", "web", "sidecar~10.0.0.1~web~x", "sidecar~10.0.0.1~web.1."+namespace()+"~x", "sidecar~~."+namespace()+"~",
		"router~10.0.0.1~web."+namespace()+"~"+namespace()+".svc.cluster.local", "web."+namespace(), "a~b~c.d~e~f."+namespace())
	var metadata []string
	for _, key := range []string{"NAMESPACE", "SERVICE_ACCOUNT", "CLUSTER_ID", "INSTANCE_IPS", "namespace"} {
		if random.IntN(3) == 0 {
			metadata = append(metadata, key, map[bool]string{true: namespace(), false: "web"}[key != "SERVICE_ACCOUNT"])
		}
	}
	return node(id, metadata...)
}

// isHonest reports whether the claims of a node are certainly limited to the service account web of
// a namespace.
func isHonest(n *core.Node, namespace string) bool {
	said := n.GetMetadata().GetFields()["NAMESPACE"].GetStringValue()
	parts := strings.Split(n.GetId(), "~")
	return (said == "" || said == namespace) && (len(parts) != 4 || parts[2] == "web" || strings.HasSuffix(parts[2], "."+namespace))
}

// client is one whom the table of TestRefusals has.
type client struct {
	names []string // of its certificate; none: it has none
	node  *core.Node
	cause authn.Cause
	code  codes.Code
	texts []string
}

// TestRefusals: each cause has its status, its text and its counter, and no response is sent.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]client{
		"another namespace by the ID": {
			[]string{spiffe("a")}, in("b"), authn.CauseNamespace, codes.PermissionDenied, []string{`claims the namespace "b"`, "web-1.b", "it is " + spiffe("a")},
		},
		"another namespace by metadata": {
			[]string{spiffe("a")},
			node("x", "NAMESPACE", "b"), authn.CauseNamespace, codes.PermissionDenied,
			[]string{`claims the namespace "b" (metadata NAMESPACE)`, spiffe("a")},
		},
		"the ID and the metadata differ": {
			[]string{spiffe("a")}, node(in("b").GetId(), "NAMESPACE", "a"), authn.CauseNamespace, codes.PermissionDenied, []string{`"b"`},
		},
		"another service account": {
			[]string{spiffe("a")},
			node(in("a").GetId(), "SERVICE_ACCOUNT", "db"), authn.CauseServiceAccount, codes.PermissionDenied,
			[]string{`claims the service account "db"`, spiffe("a")},
		},
		"another trust domain": {
			[]string{"spiffe://evil.example/ns/a/sa/web"}, in("a"), authn.CauseTrustDomain, codes.PermissionDenied, []string{"spiffe://evil.example/ns/a/sa/web", "example.org"},
		},
		"no certificate":         {nil, in("a"), authn.CauseNoIdentity, codes.Unauthenticated, []string{"no certificate"}},
		"no SPIFFE ID":           {[]string{"web.example.com"}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"0 URIs"}},
		"two SPIFFE IDs":         {[]string{spiffe("a"), spiffe("b")}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"2 URIs"}},
		"a SPIFFE ID and a URI":  {[]string{spiffe("a"), "https://a.example.com"}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"2 URIs"}},
		"a URI":                  {[]string{"https://a.example.com/ns/a/sa/web"}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"https://a.example.com"}},
		"an escaped SPIFFE ID":   {[]string{"spiffe://example.org/ns/%61/sa/web"}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"%61"}},
		"a SPIFFE ID with query": {[]string{spiffe("a") + "?"}, in("a"), authn.CauseCertificate, codes.Unauthenticated, []string{"?"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.test(t) })
		})
	}
}

func (c client) test(t *testing.T) {
	t.Helper()
	p := startPlane(t, planeOptions{tls: authn.TLSOptions{CertificateOptional: true}})
	conn := p.dial(c.names...)
	for times := range uint64(3) {
		got, err := p.clusters(p.context(), conn, c.node)
		check(t, "clusters", got, []string(nil))
		said := status.Convert(err)
		check(t, "code", said.Code(), c.code)
		for _, text := range c.texts {
			if !strings.Contains(said.Message(), text) {
				t.Errorf("the client is told %q, want %q in it", said.Message(), text)
			}
		}
		want := map[authn.Cause]uint64{
			"no_identity": 0, "certificate": 0, "trust_domain": 0, "namespace": 0, "service_account": 0, "token": 0, "token_unchecked": 0,
		}
		want[c.cause] = times + 1
		check(t, "refusals", p.clients.Refusals(), want)
	}
	check(t, "proxies", len(p.Proxies()), 0)
}

// TestForeignAuthority: TLS rejects certificates of other authorities, and clients without a
// certificate unless certificates are optional.
func TestForeignAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{})
		for name, conn := range map[string]*grpc.ClientConn{
			"foreign": p.dialTLS(p.config(authority.New(t).Pair(spiffe("a")))), "none": p.dial(), "plain": p.dialPlain(),
		} {
			if got, err := p.clusters(p.context(), conn, in("a")); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	})
}

// TestAuthorityAsClient: a certificate that may sign others, such as an authority's own, identifies no client (SPIFFE,
// X509-SVID, "Leaf Validation").
func TestAuthorityAsClient(t *testing.T) {
	clients := authn.New(authn.Options{TrustDomains: []string{"example.org"}})
	issuer := authority.New(t)
	leaf := parse(t, issuer.Pair(spiffe("a")))
	if id, err := clients.Identity(verified(t, leaf)); err != nil {
		t.Fatalf("%v, %v", id, err)
	}
	for _, usage := range []x509.KeyUsage{0, x509.KeyUsageCertSign, x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign} {
		signer := *leaf
		signer.KeyUsage, signer.IsCA = usage, usage == 0
		if _, err := clients.Identity(verified(t, &signer)); status.Code(err) != codes.Unauthenticated {
			t.Errorf("usage %b: %v", usage, err)
		}
	}
	if _, err := clients.Identity(presented(t, leaf)); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "not been verified") {
		t.Errorf("a certificate that nobody has verified: %v", err)
	}
	if _, err := clients.Identity(t.Context()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call of nobody: %v", err)
	}
}

// TestLabels: a proxy has the labels that registries have for the workload in the proxy's
// namespace, or else the labels in its node.
func TestLabels(t *testing.T) {
	services := memory.New(memory.Options{})
	for _, namespace := range []string{"a", "b"} {
		if err := services.SetWorkload(&registry.WorkloadInstance{
			Kind: registry.WorkloadEntry, Namespace: namespace, Name: "web", Endpoint: &registry.Endpoint{
				Addresses: []string{"10.0.0.1"}, Shared: &registry.EndpointAttributes{Namespace: namespace, Labels: registry.Labels{"of": namespace}},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx := verified(t, parse(t, authority.New(t).Pair(spiffe("b"))))
	for _, with := range []registry.ServiceDiscovery{nil, services} {
		clients := authn.New(authn.Options{TrustDomains: []string{"example.org"}, Services: with})
		n := node("sidecar~10.0.0.1~web~x", "NETWORK", "n")
		n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"of": structpb.NewStringValue("said")}})
		proxy, err := clients.Proxy(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		want := &registry.Proxy{Labels: registry.Labels{"of": "said"}, ID: "sidecar~10.0.0.1~web~x", Namespace: "b", Identity: "spiffe://example.org/ns/b/sa/web", IPAddresses: []string{"10.0.0.1"}, Network: "n"}
		if with != nil {
			want.Labels = registry.Labels{"of": "b"}
		}
		check(t, "proxy", proxy, want)
	}
}

// TestBothProtocols: a proxy gets the same by both.
func TestBothProtocols(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := startPlane(t, planeOptions{})
			conn := p.dial(spiffe("a"))
			for _, n := range []*core.Node{in("a"), in("b")} {
				c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: n, Delta: delta})
				defer c.Close()
				if err := c.Connect(p.context()); err != nil {
					t.Fatal(err)
				}
				if err := c.Subscribe(clusterType); err != nil {
					t.Fatal(err)
				}
				_, err := c.Next(p.context())
				want := codes.OK
				if n.GetId() != in("a").GetId() {
					want = codes.PermissionDenied
				}
				if status.Code(unwrapped(err)) != want {
					t.Errorf("delta %v, %s: %v", delta, n.GetId(), err)
				}
			}
		})
	}
}

func TestNewPanics(t *testing.T) {
	for name, call := range map[string]func(){
		"two":    func() { authn.New(authn.Options{}, authn.Options{}) },
		"domain": func() { authn.New(authn.Options{TrustDomains: []string{"example.org", "Example.org"}}) },
		"empty":  func() { authn.New(authn.Options{TrustDomains: []string{""}}) },
		"TLS":    func() { _, _ = authn.NewTLS(authn.TLSOptions{}) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "authn.New") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			call()
		}()
	}
	// The program's slice may change.
	domains := []string{"example.org"}
	clients := authn.New(authn.Options{TrustDomains: domains})
	domains[0] = "other"
	if _, err := clients.Identity(verified(t, parse(t, authority.New(t).Pair(spiffe("a"))))); err != nil || slices.Contains(domains, "example.org") {
		t.Error(err)
	}
}
