// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"net/netip"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// standardEntry is the ServiceEntry that the project's measurements use: one
// host, one address, two ports and n inline endpoints with six labels each.
func standardEntry(n int) configstore.Config {
	entry := &networking.ServiceEntry{
		Hosts:     []string{"svc-00001.ns-01.example.com"},
		Addresses: []string{"10.0.0.1"},
		Ports: []*networking.ServicePort{
			{Number: 80, Name: "http", Protocol: "HTTP"},
			{Number: 9090, Name: "grpc", Protocol: "GRPC"},
		},
		Location:   networking.ServiceEntry_MESH_INTERNAL,
		Resolution: networking.ServiceEntry_STATIC,
	}
	for i := range n {
		entry.Endpoints = append(entry.Endpoints, &networking.WorkloadEntry{
			Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250+1),
			Labels: map[string]string{
				"app":                                 "svc-00001",
				"version":                             "v1",
				"app.kubernetes.io/name":              "svc-00001",
				"service.istio.io/canonical-name":     "svc-00001",
				"service.istio.io/canonical-revision": "v1",
				"security.istio.io/tlsMode":           "istio",
			},
			Locality:       "region/zone/subzone",
			ServiceAccount: "default",
			Weight:         1,
		})
	}
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "svc-00001", Namespace: "ns-01"},
		Spec: entry,
	}
}

// BenchmarkServiceEntry validates the standard entry. The limit only reads the data: it parses the
// addresses and looks at every byte of the labels.
func BenchmarkServiceEntry(b *testing.B) {
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	for _, n := range []int{5, 500} {
		c := standardEntry(n)
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if warnings, err := schema.Check(c); err != nil || len(warnings) > 0 {
					b.Fatal(warnings, err)
				}
			}
		})
		b.Run(fmt.Sprintf("limit/endpoints=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				readAll(b, c.Spec.(*networking.ServiceEntry))
			}
		})
	}
}

func readAll(b *testing.B, entry *networking.ServiceEntry) {
	b.Helper()
	dots := 0
	for _, endpoint := range entry.Endpoints {
		if _, err := netip.ParseAddr(endpoint.Address); err != nil {
			b.Fatal(err)
		}
		for key, value := range endpoint.Labels {
			for i := range len(key) {
				if key[i] == '.' {
					dots++
				}
			}
			for i := range len(value) {
				if value[i] == '.' {
					dots++
				}
			}
		}
	}
	if dots == 0 {
		b.Fatal("the labels have dots")
	}
}
