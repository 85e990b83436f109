// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// attributes returns those of a plain workload in cluster c1, changed by edit.
// Labels are added to the one that all have.
func attributes(labels registry.Labels, edit func(*registry.EndpointAttributes)) *registry.EndpointAttributes {
	all := registry.Labels{"topology.istio.io/cluster": "c1"}
	maps.Copy(all, labels)
	a := &registry.EndpointAttributes{Labels: all, ClusterID: "c1", TLSMode: "disabled", Namespace: "ns"}
	if edit != nil {
		edit(a)
	}
	return a
}

// described is a WorkloadEntry, and what its endpoint has to be, whether it is
// selected or written in a ServiceEntry.
type described struct {
	name     string
	options  serviceentry.Options
	spec     *networking.WorkloadEntry
	metadata map[string]string
	// annotations and the name only exist for one that is selected.
	annotations  map[string]string
	address      string
	ports        [2]uint32
	workloadName string
	attributes   *registry.EndpointAttributes
}

func workloadDescriptions() []described {
	usual := [2]uint32{80, 8443}
	tenNet := serviceentry.Options{NetworkOf: func(address string, labels registry.Labels) string {
		if strings.HasPrefix(address, "10.") {
			return "ten-" + labels["zone"]
		}
		return ""
	}}
	return []described{
		{name: "plain", spec: &networking.WorkloadEntry{Address: "1.1.1.1"}, address: "1.1.1.1", ports: usual, attributes: attributes(nil, nil)},
		{
			name: "labels of metadata win", metadata: map[string]string{"a": "meta", "b": "1"},
			spec:    &networking.WorkloadEntry{Address: "1.1.1.1", Labels: map[string]string{"a": "spec", "c": "1"}},
			address: "1.1.1.1", ports: usual, attributes: attributes(registry.Labels{"a": "meta", "b": "1", "c": "1"}, nil),
		},
		{
			name: "port map", spec: &networking.WorkloadEntry{Address: "1.1.1.1", Ports: map[string]uint32{"http": 8080, "tls": 0, "other": 1}},
			address: "1.1.1.1", ports: [2]uint32{8080, 8443}, attributes: attributes(nil, nil),
		},
		{name: "host name", spec: &networking.WorkloadEntry{Address: "vm.org"}, address: "vm.org", ports: usual, attributes: attributes(nil, nil)},
		{
			name: "unix socket", spec: &networking.WorkloadEntry{Address: "unix:///run/a.sock", Ports: map[string]uint32{"http": 8080}},
			address: "/run/a.sock", attributes: attributes(nil, nil),
		},
		{
			name: "no address, but a network", spec: &networking.WorkloadEntry{Network: "n1"}, ports: usual,
			attributes: attributes(registry.Labels{"topology.istio.io/network": "n1"}, func(a *registry.EndpointAttributes) { a.Network = "n1" }),
		},
		{
			name: "locality and weight", spec: &networking.WorkloadEntry{Address: "1.1.1.1", Locality: "r/z/s/more", Weight: 7},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{
				"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z", "topology.istio.io/subzone": "s",
			}, func(a *registry.EndpointAttributes) { a.Locality, a.LbWeight = "r/z/s/more", 7 }),
		},
		{
			name: "locality label", spec: &networking.WorkloadEntry{Address: "1.1.1.1", Labels: map[string]string{"istio-locality": "r.z"}},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{
				"istio-locality": "r.z", "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z",
			}, func(a *registry.EndpointAttributes) { a.Locality = "r/z" }),
		},
		{
			name: "the newer locality label wins", spec: &networking.WorkloadEntry{
				Address: "1.1.1.1", Labels: map[string]string{"istio-locality": "r.z", "topology.istio.io/locality": "r1.x/z"},
			},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{
				"istio-locality": "r.z", "topology.istio.io/locality": "r1.x/z",
				"topology.kubernetes.io/region": "r1.x", "topology.kubernetes.io/zone": "z",
			}, func(a *registry.EndpointAttributes) { a.Locality = "r1.x/z" }),
		},
		{
			name: "an empty locality label hides the older one", spec: &networking.WorkloadEntry{
				Address: "1.1.1.1", Labels: map[string]string{"istio-locality": "r.z", "topology.istio.io/locality": ""},
			},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{"istio-locality": "r.z", "topology.istio.io/locality": ""}, nil),
		},
		{
			name: "labels of the topology are replaced", spec: &networking.WorkloadEntry{
				Address: "1.1.1.1", Locality: "r", Labels: map[string]string{"topology.kubernetes.io/region": "x", "topology.istio.io/cluster": "y"},
			},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{"topology.kubernetes.io/region": "r"}, func(a *registry.EndpointAttributes) { a.Locality = "r" }),
		},
		{
			name: "service account", options: serviceentry.Options{Mesh: serviceentry.Mesh{TrustDomain: "td"}},
			spec:    &networking.WorkloadEntry{Address: "1.1.1.1", ServiceAccount: "sa"},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(nil, func(a *registry.EndpointAttributes) {
				a.ServiceAccount, a.TLSMode = "spiffe://td/ns/ns/sa/sa", "istio"
			}),
		},
		{
			name: "TLS mode label", spec: &networking.WorkloadEntry{
				Address: "1.1.1.1", ServiceAccount: "sa", Labels: map[string]string{"security.istio.io/tlsMode": "custom"},
			},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{"security.istio.io/tlsMode": "custom"}, func(a *registry.EndpointAttributes) {
				a.ServiceAccount, a.TLSMode = "spiffe://cluster.local/ns/ns/sa/sa", "custom"
			}),
		},
		{
			name: "network of the callback", options: tenNet,
			spec:    &networking.WorkloadEntry{Address: "10.0.0.1", Labels: map[string]string{"zone": "z"}},
			address: "10.0.0.1", ports: usual,
			attributes: attributes(registry.Labels{"zone": "z", "topology.istio.io/network": "ten-z"}, func(a *registry.EndpointAttributes) { a.Network = "ten-z" }),
		},
		{
			name: "network label before the callback", options: tenNet,
			spec:    &networking.WorkloadEntry{Address: "10.0.0.1", Labels: map[string]string{"topology.istio.io/network": "n2"}},
			address: "10.0.0.1", ports: usual,
			attributes: attributes(registry.Labels{"topology.istio.io/network": "n2"}, func(a *registry.EndpointAttributes) { a.Network = "n2" }),
		},
		{
			name: "label of the metadata before that of the spec", metadata: map[string]string{"topology.istio.io/network": "n3"},
			spec:    &networking.WorkloadEntry{Address: "10.0.0.1", Labels: map[string]string{"topology.istio.io/network": "n2"}},
			address: "10.0.0.1", ports: usual,
			attributes: attributes(registry.Labels{"topology.istio.io/network": "n3"}, func(a *registry.EndpointAttributes) { a.Network = "n3" }),
		},
		{
			name: "network field before the label", options: tenNet,
			spec:    &networking.WorkloadEntry{Address: "10.0.0.1", Network: "n1", Labels: map[string]string{"topology.istio.io/network": "n2"}},
			address: "10.0.0.1", ports: usual,
			attributes: attributes(registry.Labels{"topology.istio.io/network": "n2"}, func(a *registry.EndpointAttributes) { a.Network = "n1" }),
		},
		{
			name: "workload name label", metadata: map[string]string{"service.istio.io/workload-name": "x"},
			spec:    &networking.WorkloadEntry{Address: "1.1.1.1"},
			address: "1.1.1.1", ports: usual, workloadName: "x",
			attributes: attributes(registry.Labels{"service.istio.io/workload-name": "x"}, nil),
		},
		{
			name: "workload name label in the spec", spec: &networking.WorkloadEntry{Address: "1.1.1.1", Labels: map[string]string{"service.istio.io/workload-name": "x"}},
			address: "1.1.1.1", ports: usual,
			attributes: attributes(registry.Labels{"service.istio.io/workload-name": "x"}, nil),
		},
		{
			name: "registration group", annotations: map[string]string{"istio.io/autoRegistrationGroup": "group"},
			metadata: map[string]string{"service.istio.io/workload-name": "x"},
			spec:     &networking.WorkloadEntry{Address: "1.1.1.1"},
			address:  "1.1.1.1", ports: usual, workloadName: "group",
			attributes: attributes(registry.Labels{"service.istio.io/workload-name": "x"}, nil),
		},
	}
}

