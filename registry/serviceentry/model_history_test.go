// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// history makes random changes over few names, labels and addresses, so that
// everything collides with everything.
type history struct {
	rand *rand.Rand
	// log says what was done, for the report of a failure.
	log []string
}

func pick[T any](h *history, of ...T) T { return of[h.rand.IntN(len(of))] }

// chance is true one time in n.
func (h *history) chance(n int) bool { return h.rand.IntN(n) == 0 }

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

var (
	modelNamespaces = []string{"a", "b"}
	modelNames      = []string{"x1", "x2", "x3", "x4"}
	modelIPs        = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1"}
)

func (h *history) labels() map[string]string {
	out := map[string]string{}
	if !h.chance(6) {
		out["app"] = pick(h, "web", "db")
	}
	if h.chance(2) {
		out["v"] = pick(h, "1", "2")
	}
	if h.chance(8) {
		out["topology.istio.io/network"] = "n-label"
	}
	if h.chance(6) {
		out[pick(h, "topology.istio.io/locality", "istio-locality")] = pick(h, "r3.z3", "r4.1/z4.1/s4/more", "", "r5")
	}
	if h.chance(8) {
		out["security.istio.io/tlsMode"] = pick(h, "disabled", "istio", "own", "")
	}
	if h.chance(8) {
		out["service.istio.io/workload-name"] = pick(h, "shop", "")
	}
	if h.chance(12) {
		out[pick(h, "topology.kubernetes.io/zone", "topology.istio.io/cluster", "topology.istio.io/subzone")] = "own"
	}
	return out
}

func (h *history) created() time.Time {
	return time.Date(2026, 1, 1, 0, 0, h.rand.IntN(4), 0, time.UTC)
}

func (h *history) serviceEntry() configstore.Config {
	spec := &networking.ServiceEntry{
		Hosts: pick(h, []string{"one.example.com"}, []string{"two.example.com"}, []string{"one.example.com", "two.example.com"},
			[]string{"two.example.com", "one.example.com", "two.example.com"}),
		Ports: pick(h,
			[]*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			[]*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}},
			[]*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 90, Name: "grpc", Protocol: "GRPC"}},
			[]*networking.ServicePort{{Number: 90, Name: "http", Protocol: "HTTP"}},
			[]*networking.ServicePort{{Number: 90, Name: "grpc", Protocol: "Tls"}, {Number: 80, Name: "http", TargetPort: 8081}},
			nil,
		),
		Resolution: pick(h,
			networking.ServiceEntry_STATIC, networking.ServiceEntry_STATIC, networking.ServiceEntry_STATIC,
			networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN, networking.ServiceEntry_NONE,
			networking.ServiceEntry_DYNAMIC_DNS),
		Location: pick(h, networking.ServiceEntry_MESH_INTERNAL, networking.ServiceEntry_MESH_EXTERNAL),
		Addresses: pick(h, nil, nil, []string{"240.0.0.1"}, []string{"240.0.0.1", "240.0.0.2"}, []string{"240.1.0.0/16"}, []string{"240.0.0.3/32"},
			[]string{"240.0.0.2", "240.0.0.1", "240.0.0.2/32"}, []string{"no address"}, []string{"2001:db8::/32", "no address", "2001:db8::1/128"}),
	}
	if h.chance(6) {
		spec.SubjectAltNames = []string{"san"}
	}
	if h.chance(6) {
		spec.ExportTo = []string{"."}
	}
	switch {
	case spec.GetResolution() == networking.ServiceEntry_NONE && h.chance(2), h.chance(8):
	case h.chance(3):
		for range 1 + h.rand.IntN(3) {
			spec.Endpoints = append(spec.Endpoints, h.workload(spec.GetResolution() != networking.ServiceEntry_STATIC))
		}
	default:
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: pick(h,
			map[string]string{"app": "web"}, map[string]string{"app": "db"}, map[string]string{"v": "1"},
			map[string]string{"app": "web", "v": "1"}, map[string]string{})}
	}
	c := configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Namespace: pick(h, modelNamespaces...), Name: pick(h, modelNames...),
			CreationTimestamp: h.created(),
		},
		Spec: spec,
	}
	if h.chance(8) {
		c.Annotations = distributed(pick(h, "PreferSameNode", "preferClose", "Any", ""))
	}
	if h.chance(8) {
		c.Annotations = map[string]string{"istio.io/connect-strategy": pick(h, "race_first_tcp_connect", "other", "")}
	}
	if h.chance(4) {
		c.Status = &networking.ServiceEntryStatus{Addresses: []*networking.ServiceEntryAddress{
			{Host: pick(h, "one.example.com", "two.example.com"), Value: pick(h, "240.240.0.1", "240.240.0.2", "no address")},
			{Host: "one.example.com", Value: pick(h, "2001:2::f0f0:1", "240.240.0.3")},
		}}
	}
	if h.chance(8) {
		c.Labels = map[string]string{"networking.istio.io/enable-autoallocate-ip": pick(h, "False", "true", "")}
	}
	return c
}

