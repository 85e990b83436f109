// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// hostileSets is how many sets of objects of a hostile namespace are tried: about 25 a second.
func hostileSets() int {
	if tier.Full() {
		return 500
	}
	return 100 // of which a share runs
}

// goodObjects are those of three tenants behind one gateway, each with a service, routes and policies.
func goodObjects(tb testing.TB) configList {
	tb.Helper()
	out := objectsOf(tb, `Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"},
		"hosts": ["shop/shop.good.test", "billing/billing.good.test", "ledger/ledger.good.test", "evil/*.evil.test"]}]}`)
	for i, tenant := range randomobjects.GoodTenants() {
		r := strings.NewReplacer("TENANT", tenant, "NUMBER", fmt.Sprint(i+1))
		for _, text := range []string{
			`ServiceEntry TENANT/s {"hosts": ["TENANT.good.test"], "location": "MESH_INTERNAL", "resolution": "STATIC",
				"ports": [{"number": 80, "name": "http", "protocol": "HTTP"}], "endpoints": [{"address": "10.8.0.NUMBER", "labels": {"version": "v1"}}]}`,
			`DestinationRule TENANT/s {"host": "TENANT.good.test", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 7}}},
				"subsets": [{"name": "v1", "labels": {"version": "v1"}}]}`,
			`VirtualService TENANT/s {"hosts": ["TENANT.good.test"], "gateways": ["mesh", "ingress/edge"], "http": [
				{"match": [{"uri": {"prefix": "/v1"}}], "route": [{"destination": {"host": "TENANT.good.test", "subset": "v1"}}]},
				{"route": [{"destination": {"host": "TENANT.good.test"}}], "retries": {"attempts": NUMBER}}]}`,
		} {
			out = append(out, objectsOf(tb, r.Replace(text))...)
		}
	}
	for i, c := range out {
		c.CreationTimestamp = time.Unix(int64(1000+i), 0)
	}
	return out
}

// TestServiceAtTheGateway: an endpoint with the address of a gateway moves its ports if the service is of the gateway's own
// namespace. A service of another one moves nothing, and no Gateway that is for the endpoints of the service is the gateway's.
func TestServiceAtTheGateway(t *testing.T) {
	entry := `ServiceEntry NAMESPACE/s {"hosts": ["s.NAMESPACE.test"], "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": [{"number": 80, "name": "http", "protocol": "HTTP", "targetPort": 9999}], "endpoints": [{"address": "10.9.9.1", "labels": {"app": "edge"}}]}`
	for namespace, want := range map[string][]string{"evil": {"0.0.0.0_80"}, "ingress": {"0.0.0.0_81", "0.0.0.0_9999"}} {
		configs := append(goodObjects(t), objectsOf(t, strings.ReplaceAll(entry, "NAMESPACE", namespace))...)
		theirs := objectsOf(t, `Gateway evil/theirs {"servers": [{"port": {"number": 81, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]}`)
		theirs[0].Labels = map[string]string{"gateway.networking.k8s.io/gateway-name": "theirs"}
		theirs[0].Annotations = map[string]string{
			"internal.istio.io/gateway-semantics": "gateway", "internal.istio.io/gateway-service": "s." + namespace + ".test",
			"internal.istio.io/parent-namespace": "ingress",
		}
		s := stage(t, traffic.Options{}, append(configs, theirs...), nil)
		if got := s.ask(edge(), envoy.ListenerType).names; !slices.Equal(got, want) {
			t.Errorf("with a service of namespace %s the listeners are %q, want %q", namespace, got, want)
		}
	}
}

// answersOf returns what clients of the good tenants are answered: by the gateway, by their sidecars, and by their gRPC servers.
func answersOf(s *scene) map[string]string {
	s.t.Helper()
	out := make(map[string]string)
	clients := map[string]*core.Node{"gateway": edge()}
	for i, tenant := range randomobjects.GoodTenants() {
		clients[tenant] = in("sidecar", tenant)
		address := fmt.Sprintf("10.8.0.%d", i+1)
		out["server of "+tenant] = protojson.Format(s.listener(at(in("grpc", tenant), address), "xds.istio.io/grpc/lds/inbound/"+address+":80"))
	}
	for client, n := range clients {
		name := "80"
		if client == "gateway" {
			manager := s.connectionManager(s.listener(n, "0.0.0.0_80"))
			name = manager.GetRds().GetRouteConfigName()
			out["filters of the gateway"] = guards(manager)
		}
		routes, clusters, sent := s.routes(n, name), []string{}, s.ask(n, envoy.ClusterType).resources
		for _, tenant := range randomobjects.GoodTenants() {
			if client != "gateway" && client != tenant {
				continue
			}
			for _, path := range []string{"/", "/v1/x"} {
				r := routesim.Request{Port: 80, Method: "GET", Scheme: "http", Authority: tenant + ".good.test", Path: path}
				out[client+" "+r.Authority+path] = routesim.Envoy(routes, r).String()
			}
			clusters = append(clusters, "outbound|80||"+tenant+".good.test", "outbound|80|v1|"+tenant+".good.test")
		}
		assignments := s.ask(n, envoy.LoadAssignmentType, clusters...).resources
		for _, name := range clusters {
			for kind, m := range map[string]proto.Message{"cluster": sent[name], "endpoints": assignments[name]} {
				text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
				s.must(err)
				out[client+" "+kind+" "+name] = fmt.Sprint(m != nil, " ", string(text))
			}
		}
	}
	return out
}

