// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// texts returns values for the fields of a service: usual values, edge cases, and values that a
// registry should reject.
func texts(fuzzed string) []string {
	return []string{
		fuzzed, "/" + strings.Repeat("s", 107), "@\x00", "", "a.com", "A.com", "*.a.com", "*", "10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "fe80::1%0", "/run/s", "@s",
		"10.0.0.0/8", "0.0.0.0", "a b", "a\nb", "\xff\xfe", "r/z/s", "a|b", "istio", "disabled",
	}
}

func FuzzResources(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, "a.example.com")
	}
	f.Add(uint64(7), "a:80")
	f.Add(uint64(8), "\x00")
	f.Fuzz(func(t *testing.T, seed uint64, fuzzed string) {
		r := rand.New(rand.NewPCG(seed, 0))
		list := texts(fuzzed)
		text := func() string { return list[r.IntN(len(list))] }
		number := func() uint32 { return []uint32{0, 1, 80, 8080, 65535, 65536, 1<<32 - 1}[r.IntN(7)] }
		protocols := []registry.Protocol{"", registry.ProtocolHTTP, registry.ProtocolGRPC, registry.ProtocolTCP, registry.ProtocolHTTP2}
		svc := &registry.Service{
			Hostname: registry.Hostname(text()), DefaultAddress: text(), Resolution: registry.Resolution(r.IntN(7)),
			ServiceAccounts: []string{text(), text()}, AutoAllocatedIPv4: text(),
			Attributes: registry.ServiceAttributes{Name: text(), Namespace: text()},
		}
		for range r.IntN(3) {
			svc.Ports = append(svc.Ports, &registry.Port{Name: text(), Number: number(), Protocol: protocols[r.IntN(5)]})
		}
		var endpoints []*registry.Endpoint
		for range r.IntN(8) {
			e := &registry.Endpoint{
				EndpointPort: number(), HealthStatus: registry.HealthStatus(r.IntN(6)), WorkloadName: text(),
				Shared: &registry.EndpointAttributes{
					Locality: text(), LbWeight: number(), TLSMode: text(), Namespace: text(), SendUnhealthyEndpoints: r.IntN(2) == 0,
				},
			}
			for range r.IntN(3) {
				e.Addresses = append(e.Addresses, text())
			}
			if len(svc.Ports) > 0 {
				e.ServicePortName = svc.Ports[0].Name
			}
			endpoints = append(endpoints, e)
		}
		shuffled := slices.Clone(endpoints)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		var hosts []*routev3.VirtualHost
		for _, client := range []envoy.Client{envoy.ForEnvoy, envoy.ForGRPC} {
			for _, p := range svc.Ports {
				cluster := xdsbuild.Cluster(svc, p, endpoints, []string{text()}, client)
				valid(t, client, cluster, nil)
				a, b := xdsbuild.LoadAssignment(svc, p, endpoints, client), xdsbuild.LoadAssignment(svc, p, shuffled, client)
				valid(t, client, a, b)
				before := xdsbuild.Prepare(p, shuffled[:r.IntN(len(shuffled)+1)], nil)
				sameEncoding(t, a, xdsbuild.Prepare(p, endpoints, before).Encode(svc.Hostname, nil, client))
				valid(t, envoy.ForGRPC, xdsbuild.APIListener(string(svc.Hostname), svc, p), nil)
				valid(t, envoy.ForGRPC, xdsbuild.GRPCRoutes(svc, p), nil)
				if vh := xdsbuild.VirtualHost(svc, p, append(xdsbuild.VIPs(svc), text())); vh != nil {
					hosts = append(hosts, vh)
				}
			}
		}
		rc := xdsbuild.HTTPRoutes(80, hosts)
		valid(t, envoy.ForEnvoy, rc, nil)
	})
}

// valid checks that clients accept a resource and that it encodes, and to the same
// bytes as another one, if that is given.
func valid(t *testing.T, client envoy.Client, m, same proto.Message) {
	t.Helper()
	if !m.ProtoReflect().IsValid() {
		return
	}
	if err := accepted(client, m); err != nil {
		t.Error(err)
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	if same == nil {
		return
	}
	other, err := proto.MarshalOptions{Deterministic: true}.Marshal(same)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	if !bytes.Equal(encoded, other) {
		t.Errorf("another order of endpoints gives another %T", m)
	}
}

// sameEncoding checks an encoding that was put together against the message.
func sameEncoding(t *testing.T, want *endpointv3.ClusterLoadAssignment, got []byte) {
	t.Helper()
	if want == nil {
		if got != nil {
			t.Errorf("%d bytes for no assignment", len(got))
		}
		return
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, encoded) {
		t.Errorf("encoded\n%x\nwant\n%x", got, encoded)
	}
}

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// accepted returns an error if clients of a kind would reject a resource.
func accepted(client envoy.Client, m proto.Message) error {
	if client == envoy.ForGRPC {
		return envoycheck.GRPC(m)
	}
	return envoycheck.Envoy(m)
}