func distributed(how string) map[string]string {
	return map[string]string{"networking.istio.io/traffic-distribution": how}
}

func (h *history) workload(names bool) *networking.WorkloadEntry {
	spec := &networking.WorkloadEntry{Address: pick(h, modelIPs...), Labels: h.labels()}
	if names && h.chance(3) {
		spec.Address = pick(h, "vm.example.com", "unix:///run/app.sock", "")
	}
	if h.chance(3) {
		spec.Ports = map[string]uint32{pick(h, "http", "grpc", "other"): pick[uint32](h, 8000, 9000)}
	}
	if h.chance(4) {
		spec.ServiceAccount = pick(h, "sa1", "sa2")
	}
	if h.chance(4) {
		spec.Locality = pick(h, "r1/z1/s1", "r1/z2", "r2")
	}
	if h.chance(6) {
		spec.Weight = 7
	}
	if h.chance(6) {
		spec.Network = "n1"
	}
	return spec
}

func (h *history) workloadEntry() configstore.Config {
	c := configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.WorkloadEntry, Namespace: pick(h, modelNamespaces...), Name: pick(h, modelNames...),
			CreationTimestamp: h.created(),
		},
		Spec: h.workload(true),
	}
	if h.chance(4) {
		c.Labels = h.labels()
	}
	if h.chance(4) {
		c.Annotations = map[string]string{"proxy.istio.io/health-checks-enabled": pick(h, "true", "true", "T", "0", "yes", "")}
		if status := pick(h, "True", "True", "False", "Unknown", ""); status != "" {
			c.Status = &meta.IstioStatus{Conditions: []*meta.IstioCondition{{Type: "Healthy", Status: status}}}
		}
	}
	if h.chance(8) {
		c.Annotations = map[string]string{"istio.io/autoRegistrationGroup": pick(h, "group", "")}
	}
	return c
}

func (h *history) foreign() *registry.WorkloadInstance {
	wi := &registry.WorkloadInstance{
		Cluster: pick(h, registry.ClusterID("c1"), registry.ClusterID("c2")), Kind: registry.Pod,
		Namespace: pick(h, modelNamespaces...), Name: pick(h, modelNames...),
	}
	if wi.Cluster == "c2" && h.chance(2) {
		wi.Kind = registry.WorkloadEntry
	}
	e := &registry.Endpoint{
		Addresses: []string{pick(h, modelIPs...)}, HealthStatus: pick(h, registry.HealthUnset, registry.Healthy, registry.UnHealthy),
		Shared: &registry.EndpointAttributes{Labels: h.labels(), ClusterID: wi.Cluster, ServiceAccount: pick(h, "", "spiffe://x")},
	}
	if h.chance(3) {
		e.Addresses = append(e.Addresses, pick(h, modelIPs...))
	}
	if e.Addresses = slices.Compact(e.Addresses); h.chance(3) {
		e.WorkloadName = "deployment"
	}
	if h.chance(3) {
		wi.PortMap = map[string]uint32{pick(h, "http", "grpc"): 7000}
	}
	wi.Endpoint = e
	return wi
}

