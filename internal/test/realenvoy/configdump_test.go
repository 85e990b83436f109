// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
)

var seed = flag.Uint64("dump", 1, "the seed of TestConfigDump")

// dumped returns the resources of a config dump, by kind and name: of load assignments the
// addresses, as an Envoy shows its own form of them.
func dumped(tb testing.TB, data []byte) map[string]any {
	tb.Helper()
	dump := &admin.ConfigDump{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, dump); err != nil {
		tb.Fatalf("%v: %s", err, data)
	}
	out := make(map[string]any)
	add := func(kind, name string, packed *anypb.Any) {
		if packed == nil {
			return
		}
		m, err := packed.UnmarshalNew()
		if err != nil {
			tb.Fatal(err)
		}
		switch m := m.(type) {
		case *clusterv3.Cluster:
			name = m.GetName()
		case *routev3.RouteConfiguration:
			name = m.GetName()
		case *endpointv3.ClusterLoadAssignment:
			if addresses := addressesIn(m); len(addresses) > 0 {
				out[kind+" "+m.GetClusterName()] = addresses
			}
			return
		}
		out[kind+" "+name] = m
	}
	for _, packed := range dump.GetConfigs() {
		part, err := packed.UnmarshalNew()
		if err != nil {
			tb.Fatal(err)
		}
		switch part := part.(type) {
		case *admin.ClustersConfigDump:
			for _, c := range part.GetDynamicActiveClusters() {
				add("cluster", "", c.GetCluster())
			}
			for _, c := range part.GetDynamicWarmingClusters() {
				add("cluster", "", c.GetCluster())
			}
		case *admin.ListenersConfigDump:
			for _, l := range part.GetDynamicListeners() {
				add("listener", l.GetName(), l.GetActiveState().GetListener())
				add("listener", l.GetName(), l.GetWarmingState().GetListener())
			}
		case *admin.RoutesConfigDump:
			for _, r := range part.GetDynamicRouteConfigs() {
				add("route", "", r.GetRouteConfig())
			}
		case *admin.SecretsConfigDump:
			for _, s := range part.GetDynamicActiveSecrets() {
				add("secret", s.GetName(), s.GetSecret())
			}
		case *admin.EndpointsConfigDump:
			for _, e := range part.GetDynamicEndpointConfigs() {
				add("endpoints", "", e.GetEndpointConfig())
			}
		}
	}
	return out
}

func addressesIn(m *endpointv3.ClusterLoadAssignment) (out []string) {
	for _, l := range m.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			a := e.GetEndpoint().GetAddress().GetSocketAddress()
			out = append(out, fmt.Sprint(a.GetAddress(), ":", a.GetPortValue()))
		}
	}
	slices.Sort(out)
	return out
}

// shows checks that the control plane's report of the only proxy agrees with the proxy's own.
func (s *shared) shows(step int) {
	s.TB.Helper()
	if err := errors.Join(s.Configs.Flush(s.context()), s.Server.Flush(s.context())); err != nil {
		s.TB.Fatal(err)
	}
	if err := s.Server.WaitApplied(s.context(), nil); err != nil && !errors.Is(err, ads.ErrRejected) {
		s.TB.Fatal(err)
	}
	var own, shown map[string]any
	same := func() bool {
		own = dumped(s.TB, s.proxy.Admin("/config_dump?include_eds"))
		for p := range s.Server.Resources(nil) {
			data, err := csds.ConfigDump(p)
			if err != nil {
				s.TB.Fatal(err)
			}
			if strings.Contains(string(data), "PRIVATE KEY") {
				s.TB.Fatal("a key is shown")
			}
			shown = dumped(s.TB, data)
		}
		return cmp.Equal(own, shown, protocmp.Transform())
	}
	for range 100 { // an Envoy answers before its listeners are warm
		if same() {
			return
		}
		s.proxy.Stats("^server.uptime$")
	}
	s.TB.Errorf("step %d (-the Envoy +the plane):\n%s", step, cmp.Diff(own, shown, protocmp.Transform()))
}

// TestConfigDump: the control plane's report of an Envoy's configuration agrees with the Envoy's
// own, resource by resource, after random changes, including some that only that Envoy rejects.
func TestConfigDump(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		eachProtocol(t, func(t *testing.T, delta bool) {
			t.Helper()
			t.Log(program)
			randomDumps(t, program, delta)
		})
	}
}

// away is a Gateway on an address that no Envoy here can have.
const away = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: away, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: PORT, name: tcp, protocol: TCP}, bind: 192.0.2.1, hosts: ["*"]}
  - {port: {number: 1023, name: http, protocol: HTTP}, bind: 192.0.2.1, hosts: ["*"]}
`

func randomDumps(t *testing.T, program envoyproxy.Program, delta bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(*seed, 0))
	s := newShared(t)
	issuer := newAuthority(t)
	s.vault.set("ingress", "kubernetes://edge", issuer.secret("*.example.com"))
	s.Apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: secure, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: PORT, name: https, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*"], tls: {mode: SIMPLE, credentialName: edge}}
`, "PORT", strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0])))
	s.proxy = envoyproxy.Start(t, envoyproxy.Options{
		Program: program, Server: s.Address, Delta: delta, Node: edgeNode(),
	})
	s.proxy.AwaitReady()
	refused, kinds := false, make(map[string]bool)
	for step := range 30 {
		name := fmt.Sprint("t", random.IntN(5))
		switch n := random.IntN(14); {
		case n < 3:
			s.route(name, "prefix: /"+fmt.Sprint(random.IntN(100)), "hello")
		case n < 5:
			s.route(name, "regex: "+strconv.Quote(largeExpression+fmt.Sprint(random.IntN(9))), "never")
		case n < 9:
			s.Apply(service(name, "HTTP", fmt.Sprintf("{address: 127.0.0.%d, ports: {p: %d}}", 1+random.IntN(3), 1000+random.IntN(3))))
		case n == 9:
			s.vault.set("ingress", "kubernetes://edge", issuer.secret("*.example.com"))
		case n == 10 && s.Configs.Get(istio.VirtualService, name, "ingress") != nil:
			s.Delete(istio.VirtualService, "ingress", name)
		case n == 12:
			s.Apply(away, "PORT", strconv.Itoa(1024+random.IntN(3)))
		case n == 13 && s.Configs.Get(istio.Gateway, "away", "ingress") != nil:
			s.Delete(istio.Gateway, "ingress", "away")
		case n == 11 && s.Configs.Get(istio.ServiceEntry, name, "ingress") != nil:
			s.Delete(istio.ServiceEntry, "ingress", name)
		}
		if random.IntN(3) == 0 {
			continue // with the next change
		}
		s.shows(step)
		refused = refused || len(s.leftOut()) > 0
		for what := range dumped(t, s.proxy.Admin("/config_dump?include_eds")) {
			kind, _, _ := strings.Cut(what, " ")
			kinds[kind] = true
		}
	}
	if want := map[string]bool{"cluster": true, "endpoints": true, "listener": true, "route": true, "secret": true}; !cmp.Equal(kinds, want) || !refused {
		t.Errorf("the history had %v, refusals: %v", kinds, refused)
	}
}
