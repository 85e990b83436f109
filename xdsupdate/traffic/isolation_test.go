// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

var poisonAll = flag.Bool("poison", false, "poison each field with every value, not with one")

// tenants are namespaces with the same objects. They share the ports of a gateway, and
// of each sidecar.
const (
	neighbour = "good"
	culprit   = "evil"
)

// tenantObjects are a tenant's objects by kind; TENANT stands for its name.
var tenantObjects = []struct {
	kind configstore.GroupVersionKind
	spec string
}{
	{istio.ServiceEntry, `{"hosts": ["TENANT.example.com"], "addresses": ["240.0.0.NUMBER"], "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": [{"number": 80, "name": "http", "protocol": "HTTP"}, {"number": 9000, "name": "tcp", "protocol": "TCP"}],
		"endpoints": [{"address": "10.0.NUMBER.1", "labels": {"version": "v1"}, "locality": "eu/a/1"}]}`},
	{istio.WorkloadEntry, `{"address": "10.1.NUMBER.1", "labels": {"app": "TENANT"}, "locality": "eu/b/1"}`},
	{istio.DestinationRule, `{"host": "TENANT.example.com", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": MOMENT}},
		"loadBalancer": {"consistentHash": {"httpHeaderName": "x-user"}}}, "subsets": [{"name": "v1", "labels": {"version": "v1"}}]}`},
	{istio.VirtualService, `{"hosts": ["TENANT.example.com"], "gateways": ["mesh", "edge"], "http": [
		{"match": [{"uri": {"prefix": "/a"}}], "timeout": "MOMENTs", "route": [{"destination": {"host": "TENANT.example.com", "subset": "v1", "port": {"number": 80}}}]},
		{"route": [{"destination": {"host": "TENANT.example.com", "port": {"number": 80}}}]}],
		"tls": [{"match": [{"sniHosts": ["TENANT.example.com"], "port": 8443}], "route": [{"destination": {"host": "TENANT.example.com", "port": {"number": 9000}}}]}]}`},
	{istio.Gateway, `{"selector": {"app": "edge"}, "servers": [
		{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["TENANT.example.com"]},
		{"port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "hosts": ["TENANT.example.com"], "tls": {"mode": "SIMPLE", "credentialName": "TENANT"}},
		{"port": {"number": 8443, "name": "tls", "protocol": "TLS"}, "hosts": ["TENANT.example.com"], "tls": {"mode": "PASSTHROUGH"}}]}`},
	{istio.Sidecar, `{"egress": [{"hosts": ["*/*"]}], "workloadSelector": {"labels": {"app": "nobody"}}}`},
	{istio.AuthorizationPolicy, `{"action": "DENY", "selector": {"matchLabels": {"app": "edge"}}, "rules": [
		{"from": [{"source": {"namespaces": ["a"], "ipBlocks": ["10.0.0.MOMENT"]}}], "to": [{"operation": {"paths": ["/a", "/{*}"], "ports": ["80"]}}],
			"when": [{"key": "request.headers[a]", "values": ["b"]}]}]}`},
	{istio.RequestAuthentication, `{"selector": {"matchLabels": {"app": "edge"}}, "jwtRules": [{"issuer": "TENANT", "audiences": ["MOMENT"],
		"jwks": "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\",\"y\":\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}", "fromHeaders": [{"name": "x-jwt", "prefix": "p "}],
		"outputClaimToHeaders": [{"header": "x-a", "claim": "a"}]}]}`},
}

// selecting is a second ServiceEntry, whose endpoints are WorkloadEntries.
const selecting = `{"hosts": ["vm.TENANT.example.com"], "location": "MESH_INTERNAL", "resolution": "STATIC",
	"ports": [{"number": 80, "name": "http", "protocol": "HTTP"}], "workloadSelector": {"labels": {"app": "TENANT"}}}`