// announced is foreign, or one that is there with its addresses in another order.
func (h *history) announced(m *modelSystem) *registry.WorkloadInstance {
	wi := h.foreign()
	old := m.world.foreign[wi.Key()]
	if old == nil || !h.chance(3) {
		return wi
	}
	same, endpoint := *old, *old.Endpoint
	endpoint.Addresses = slices.Clone(endpoint.Addresses)
	slices.Reverse(endpoint.Addresses)
	same.Endpoint = &endpoint
	return &same
}

// step makes one change of the system and of the world, without delivering
// configs: those wait until the next delivery.
func (h *history) step(m *modelSystem) {
	switch n := h.rand.IntN(20); {
	case n < 6:
		h.put(m, m.world.entries, h.serviceEntry())
	case n < 8:
		h.remove(m, m.world.entries)
	case n < 13:
		h.put(m, m.world.workloads, h.workloadEntry())
	case n < 15:
		h.remove(m, m.world.workloads)
	case n < 18:
		wi := h.announced(m)
		h.note("put %s %v %s", showKey(wi.Key()), wi.Endpoint.Addresses, describeEndpoint(wi.Endpoint))
		event := registry.EventUpdate
		if m.world.foreign[wi.Key()] == nil {
			event = registry.EventAdd
		}
		if old := m.world.foreign[wi.Key()]; !old.Equal(wi) {
			m.world.foreign[wi.Key()] = wi
		} // Else it is no news, and the order of the addresses stays.
		m.feed(wi, event)
	case n < 19:
		// Often of something that is not there.
		wi := h.foreign()
		h.note("delete %s", showKey(wi.Key()))
		delete(m.world.foreign, wi.Key())
		m.feed(wi, registry.EventDelete)
	case h.chance(2):
		namespace, how := pick(h, modelNamespaces...), pick(h, "PreferSameZone", "PreferSameNode", "?", "")
		h.note("namespace %s has %q", namespace, how)
		m.setNamespace(namespace, how)
	default:
		m.world.trustDomain = pick(h, "cluster.local", "other.domain")
		m.world.visibility = pick(h, "", "", registry.VisibilityPrivate, registry.VisibilityNone, registry.VisibilityPublic)
		h.note("trust domain %s, visibility %q", m.world.trustDomain, m.world.visibility)
		m.setMesh(m.world.trustDomain, m.world.visibility)
	}
}

func showKey(k registry.WorkloadKey) string {
	return fmt.Sprintf("%s %s/%s of %s", k.Kind, k.Namespace, k.Name, k.Cluster)
}

func keyOf(c configstore.Config) string { return c.Namespace + "/" + c.Name }

// put creates or updates an object; sometimes it deletes it first, so that its
// creation time changes.
func (h *history) put(m *modelSystem, objects map[string]configstore.Config, c configstore.Config) {
	old, exists := objects[keyOf(c)]
	switch {
	case !exists:
		m.create(c)
	case h.chance(4):
		m.delete(old)
		m.create(c)
	default:
		c.CreationTimestamp = old.CreationTimestamp
		m.update(c)
	}
	h.note("put %s created %d %v %v", c.Key(), c.CreationTimestamp.Unix(), c.Labels, strings.Join(strings.Fields(fmt.Sprint(c.Spec, c.Status)), " "))
	objects[keyOf(c)] = c
}

func (h *history) remove(m *modelSystem, objects map[string]configstore.Config) {
	if len(objects) == 0 {
		return
	}
	key := pick(h, slices.Sorted(maps.Keys(objects))...)
	h.note("delete %s", objects[key].Key())
	m.delete(objects[key])
	delete(objects, key)
}
