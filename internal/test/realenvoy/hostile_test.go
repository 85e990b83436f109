// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// goodGate is the gateway of the good tenants, with a policy, and a host that responds with the number of a set.
const goodGate = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress, creationTimestamp: "1970-01-01T00:16:40Z"}
spec:
  selector: {app: edge}
  servers:
  - port: {number: PLAIN, name: http, protocol: HTTP}
    hosts: &hosts [shop/shop.good.test, billing/billing.good.test, ledger/ledger.good.test, ./set.good.test, "evil/*.evil.test"]
  - port: {number: SECURE, name: https, protocol: HTTPS}
    hosts: *hosts
    tls: {mode: SIMPLE, credentialName: edge}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: closed, namespace: ingress, creationTimestamp: "1970-01-01T00:16:41Z"}
spec:
  selector: {matchLabels: {app: edge}}
  action: DENY
  rules: [{to: [{operation: {paths: ["/closed*"]}}]}]
`

const goodTenant = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s, namespace: TENANT, creationTimestamp: "1970-01-01T00:17:00Z"}
spec:
  hosts: [TENANT.good.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: FIRST}, labels: {version: v1}}
  - {address: 127.0.0.1, ports: {http: SECOND}, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s, namespace: TENANT, creationTimestamp: "1970-01-01T00:17:00Z"}
spec:
  host: TENANT.good.test
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: s, namespace: TENANT, creationTimestamp: "1970-01-01T00:17:00Z"}
spec:
  hosts: [TENANT.good.test]
  gateways: [mesh, ingress/edge]
  http:
  - {match: [{uri: {prefix: /second}}], route: [{destination: {host: TENANT.good.test, subset: v2}}]}
  - {match: [{uri: {prefix: /gone}}], redirect: {uri: /second}}
  - {route: [{destination: {host: TENANT.good.test, subset: v1}}]}
`

// siege is a gateway of three good tenants, and a hostile one whose objects come and go.
type siege struct {
	*plane
	proxy         *envoyproxy.Proxy
	issuer        *authority
	plain, secure string
	// ports are those of the gateway in place of the ports of random objects.
	ports   map[uint32]uint32
	written []configstore.Mutation
}

// noFetcher has no keys of any issuer.
type noFetcher struct{}

func (noFetcher) Fetch(context.Context, string) ([]byte, error) { return nil, errors.New("no keys") }

func startSiege(t *testing.T, limits traffic.Limits, delta bool) *siege {
	t.Helper()
	free := envoyproxy.FreePorts(t, 6)
	s := &siege{
		issuer: newAuthority(t), plain: strconv.Itoa(int(free[0])), secure: strconv.Itoa(int(free[1])),
		ports: map[uint32]uint32{80: free[0], 443: free[1], 9000: free[2], 15443: free[3], 8080: free[4]},
		plane: startPlane(t, planeOptions{mesh: withoutMeshTLS(), fetcher: noFetcher{}, limits: limits, unvalidated: true}),
	}
	s.vault.set("ingress", "kubernetes://edge", s.issuer.secret("*.good.test"))
	text := goodGate
	for _, tenant := range randomobjects.GoodTenants() {
		text += "---" + strings.NewReplacer("TENANT", tenant, "FIRST", startBackend(t, tenant+" 1").port(), "SECOND", startBackend(t, tenant+" 2").port()).Replace(goodTenant)
	}
	s.Apply(text, "PLAIN", s.plain, "SECURE", s.secure)
	s.set("none", nil)
	s.proxy = s.readyEdge(envoyproxy.Options{Delta: delta, Resolver: &cares.CaresDnsResolverConfig{
		Resolvers:           []*core.Address{envoyproxy.Address("127.0.0.1", free[5])}, // nobody listens there
		QueryTimeoutSeconds: wrapperspb.UInt64(1), QueryTries: wrapperspb.UInt32(1),
	}})
	return s
}

// set puts hostile objects in the place of those before, in one batch with a route that responds with a name.
func (s *siege) set(name string, hostile []*configstore.Config) {
	s.TB.Helper()
	marker := configstore.NewConfig("set", "ingress", &networking.VirtualService{
		Hosts: []string{"set.good.test"}, Gateways: []string{"edge"}, Http: []*networking.HTTPRoute{{DirectResponse: &networking.HTTPDirectResponse{
			Status: http.StatusOK, Body: &networking.HTTPBody{Specifier: &networking.HTTPBody_String_{String_: name}},
		}}},
	}).Config()
	batch := []configstore.Mutation{{Op: configstore.OpUpsert, Config: marker}}
	for _, m := range s.written {
		if !slices.ContainsFunc(hostile, func(c *configstore.Config) bool { return c.Key() == m.Config.Key() }) {
			batch = append(batch, configstore.Mutation{Op: configstore.OpDelete, Config: m.Config})
		}
	}
	s.written = nil
	for _, c := range hostile {
		s.here(c)
		s.written = append(s.written, configstore.Mutation{Op: configstore.OpUpsert, Config: *c})
	}
	if _, err := s.Store.Apply(append(batch, s.written...)...); err != nil {
		s.TB.Fatal(err)
	}
}