// tenantConfig is an object of a tenant, as it is at a moment.
func tenantConfig(tb testing.TB, kind configstore.GroupVersionKind, name, spec, tenant string, moment int) configstore.Config {
	tb.Helper()
	number, created := "1", time.Unix(1, 0)
	if tenant == culprit {
		number, created = "2", time.Unix(2, 0) // of two objects that conflict the older one counts
	}
	text := strings.NewReplacer("TENANT", tenant, "NUMBER", number, "MOMENT", fmt.Sprint(moment)).Replace(spec)
	schema, _ := istio.Schemas().Find(kind)
	message := schema.NewSpec()
	if err := protojson.Unmarshal([]byte(text), message); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: tenant, Name: name, CreationTimestamp: created}, Spec: message,
	}
}

func configsOf(tb testing.TB, tenant string, moment int) []configstore.Config {
	tb.Helper()
	out := []configstore.Config{tenantConfig(tb, istio.ServiceEntry, "vm", selecting, tenant, moment)}
	for _, o := range tenantObjects {
		out = append(out, tenantConfig(tb, o.kind, "edge", o.spec, tenant, moment))
	}
	return out
}

// town is a control plane that validates nothing, with a gateway, a sidecar and a gRPC
// client.
type town struct {
	t        testing.TB
	store    *storememory.Controller
	server   *ads.Server
	policies *traffic.Policies
	clients  map[string]*xdstest.Client
	// answer is xdstest.ClientOptions.Answer of the clients.
	answer func(xdstest.Response) error
	stop   func()
}

func startTown(tb testing.TB, configs []configstore.Config, options ads.Options) *town {
	tb.Helper()
	return startPickyTown(tb, configs, options, nil)
}

// startPickyTown is startTown with clients that reject what answer returns an error for.
func startPickyTown(tb testing.TB, configs []configstore.Config, options ads.Options, answer func(xdstest.Response) error) *town {
	tb.Helper()
	w := &town{t: tb, answer: answer, store: storememory.NewController(storememory.Make(lenientSchemas())), clients: make(map[string]*xdstest.Client)}
	registries := aggregate.NewController()
	w.policies = traffic.New(w.store)
	options.Providers, options.Debounce.After = []ads.Provider{w.policies}, -1
	w.server = ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(w.store, updater) })
	w.set(configs...)
	grpcServer := grpc.NewServer()
	w.server.Register(grpcServer)
	conn, end := testserver.ServeMemory(tb, grpcServer, w.server.Run)
	w.stop = sync.OnceFunc(func() {
		for _, c := range w.clients {
			c.Close()
		}
		end()
	})
	tb.Cleanup(w.stop)
	w.connect(conn, "router", map[string]any{"NAMESPACE": "ingress", "LABELS": map[string]any{"app": "edge"}}, map[string][]string{
		envoy.ClusterType: nil, envoy.ListenerType: nil, envoy.RouteType: nil, envoy.LoadAssignmentType: nil,
	})
	w.connect(conn, "sidecar", map[string]any{"NAMESPACE": "third"}, map[string][]string{
		envoy.ClusterType: nil, envoy.RouteType: {"80"}, envoy.LoadAssignmentType: nil,
	})
	cluster := "outbound|80||" + neighbour + ".example.com"
	w.connect(conn, "grpc", map[string]any{"NAMESPACE": "third", "GENERATOR": "grpc"}, map[string][]string{
		envoy.ListenerType: {neighbour + ".example.com:80"}, envoy.RouteType: {cluster},
		envoy.ClusterType: {cluster}, envoy.LoadAssignmentType: {cluster},
	})
	w.applied()
	return w
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// set writes objects that nothing validates.
func (w *town) set(configs ...configstore.Config) {
	w.t.Helper()
	for _, c := range configs {
		_, err := configstore.Upsert(w.store, c)
		w.must(err)
	}
	w.store.Drain()
}