// want returns the endpoints for the ports 80 (http) and 443 (tls) with target
// port 8443.
func (d *described) want(name string) []*registry.Endpoint {
	if d.workloadName != "" {
		name = d.workloadName
	}
	base := registry.Endpoint{Addresses: []string{d.address}, WorkloadName: name, Shared: d.attributes}
	first, second := base, base
	first.ServicePort, first.ServicePortName, first.EndpointPort = 80, "http", d.ports[0]
	second.ServicePort, second.ServicePortName, second.EndpointPort = 443, "tls", d.ports[1]
	return []*registry.Endpoint{&first, &second}
}

func twoPorts(e *networking.ServiceEntry) {
	e.Resolution = networking.ServiceEntry_DNS
	e.Ports = append(e.Ports, &networking.ServicePort{Number: 443, Name: "tls", Protocol: "TLS", TargetPort: 8443})
}

func TestSelectedEndpoints(t *testing.T) {
	t.Parallel()
	for _, d := range workloadDescriptions() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := newUncheckedSystem(t, d.options, updates)
			s.apply(entry("a", func(e *networking.ServiceEntry) {
				twoPorts(e)
				e.WorkloadSelector = &networking.WorkloadSelector{}
			}, "a.com"))
			s.apply(configstore.Config{
				Meta: configstore.Meta{
					GroupVersionKind: istio.WorkloadEntry, Name: "w", Namespace: "ns", Labels: d.metadata, Annotations: d.annotations,
				},
				Spec: d.spec,
			})
			if diff := cmp.Diff(d.want("w"), s.recorder.endpoints["ns/a.com"]); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
		})
	}
}

