// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// servedPorts are the ports of all gRPC servers.
var servedPorts = []uint32{80, 9000}

// randomServer returns the workload of the server of a namespace, and puts it into a population.
func (d policyDice) randomServer(p *population, n int) routesim.Proxy {
	who := routesim.Proxy{Namespace: fmt.Sprint("n", n), Labels: map[string]string{"app": pick(d.Rand, []string{"edge", "other"})}}
	if d.chance(30) {
		who.Labels["security.istio.io/tlsMode"] = pick(d.Rand, []string{"istio", "istio", "disabled"})
	}
	endpoint := serverAddress(n)
	for key, value := range who.Labels {
		endpoint += " " + key + "=" + value
	}
	svc := testService(who.Namespace, registry.Hostname(fmt.Sprintf("server.%s.svc.cluster.local", who.Namespace)), servedPorts...)
	p.services = append(p.services, svc)
	p.place(svc, endpoint)
	return who
}

func serverAddress(n int) string { return fmt.Sprintf("10.7.0.%d", n+1) }

// doors are those of the ports of a server.
func (s *scene) doors(n int, who routesim.Proxy) map[uint32]*routesim.Door {
	s.t.Helper()
	out := map[uint32]*routesim.Door{}
	client := at(clientOf("grpc", who), serverAddress(n))
	var names []string
	for _, port := range servedPorts {
		names = append(names, fmt.Sprintf("xds.istio.io/grpc/lds/inbound/0.0.0.0:%d", port))
	}
	answer := s.ask(client, envoy.ListenerType, names...)
	for i, port := range servedPorts {
		l, _ := answer.resources[names[i]].(*listenerv3.Listener)
		door, err := routesim.NewDoor(l)
		s.must(err)
		out[port] = door
	}
	return out
}

// peersOfServers are PeerAuthentications of namespaces and the root, the oldest first, of which validation takes each.
func (d policyDice) peersOfServers(namespaces int) (out configList) {
	schema, _ := istio.Schemas().Find(istio.PeerAuthentication)
	mode := func() *security.PeerAuthentication_MutualTLS {
		if d.chance(20) {
			return nil
		}
		return &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_Mode(d.IntN(4))} //nolint:gosec // four modes
	}
	for i := 0; i < 2*namespaces; {
		spec := &security.PeerAuthentication{Mtls: mode()}
		if d.chance(50) {
			spec.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d.Rand, []string{"edge", "other"})}}
			for _, port := range servedPorts {
				if d.chance(30) {
					if spec.PortLevelMtls == nil {
						spec.PortLevelMtls = map[uint32]*security.PeerAuthentication_MutualTLS{}
					}
					spec.PortLevelMtls[port] = &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_Mode(d.IntN(4))} //nolint:gosec // four modes
				}
			}
		}
		namespace := fmt.Sprint("n", d.IntN(namespaces))
		if d.chance(3) {
			namespace = routesim.RootNamespace
		}
		out.add(istio.PeerAuthentication, fmt.Sprintf("%s/p%d", namespace, i), spec)
		if _, err := schema.Check(*out[len(out)-1]); err != nil {
			out = out[:len(out)-1]
			continue
		}
		i++
	}
	return out
}

// readServer returns objects as they are read by the API's documentation.
func readServer(peers, policies configList) *routesim.Server {
	out := &routesim.Server{Policies: readPolicies(policies, false)}
	for _, c := range peers {
		out.Peers = append(out.Peers, &routesim.PeerAuthentication{Namespace: c.Namespace, Name: c.Name, PeerAuthentication: c.Spec.(*security.PeerAuthentication)})
	}
	return out
}

// TestReadingsOfServersAgree: gRPC servers take connections and calls by what they are sent as PeerAuthentications and
// AuthorizationPolicies say.
func TestReadingsOfServersAgree(t *testing.T) {
	t.Parallel()
	const namespaces, calls = 40, 250
	scenes := uint64(tier.Share(10))
	counts := map[string]int{}
	for seed := range scenes {
		d := policyDice{rand.New(rand.NewPCG(seed, 28))}
		policies, peers, services := d.randomPolicies(namespaces), d.peersOfServers(namespaces), populate()
		var servers []routesim.Proxy
		for n := range namespaces {
			servers = append(servers, d.randomServer(services, n))
		}
		all := append(slices.Clone(peers), policies...)
		s := given(t, traffic.Options{Mesh: authorizationMesh()}, istio.Schemas(), all, services)
		read := readServer(peers, policies)
		for n, who := range servers {
			doors := s.doors(n, who)
			for range calls {
				c, port, by := d.call(false), pick(d.Rand, servedPorts), routesim.Transport(d.IntN(3))
				c.To, c.Claims, c.Metadata = netip.AddrPortFrom(c.To.Addr(), uint16(port)), nil, nil //nolint:gosec // a port
				want := read.Decide(who, port, by, c)
				got, err := doors[port].Enter(by, c)
				s.must(err)
				if got.Admitted != want.Admitted {
					t.Fatalf("scene %d, server %+v, port %d, by %d, call %+v, request %+v: sent %+v, want %+v\n%s", seed, who, port, by, c, c.Request, got, want, describePolicies(all, who.Namespace))
				}
				counts[fmt.Sprintf("by %d, admitted %t", by, got.Admitted)]++
			}
		}
		s.close()
	}
	t.Log(counts)
	for by, least := range map[routesim.Transport]int{routesim.PlainText: 400, routesim.MutualTLS: 400} {
		if counts[fmt.Sprintf("by %d, admitted true", by)] < int(scenes)*least {
			t.Errorf("the calls tell little: %v", counts)
		}
	}
}