// refuses reports whether the store does not take an object even without validation:
// text that is not UTF-8 cannot be encoded.
func (w *town) refuses(c configstore.Config) bool {
	_, err := configstore.Upsert(w.store, c)
	return errors.Is(err, configstore.ErrInvalid)
}

func (w *town) connect(conn *grpc.ClientConn, name string, metadata map[string]any, subscriptions map[string][]string) {
	w.t.Helper()
	fields, err := structpb.NewStruct(metadata)
	w.must(err)
	kind := name
	if name == "grpc" {
		kind = "sidecar"
	}
	c := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true, NoHistory: true, Answer: w.answer, Node: &core.Node{
		Id: fmt.Sprintf("%s~10.9.0.%d~%s.x~x", kind, len(w.clients)+1, name), Metadata: fields,
	}})
	w.clients[name] = c
	w.must(c.Connect(context.Background()))
	for typeURL, names := range subscriptions {
		w.must(c.Subscribe(typeURL, names...))
	}
}

// applied waits until the clients have accepted what there is.
func (w *town) applied() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	for name, c := range w.clients {
		types := []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.RouteType, envoy.ListenerType}
		if name == "sidecar" {
			types = types[:3] // its listeners are the program's
		}
		for _, typeURL := range types {
			w.must(c.Await(ctx, func(s xdstest.State) bool { return len(s.Resources(typeURL)) > 0 }))
		}
	}
	err := w.server.WaitApplied(ctx, nil)
	if !errors.Is(err, ads.ErrNotUpdated) && (w.answer == nil || !errors.Is(err, ads.ErrRejected)) { // a tenant's own cluster
		w.must(err)
	}
}

// partsOf returns what clients have of a tenant: its resources, and its parts of
// those that tenants share.
func (w *town) partsOf(tenant string) map[string]string {
	w.t.Helper()
	out := make(map[string]string)
	for client, c := range w.clients {
		state := c.State()
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
			for name, r := range state.Resources(typeURL) {
				key := client + " " + typeURL[strings.LastIndex(typeURL, ".")+1:] + " " + name
				message, err := r.Message()
				if err != nil {
					w.t.Fatalf("%s: %v, %d bytes", key, err, len(r.Any.GetValue()))
				}
				if strings.Contains(name, tenant) {
					out[key] = string(r.Any.GetValue())
				}
				switch m := message.(type) {
				case *listenerv3.Listener:
					w.partsOfListener(out, key, tenant, m)
				case *routev3.RouteConfiguration:
					if withoutMisdirected(m); strings.Contains(name, tenant) {
						out[key] = w.bytes(m)
					}
					w.partsOfRoutes(out, key, tenant, m)
				}
			}
		}
	}
	return out
}

// withoutMisdirected removes what a route configuration says of the hosts of others.
func withoutMisdirected(rc *routev3.RouteConfiguration) {
	rc.VirtualHosts = slices.DeleteFunc(rc.GetVirtualHosts(), func(h *routev3.VirtualHost) bool {
		routes := h.GetRoutes()
		return len(routes) == 1 && routes[0].GetDirectResponse().GetStatus() == http.StatusMisdirectedRequest
	})
}

func (w *town) partsOfListener(out map[string]string, key, tenant string, l *listenerv3.Listener) {
	for i, chain := range l.GetFilterChains() {
		names := chain.GetFilterChainMatch().GetServerNames()
		if len(names) == 0 || strings.Contains(strings.Join(names, " "), tenant) {
			out[fmt.Sprint(key, " chain ", names, len(names) == 0 && i > 0)] = w.bytes(chain)
		}
	}
	if l.GetApiListener() == nil {
		l.FilterChains = nil
		if strings.HasPrefix(l.GetName(), "0.0.0.0_") {
			out[key+" shell"] = w.bytes(l)
		}
	}
}

