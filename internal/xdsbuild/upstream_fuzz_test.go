// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// FuzzUpstream: clients accept the cluster and the load assignment under any policy, even under one
// that validation rejects.
func FuzzUpstream(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		rule, subset := &networking.TrafficPolicy{}, &networking.TrafficPolicy{}
		scramble(r, rule.ProtoReflect(), 0)
		scramble(r, subset.ProtoReflect(), 0)
		mesh := &meshconfig.MeshConfig{
			TcpKeepalive: &networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{}, LocalityLbSetting: &networking.LocalityLoadBalancerSetting{},
		}
		scramble(r, mesh.GetTcpKeepalive().ProtoReflect(), 0)
		scramble(r, mesh.GetLocalityLbSetting().ProtoReflect(), 0)
		svc := service([]registry.Resolution{
			registry.ClientSideLB, registry.DNSLB, registry.DNSRoundRobinLB, registry.Passthrough, registry.DynamicDNS, registry.Alias,
		}[r.IntN(6)])
		svc.Attributes.Name, svc.Attributes.Namespace = []string{"", "cart", "\xff"}[r.IntN(3)], strings.Repeat("n", r.IntN(300))
		svc.MeshExternal = r.IntN(2) == 0
		svc.Ports[0].Protocol = []registry.Protocol{registry.ProtocolHTTP, registry.ProtocolGRPC, registry.ProtocolTCP, registry.ProtocolUnsupported}[r.IntN(4)]
		u := xdsbuild.Upstream{
			Service: svc, Port: svc.Ports[0], Policy: xdsbuild.TrafficPolicy(rule, 80, subset, mesh), Mesh: mesh,
			SelectedByLabels: r.IntN(2) == 0, Gateway: r.IntN(2) == 0, OutliersForGRPC: r.IntN(2) == 0, Identities: [][]string{nil, {"spiffe://a/b"}, {"spiffe://" + strings.Repeat("a", 200), "", "\xff", "b"}}[r.IntN(3)],
			Client: []envoy.Client{envoy.ForEnvoy, envoy.ForGRPC}[r.IntN(2)],
			Proxy:  &registry.Proxy{Locality: "eu/a/1", Network: "n1", IPAddresses: []string{"10.9.0.1"}, Labels: registry.Labels{"a": "b"}},
			Networks: xdsbuild.NewNetworks([]registry.NetworkGateway{
				{Network: "n2", Addr: "172.16.0.1", Port: 15443}, {Network: "n2", Addr: "172.16.0.2", Port: 15443},
			}),
		}
		for i := range r.IntN(8) {
			u.Endpoints = append(u.Endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), locality([]string{"eu/a/1", "us", ""}[r.IntN(3)]),
				weight(r.Uint32()), func(e *registry.Endpoint) {
					e.Shared.Network, e.Shared.TLSMode = []string{"", "n1", "n2"}[r.IntN(3)], "istio"
				}))
		}
		if c := u.Cluster(); c != nil {
			valid(t, u.Client, c, nil)
			u.EncodedMetadata = true
			if diff := cmp.Diff(encoded(t, c), encoded(t, u.Cluster())); diff != "" {
				t.Errorf("the encoding with encoded metadata (-without +with):\n%s", diff)
			}
		}
		if a := u.LoadAssignment(); u.EDS() {
			valid(t, u.Client, a, nil)
		}
	})
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// scramble fills some fields of a message with anything.
func scramble(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.IntN(2) == 0 || depth > 6 || f.ContainingOneof() != nil && r.IntN(2) == 0 {
			continue
		}
		switch {
		case f.IsMap():
			for range r.IntN(3) {
				key, value := anything(r, f.MapKey()), anything(r, f.MapValue())
				m.Mutable(f).Map().Set(key.MapKey(), value)
			}
		case f.IsList():
			for range r.IntN(3) {
				if f.Message() != nil {
					scramble(r, m.Mutable(f).List().AppendMutable().Message(), depth+1)
				} else {
					m.Mutable(f).List().Append(anything(r, f))
				}
			}
		case f.Message() != nil:
			scramble(r, m.Mutable(f).Message(), depth+1)
		default:
			m.Set(f, anything(r, f))
		}
	}
}

func anything(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	number := []int64{0, 1, 2, 101, 80, -1, 429, math.MaxInt32, math.MinInt32}[r.IntN(9)]
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(r.IntN(values.Len())).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(number % 1_000_000)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(number))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(number))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(number))
	default:
		return protoreflect.ValueOfString([]string{"", "eu/a/1", "us/*", "*", "a", "a=b", "/etc/file", "host.example.com"}[r.IntN(8)])
	}
}