// here makes an object concern this gateway, and addresses of this machine only.
func (s *siege) here(c *configstore.Config) {
	switch spec := c.Spec.(type) {
	case *networking.Gateway:
		for _, server := range spec.GetServers() {
			if port := s.ports[server.GetPort().GetNumber()]; port != 0 {
				server.Port.Number = port
			}
		}
	case *networking.ServiceEntry:
		for _, e := range spec.GetEndpoints() {
			if e.Address = strings.Replace(e.GetAddress(), "10.", "127.", 1); e.GetAddress() == "127.9.9.1" {
				e.Address = "127.255.255.9" // the gateway's
			}
		}
	}
}

// probe returns what clients of the good tenants are answered, by what they ask for.
func (s *siege) probe() map[string]string {
	out := make(map[string]string)
	for _, tenant := range randomobjects.GoodTenants() {
		for _, url := range []string{"http://%s/", "http://%s/second", "http://%s/gone", "http://%s/closed", "https://%s/second", "https://%s/closed"} {
			url = fmt.Sprintf(url, tenant+".good.test")
			out[url] = s.get(url)
		}
	}
	return out
}

// get makes a request on a connection of its own.
func (s *siege) get(url string) string {
	port := s.plain
	if strings.HasPrefix(url, "https") {
		port = s.secure
	}
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.issuer.Pool(), MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", local(port))
		},
	}
	r, err := http.NewRequestWithContext(s.context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Location"), " ", string(body), " ", err)
}

// smallLimits are limits that hostile objects exceed, and the good ones alone do not.
var smallLimits = traffic.Limits{SharedBytes: 6000, VirtualHosts: 24, Routes: 24, Clusters: 24, HashEntries: 8192, FilterChains: 40}

// TestHostileNamespace: whatever objects one namespace has, invalid ones too, and with limits that
// they exceed, a real gateway answers clients of others as it does without them, and rejects
// nothing of theirs.
func TestHostileNamespace(t *testing.T) {
	seeds := histories.Seeds(t, 2000)
	if !tier.Full() {
		seeds = seeds[:min(len(seeds), 12)]
	}
	for part, limits := range []traffic.Limits{{}, smallLimits} {
		t.Run([]string{"default limits", "small limits"}[part], func(t *testing.T) {
			t.Parallel()
			s := startSiege(t, limits, true)
			want := s.probe()
			for url, answer := range want {
				if answer[0] != '2' && answer[0] != '3' && !strings.HasSuffix(url, "/closed") {
					t.Fatalf("without them %s answers %s", url, answer)
				}
			}
			for _, seed := range seeds {
				if seed%2 == uint64(part) && !s.holds(seed, want) {
					return
				}
			}
		})
	}
}

// holds reports whether the good tenants are answered as before beside the objects of a seed.
func (s *siege) holds(seed uint64, want map[string]string) bool {
	s.TB.Helper()
	hostile, name := randomobjects.Hostile(seed), fmt.Sprint("set ", seed)
	s.set(name, hostile)
	got := s.settled(name)
	maps.Copy(got, s.probe())
	for url, answer := range got {
		if answer != want[url] {
			s.TB.Errorf("seed %d: %s answers %s, without them %s", seed, url, answer, want[url])
		}
	}
	if s.TB.Failed() {
		for _, c := range hostile {
			s.TB.Logf("%s %s created %v: %s", c.GroupVersionKind.Kind, c.Key(), c.CreationTimestamp.Unix(), protojson.Format(c.Spec))
		}
	}
	return !s.TB.Failed()
}

// settled waits until the gateway has the objects that were set with a name. It returns the errors
// of resources that it rejects; a listener of the hostile tenant at an address that is none cannot
// be built.
func (s *siege) settled(name string) map[string]string {
	s.TB.Helper()
	out, ctx := make(map[string]string), s.context()
	if err := s.Configs.Flush(ctx); err != nil {
		s.TB.Fatal(err)
	}
	if err := s.Server.WaitApplied(ctx, nil); err != nil && !errors.Is(err, ads.ErrRejected) && !errors.Is(err, ads.ErrNotUpdated) {
		s.TB.Fatal(err)
	}
	s.proxy.Await(name, func() bool { return s.get("http://set.good.test/") == "200  "+name+" <nil>" })
	faults, _ := s.Server.Faults()
	for _, f := range faults {
		if errors.Is(&f, ads.ErrRejected) {
			out[f.TypeURL+" "+f.Name] = f.Text
		}
	}
	return out
}