func (w *town) partsOfRoutes(out map[string]string, key, tenant string, rc *routev3.RouteConfiguration) {
	for _, h := range rc.GetVirtualHosts() {
		if strings.Contains(strings.Join(h.GetDomains(), " "), tenant+".example.com") {
			out[key+" host "+h.GetName()] = w.bytes(h)
		}
	}
}

func (w *town) bytes(m proto.Message) string {
	w.t.Helper()
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	w.must(err)
	return string(out)
}

// check reports what is not as it should be: the neighbour's parts, and anything that
// a client would refuse.
func (w *town) check(when string, want map[string]string) {
	w.t.Helper()
	got := w.partsOf(neighbour)
	for key, value := range want {
		switch now, ok := got[key]; {
		case !ok:
			w.t.Errorf("%s: no %s", when, key)
		case now != value:
			w.t.Errorf("%s: %s is another", when, key)
		}
	}
	for name, c := range w.clients {
		for typeURL, check := range map[string]func(proto.Message) error{
			envoy.ListenerType: envoycheck.Envoy, envoy.RouteType: envoycheck.Envoy,
		} {
			for _, r := range c.State().Resources(typeURL) {
				if name == "grpc" {
					check = envoycheck.GRPC
				}
				m, err := r.Message()
				if err == nil {
					err = check(m)
				}
				if err != nil {
					w.t.Errorf("%s: %s has %s, which it would refuse: %.300s", when, name, r.Name, err)
				}
			}
		}
	}
}

// every says which of the poisons are tried: one of so many.
func every(n, short int) int {
	if tier.Full() {
		return n
	}
	return short
}

// TestNobodysObjectHurtsAnothers poisons one field of one object of a tenant at a time,
// for all kinds, with validation off. What clients have of another tenant are the
// bytes that they have without the poison: in a running server, where the other's
// changes go on, and in one that starts with the poison, which is tried with every other.
func TestNobodysObjectHurtsAnothers(t *testing.T) {
	base := make([]map[string]string, 3)
	for moment := range base {
		if moment > 0 {
			fresh := startTown(t, append(configsOf(t, neighbour, moment), configsOf(t, culprit, 1)...), ads.Options{})
			base[moment] = fresh.partsOf(neighbour)
			fresh.check("without poison", nil)
			fresh.stop()
		}
	}
	if diff := cmp.Diff(len(base[1]), len(base[2])); diff != "" || len(base[1]) < 12 {
		t.Fatalf("%d parts, other moments have others: %s", len(base[1]), diff)
	}
	for _, o := range append(slices.Clip(tenantObjects), struct {
		kind configstore.GroupVersionKind
		spec string
	}{istio.ServiceEntry, selecting}) {
		t.Run(o.kind.Kind, func(t *testing.T) {
			t.Parallel()
			running := startTown(t, append(configsOf(t, neighbour, 1), configsOf(t, culprit, 1)...), ads.Options{})
			healthy := tenantConfig(t, o.kind, "edge", o.spec, culprit, 1)
			if o.spec == selecting {
				healthy.Name = "vm"
			}
			moment, count := 1, 0
			for name, poison := range poisoned(healthy.Spec, *poisonAll) {
				bad := healthy
				if bad.Spec = poison; running.refuses(bad) {
					continue
				}
				if count++; count%every(1, 4) != 0 {
					continue
				}
				moment = 3 - moment
				running.set(append(configsOf(t, neighbour, moment), bad)...)
				running.applied()
				running.check("running, "+name, base[moment])
				if !*poisonAll && count%every(2, 8) != 0 {
					continue
				}
				fresh := startTown(t, append(append(configsOf(t, neighbour, moment), configsOf(t, culprit, 1)...), bad), ads.Options{})
				fresh.check("fresh, "+name, base[moment])
				fresh.stop()
			}
			t.Logf("%d poisons", count)
			running.set(healthy)
			running.applied()
			if diff := cmp.Diff(base[moment], running.partsOf(neighbour)); diff != "" {
				t.Errorf("after the poison: %s", diff)
			}
		})
	}
}
