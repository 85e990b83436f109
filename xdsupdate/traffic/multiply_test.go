// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// multiplyLimits are far below the defaults, so that little is enough to exceed them.
func multiplyLimits() traffic.Limits {
	return traffic.Limits{
		Matches: 500, Routes: 500, RouteBytes: 64 << 10, RepeatedBytes: 256 << 10, SharedBytes: 1 << 20, VirtualHosts: 1000,
		Clusters: 200, HashEntries: 1 << 16, FilterChains: 300, Imports: 500,
	}
}

// multiplied is what a client has of all types when limits hold: less than this.
const multiplied = 4 << 20

// multiplying are the objects of two tenants: those of good, one of everything, are
// there before those of evil.
type multiplying struct {
	tb       testing.TB
	configs  configList
	services []*registry.Service
	before   int
	hosts    []registry.Hostname // subscribed to by gRPC clients and sidecars
}

func newMultiplying(tb testing.TB) *multiplying {
	tb.Helper()
	m := &multiplying{tb: tb}
	m.service("good", "good.example.com", 80, 9000)
	for _, o := range [][3]string{
		{"VirtualService", "good/v", `{"hosts":["good.example.com"],"gateways":["mesh","ingress/edge"],
			"http":[{"match":[{"uri":{"prefix":"/a"}}],"route":[{"destination":{"host":"good.example.com","subset":"v1"}}]}],
			"tls":[{"match":[{"sniHosts":["good.example.com"]}],"route":[{"destination":{"host":"good.example.com","port":{"number":9000}}}]}]}`},
		{"DestinationRule", "good/r", `{"host":"good.example.com","subsets":[{"name":"v1"}]}`},
		{"Gateway", "ingress/edge", `{"selector":{"app":"edge"},"servers":[
			{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*"]},
			{"port":{"number":8443,"name":"tls","protocol":"TLS"},"hosts":["*"],"tls":{"mode":"PASSTHROUGH"}},
			{"port":{"number":15443,"name":"auto","protocol":"TLS"},"hosts":["*.example.com"],"tls":{"mode":"AUTO_PASSTHROUGH"}}]}`},
	} {
		m.object(o[0], o[1], o[2])
	}
	m.before = len(m.configs)
	return m
}

func (m *multiplying) service(namespace string, host registry.Hostname, ports ...uint32) {
	s := testService(namespace, host, ports...)
	s.Resolution, s.CreationTime = registry.ClientSideLB, time.Unix(int64(len(m.services)), 0)
	m.services = append(m.services, s)
	m.hosts = append(m.hosts, host)
}

func (m *multiplying) object(kind, key, text string) {
	m.tb.Helper()
	m.configs.add(schemaOf(m.tb, kind).GroupVersionKind, key, spec(m.tb, text, schemaOf(m.tb, kind).NewSpec()))
}

func (m *multiplying) stage(limits traffic.Limits) *scene {
	m.tb.Helper()
	return stage(m.tb, traffic.Options{Limits: limits}, m.configs, populate(m.services...))
}

// multiplyingClients are a router, a sidecar of evil, one of good, and a gRPC client.
func multiplyingClients() map[string]*core.Node {
	return map[string]*core.Node{
		"router": edge(), "sidecar of evil": in("sidecar", "evil"), "sidecar of good": in("sidecar", "good"), "gRPC": in("grpc", "good"),
	}
}

// each calls a function with all that a client can be sent, and what is left out of it.
func (m *multiplying) each(s *scene, n *core.Node, f func(typeURL, name string, m proto.Message, failed string)) {
	m.tb.Helper()
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType, envoy.ClusterType} {
		var names []string
		switch {
		case isGRPC(n):
			for _, h := range m.hosts {
				names = append(names, envoy.ListenerName(80, h), envoy.ClusterName(80, h))
			}
		case strings.HasPrefix(n.GetId(), "sidecar"):
			switch typeURL {
			case envoy.RouteType:
				names = append(s.ask(n, typeURL).names, "80")
			case envoy.ListenerType:
				continue
			}
		}
		got := s.ask(n, typeURL, names...)
		for _, name := range got.names {
			f(typeURL, name, got.resources[name], got.failed[name])
			delete(got.failed, name)
		}
		for name, failed := range got.failed {
			f(typeURL, name, nil, failed)
		}
	}
}

