// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdscheck"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// multiplyLimits are far below the defaults, so that little is enough to exceed them.
func multiplyLimits() Limits {
	return Limits{
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
	for _, schema := range istio.Schemas().All() {
		if schema.GroupVersionKind.Kind == kind {
			m.configs.add(schema.GroupVersionKind, key, spec(m.tb, text, schema.NewSpec()))
			return
		}
	}
	m.tb.Fatalf("no kind %s", kind)
}

func (m *multiplying) state(limits Limits) *state {
	return newState(newIndex(m.configs, newSettings(Options{Limits: limits})), newNamedWorld(m.services...))
}

// multiplyingProxies are a router, a sidecar of evil, one of good, and a gRPC client.
func multiplyingProxies() map[string]*proxy {
	return map[string]*proxy{
		"router": edge(), "sidecar of evil": {namespace: "evil"}, "sidecar of good": {namespace: "good"},
		"gRPC": {namespace: "good", role: grpcClient},
	}
}

// each calls a function with all that a proxy can be sent.
func (m *multiplying) each(st *state, p *proxy, f func(typeURL, name string, m proto.Message, err error)) {
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType, envoy.ClusterType} {
		names := st.names(p, typeURL)
		if p.role == grpcClient {
			names = nil
			for _, h := range m.hosts {
				names = append(names, envoy.ListenerName(80, h), envoy.ClusterName(80, h))
			}
		} else if typeURL == envoy.RouteType && p.role == sidecarProxy {
			names = append(names, "80")
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			built, err := st.resource(p, typeURL, name)
			f(typeURL, name, built, err)
		}
	}
}

// partsOf returns what of the resources is of a tenant, but for clients of evil's, whose
// own policies count for all services; how many bytes each client has; and which objects
// are left out, "Kind namespace/name".
func (m *multiplying) partsOf(st *state, tenant string) (parts map[string]string, bytes map[string]int, leftOut map[string]bool) {
	m.tb.Helper()
	parts, bytes, leftOut = make(map[string]string), make(map[string]int), make(map[string]bool)
	host := tenant + ".example.com"
	for client, p := range multiplyingProxies() {
		m.each(st, p, func(typeURL, name string, r proto.Message, err error) {
			key := client + " " + typeURL[strings.LastIndex(typeURL, ".")+1:] + " " + name
			for text := range strings.SplitSeq(fmt.Sprint(err), "\n") {
				if object, _, ok := strings.Cut(text, ": "); ok {
					leftOut[object] = true
				}
			}
			if r == nil {
				return
			}
			bytes[client] += proto.Size(r)
			check := xdscheck.Envoy
			if p.role == grpcClient {
				check = xdscheck.GRPC
			}
			if err := check(r); err != nil {
				m.tb.Errorf("%s: %.300v", key, err)
			}
			add := func(part proto.Message) {
				if text := fmt.Sprint(part); strings.Contains(text, host) && client != "sidecar of evil" {
					parts[key+" "+text[:min(100, len(text))]] = text
				}
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
	return parts, bytes, leftOut
}

// TestMultiplications has objects of one tenant that multiply with one another. What
// clients have stays below a bound, is what it was of the other tenant, and what is
// left out is reported with the object's name, by the resources and by Ineffective.
func TestMultiplications(t *testing.T) {
	for name, tc := range multiplications {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && slices.Contains(longMultiplications, name) {
				t.Skip("takes ten seconds with the race detector")
			}
			m := newMultiplying(t)
			want, _, _ := m.partsOf(m.state(multiplyLimits()), "good")
			if len(want) < 10 {
				t.Fatalf("only %d parts", len(want))
			}
			tc.add(m)
			size := 0
			for _, c := range m.configs[m.before:] {
				size += proto.Size(c.Spec)
			}
			st := m.state(multiplyLimits())
			got, bytes, leftOut := m.partsOf(st, "good")
			for key, text := range want {
				if got[key] != text {
					t.Errorf("%s is another", key)
				}
			}
			for client, n := range bytes {
				if n > multiplied {
					t.Errorf("%d bytes became %d of the %s, want at most %d", size, n, client, multiplied)
				}
			}
			reported := make(map[string]bool)
			for _, e := range st.ineffective() {
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