// An empty name of a workload is a name for handlers. Endpoints of entries have the name of the
// object instead, as in Istio 1.30.
func TestEmptyWorkloadName(t *testing.T) {
	t.Parallel()
	for _, field := range []func(*configstore.Config){
		func(c *configstore.Config) { c.Labels = map[string]string{"service.istio.io/workload-name": ""} },
		func(c *configstore.Config) { c.Annotations = map[string]string{"istio.io/autoRegistrationGroup": ""} },
	} {
		s := newSystem(t, serviceentry.Options{})
		var handled []string
		s.registry.AppendWorkloadHandler(func(w *registry.WorkloadInstance, _ registry.Event) {
			handled = append(handled, w.Endpoint.WorkloadName)
		})
		w := workloadEntry("w", "1.1.1.1", nil)
		field(&w)
		s.apply(entry("a", selecting, "a.com"), w)
		diff(t, "for handlers", handled, []string{""})
		diff(t, "of the endpoint", s.recorder.endpoints["ns/a.com"][0].WorkloadName, "w")
	}
}

func TestInlineEndpoints(t *testing.T) {
	t.Parallel()
	for _, d := range workloadDescriptions() {
		if d.metadata != nil || d.annotations != nil {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := newUncheckedSystem(t, d.options, updates)
			s.apply(entry("a", func(e *networking.ServiceEntry) {
				twoPorts(e)
				e.Endpoints = []*networking.WorkloadEntry{nil, d.spec}
			}, "a.com"))
			if diff := cmp.Diff(d.want("a-1"), s.recorder.endpoints["ns/a.com"]); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
		})
	}
}

func TestHostIsEndpoint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		resolution networking.ServiceEntry_Resolution
		want       string
	}{
		{networking.ServiceEntry_DNS, "[a.com:80 a.com:8443<443]"},
		{networking.ServiceEntry_DNS_ROUND_ROBIN, "[a.com:80 a.com:8443<443]"},
		{networking.ServiceEntry_STATIC, "[]"},
		{networking.ServiceEntry_NONE, "[]"},
		{networking.ServiceEntry_DYNAMIC_DNS, "[]"},
	} {
		t.Run(test.resolution.String(), func(t *testing.T) {
			t.Parallel()
			s := newUncheckedSystem(t, serviceentry.Options{}, updates)
			s.apply(entry("a", func(e *networking.ServiceEntry) {
				twoPorts(e)
				e.Resolution = test.resolution
			}, "a.com"))
			got := s.recorder.endpoints["ns/a.com"]
			diff(t, "endpoints", brief(got), test.want)
			if len(got) > 0 {
				diff(t, "attributes", got[0].Attributes(), &registry.EndpointAttributes{ClusterID: "c1", TLSMode: "disabled", Namespace: "ns"})
				diff(t, "workload", got[0].WorkloadName, "a")
				// Nobody is the host: it is no workload that a proxy could be.
				if l := s.registry.GetProxyWorkloadLabels(&registry.Proxy{IPAddresses: []string{"a.com"}}); l != nil {
					t.Errorf("GetProxyWorkloadLabels = %v, want nil", l)
				}
			}
		})
	}
}

// Endpoints that agree in their attributes share them, whoever contributes them.
func TestAttributesAreShared(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2"), entry("b", nil, "b.com", "1.1.1.3"))
	a, b := s.recorder.endpoints["ns/a.com"], s.recorder.endpoints["ns/b.com"]
	if a[0].Shared != a[1].Shared || a[0].Shared != b[0].Shared {
		t.Error("equal attributes are not shared")
	}
}

// Endpoints have their names from their positions, at which there may be nothing.
func TestInlinePositions(t *testing.T) {
	t.Parallel()
	s := newUncheckedSystem(t, serviceentry.Options{}, updates)
	for _, addresses := range [][]string{{"", "1"}, {"2", "1"}, {"1", "", "2"}, {"1", "2"}, {"", "", "2"}, {"1"}, {""}, {"", "1", "1"}} {
		s.apply(entry("a", func(e *networking.ServiceEntry) {
			for _, a := range addresses {
				if a == "" {
					e.Endpoints = append(e.Endpoints, nil)
				} else {
					e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: "1.1.1." + a})
				}
			}
		}, "a.com"))
		diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
	}
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80 1.1.1.1:80]")
	diff(t, "workload", s.recorder.endpoints["ns/a.com"][1].WorkloadName, "a-2")
}