// partsOf returns what of the resources is of a tenant, but for clients of evil's, whose
// own policies count for all services; how many bytes each client has; and which objects
// are left out, "Kind namespace/name".
func (m *multiplying) partsOf(s *scene, tenant string) (parts map[string]string, sizes map[string]int, leftOut map[string]bool) {
	m.tb.Helper()
	parts, sizes, leftOut = make(map[string]string), make(map[string]int), make(map[string]bool)
	host := tenant + ".example.com"
	for client, n := range multiplyingClients() {
		m.each(s, n, func(typeURL, name string, r proto.Message, failed string) {
			key := client + " " + typeURL[strings.LastIndex(typeURL, ".")+1:] + " " + name
			for text := range strings.SplitSeq(failed, "\n") {
				if object, _, ok := strings.Cut(text, ": "); ok {
					leftOut[object] = true
				}
			}
			if r == nil {
				return
			}
			sizes[client] += proto.Size(r)
			add := func(part proto.Message) {
				// Printing a part takes long, and most are of others.
				if client == "sidecar of evil" || !bytes.Contains(m.wire(part), []byte(host)) {
					return
				}
				text := fmt.Sprint(part)
				parts[key+" "+text[:min(100, len(text))]] = text
			}
			switch r := r.(type) {
			case *listenerv3.Listener:
				for _, c := range r.GetFilterChains() {
					add(c)
				}
			case *routev3.RouteConfiguration:
				for _, h := range r.GetVirtualHosts() {
					add(h)
				}
			default:
				add(r)
			}
		})
	}
	return parts, sizes, leftOut
}

// wire returns a message as it is sent, with all texts in it as they are.
func (m *multiplying) wire(part proto.Message) []byte {
	m.tb.Helper()
	out, err := proto.Marshal(part)
	if err != nil {
		m.tb.Fatal(err)
	}
	return out
}

// TestMultiplications has objects of one tenant that multiply with one another. What
// clients have stays below a bound, is what it was of the other tenant, and what is
// left out is reported with the object's name, by the resources and by Ineffective.
func TestMultiplications(t *testing.T) {
	for name, tc := range multiplications {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(longMultiplications, name) {
				tier.NotShort(t, "multiplications that take seconds")
			}
			m := newMultiplying(t)
			want, _, _ := m.partsOf(m.stage(multiplyLimits()), "good")
			if len(want) < 10 {
				t.Fatalf("only %d parts", len(want))
			}
			tc.add(m)
			size := 0
			for _, c := range m.configs[m.before:] {
				size += proto.Size(c.Spec)
			}
			s := m.stage(multiplyLimits())
			got, sizes, leftOut := m.partsOf(s, "good")
			for key, text := range want {
				if got[key] != text {
					t.Errorf("%s is another", key)
				}
			}
			for client, n := range sizes {
				if n > multiplied {
					t.Errorf("%d bytes became %d of the %s, want at most %d", size, n, client, multiplied)
				}
			}
			reported := make(map[string]bool)
			for _, e := range s.policies.Ineffective() {
				if strings.Contains(e.Reason, " more than ") {
					reported[e.Kind.Kind+" "+e.Namespace+"/"+e.Name] = true
				}
			}
			for object := range reported {
				if tc.left == "" || !strings.HasPrefix(object, tc.left+" evil/") {
					t.Errorf("%s is left out", object)
				}
			}
			if len(reported) == 0 && tc.left != "" {
				t.Error("nothing is left out")
			}
			for object := range leftOut {
				if !reported[object] {
					t.Errorf("%s is left out, and not ineffective", object)
				}
			}
		})
	}
}
