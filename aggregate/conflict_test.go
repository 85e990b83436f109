// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// TestConflicts: one host of two providers, or of two namespaces, is a conflict; one
// service of two clusters, or several addresses of one entry, is none.
func TestConflicts(t *testing.T) {
	service := func(host registry.Hostname, provider registry.ProviderID, namespace, address string) *registry.Service {
		return &registry.Service{
			Hostname: host, DefaultAddress: address,
			Attributes: registry.ServiceAttributes{Provider: provider, Namespace: namespace, Name: "it", ObjectName: "it"},
		}
	}
	controller := aggregate.NewController()
	for _, r := range []struct {
		provider registry.ProviderID
		cluster  registry.ClusterID
		services []*registry.Service
	}{
		{registry.Kubernetes, "a", []*registry.Service{
			service("both.example.com", registry.Kubernetes, "shop", "10.0.0.1"),
			service("clusters.example.com", registry.Kubernetes, "shop", "10.0.0.2"),
		}},
		{registry.Kubernetes, "b", []*registry.Service{service("clusters.example.com", registry.Kubernetes, "shop", "10.0.0.2")}},
		{registry.External, "a", []*registry.Service{
			service("both.example.com", registry.External, "shop", "10.0.0.3"),
			service("spaces.example.com", registry.External, "shop", "10.0.0.4"),
			service("spaces.example.com", registry.External, "", "10.0.0.5"),
			service("addresses.example.com", registry.External, "shop", "10.0.0.6"),
			service("addresses.example.com", registry.External, "shop", "10.0.0.7"),
		}},
	} {
		reg := memory.New(memory.Options{Provider: r.provider, Cluster: r.cluster})
		for _, s := range r.services {
			if err := reg.SetService(s); err != nil {
				t.Fatal(err)
			}
		}
		controller.AddRegistry(given(reg))
	}
	var got []string
	for _, c := range controller.Conflicts() {
		if c.Services[0] != controller.GetService(c.Hostname) {
			t.Errorf("the first service of %s is not what GetService answers", c.Hostname)
		}
		got = append(got, c.String())
	}
	want := []string{
		"both.example.com: defined by Kubernetes shop/it and External shop/it",
		"spaces.example.com: defined by External it and External shop/it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}