// guards returns the filters that let requests in.
func guards(manager *hcm.HttpConnectionManager) string {
	var out []string
	for _, f := range manager.GetHttpFilters() {
		if strings.Contains(f.GetName(), "rbac") || strings.Contains(f.GetName(), "jwt") || strings.Contains(f.GetName(), "authz") {
			out = append(out, protojson.Format(f))
		}
	}
	return strings.Join(out, "\n")
}

// TestHostileNamespace: whatever objects one namespace has, invalid ones too, and with limits that they exceed, what clients of
// others are answered stays what it is without them.
func TestHostileNamespace(t *testing.T) {
	all := []traffic.Limits{{}, {SharedBytes: 6000, VirtualHosts: 8, Routes: 8, Clusters: 8, HashEntries: 8192, FilterChains: 40}}
	var alone []map[string]string
	for _, limits := range all {
		s := stage(t, traffic.Options{Limits: limits}, goodObjects(t), nil)
		alone = append(alone, answersOf(s))
		s.close()
		for key, answer := range alone[len(alone)-1] {
			if strings.HasPrefix(answer, "false") || answer == "{}" || strings.Contains(answer, "404") {
				t.Fatalf("without them %s is %s", key, answer)
			}
		}
	}
	for _, seed := range histories.Seeds(t, hostileSets()) {
		limits, want := all[seed%2], alone[seed%2]
		hostile := randomobjects.Hostile(seed)
		s := stage(t, traffic.Options{Limits: limits}, append(goodObjects(t), hostile...), nil)
		for key, answer := range answersOf(s) {
			if answer != want[key] {
				t.Errorf("seed %d, limits %+v: %s is\n%s\nwithout them\n%s", seed, limits, key, answer, want[key])
			}
		}
		s.close()
		if t.Failed() {
			for _, c := range hostile {
				t.Logf("%s %s created %v: %s", c.GroupVersionKind.Kind, c.Key(), c.CreationTimestamp.Unix(), protojson.Format(c.Spec))
			}
			t.FailNow()
		}
	}
}

// TestExportTakesNothing: a younger VirtualService takes no host by its export to the namespace of the clients, neither from
// sidecars nor at a gateway.
func TestExportTakesNothing(t *testing.T) {
	theirs := objectsOf(t, `VirtualService evil/v {"hosts": ["shop.good.test"], "gateways": ["mesh", "ingress/edge"], "exportTo": ["shop", "ingress"],
		"http": [{"route": [{"destination": {"host": "billing.good.test"}}]}]}`)
	theirs[0].CreationTimestamp = time.Unix(2000, 0)
	objects := goodObjects(t)
	objects[0].Spec = objectsOf(t, `Gateway a/a {"selector": {"app": "edge"}, "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]}`)[0].Spec
	want, got := answersOf(stage(t, traffic.Options{}, objects, nil)), answersOf(stage(t, traffic.Options{}, append(objects, theirs...), nil))
	for key, answer := range got {
		if answer != want[key] {
			t.Errorf("%s is\n%s\nwithout the VirtualService\n%s", key, answer, want[key])
		}
	}
}

// TestServiceOfAllHosts: a service whose host is all hosts, which validation refuses, takes no requests of others from a sidecar,
// which would refuse routes with two virtual hosts for them.
func TestServiceOfAllHosts(t *testing.T) {
	theirs := objectsOf(t, `ServiceEntry evil/s {"hosts": ["*"], "location": "MESH_EXTERNAL", "resolution": "NONE",
		"ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]}`)
	s := stage(t, traffic.Options{}, append(goodObjects(t), theirs...), nil)
	if got := hostOf(s.routes(in("sidecar", "shop"), "80"), "unknown.test").GetName(); got != "allow_any" {
		t.Errorf("requests to unknown hosts are those of %q", got)
	}
}
