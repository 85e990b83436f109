// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func aliasFor(namespace string, host, target registry.Hostname) *registry.Service {
	s := testService(namespace, host, 80)
	s.Resolution = registry.Alias
	s.Attributes.Kubernetes = &registry.KubernetesAttributes{ExternalName: string(target)}
	return s
}

// TestAliasOfTwoNamespaces: an alias that stands for something else in the namespace of a
// proxy is no name of what it stands for elsewhere.
func TestAliasOfTwoNamespaces(t *testing.T) {
	st := newState(newIndex(configList{}, newSettings(Options{})), newNamedWorld(
		testService("shop", "a.example.com", 80), testService("other", "b.example.com", 80),
		aliasFor("shop", "alias.example.com", "a.example.com"), aliasFor("other", "alias.example.com", "b.example.com"),
	))
	for namespace, want := range map[string]string{"shop": "a.example.com", "other": "b.example.com"} {
		for _, h := range st.routesSent(&proxy{namespace: namespace}, "80").GetVirtualHosts() {
			has := strings.Contains(fmt.Sprint(h.GetDomains()), "alias.example.com")
			if is := h.GetName() == want+":80"; has != is {
				t.Errorf("in %s, %s has the domains %v", namespace, h.GetName(), h.GetDomains())
			}
		}
	}
}

// TestLongChainsOfAliases: an alias of an alias stands for what that stands for, however
// many there are; a loop stands for nothing.
func TestLongChainsOfAliases(t *testing.T) {
	services := map[registry.Hostname]*service{"end": newService([]*registry.Service{testService("shop", "end", 80)})}
	for i := range 20 {
		target := registry.Hostname(fmt.Sprintf("a%d", i-1))
		if i == 0 {
			target = "end"
		}
		host := registry.Hostname(fmt.Sprintf("a%d", i))
		services[host] = newService([]*registry.Service{aliasFor("shop", host, target)})
	}
	services["loop"] = newService([]*registry.Service{aliasFor("shop", "loop", "pool")})
	services["pool"] = newService([]*registry.Service{aliasFor("shop", "pool", "loop")})
	find := func(h registry.Hostname) *service { return services[h] }
	if host, svc := concrete(services["a19"], find); host != "end" || svc != services["end"] {
		t.Errorf("a19 stands for %s", host)
	}
	if _, svc := concrete(services["loop"], find); svc != nil {
		t.Errorf("a loop stands for %s", svc.host)
	}
}

// TestLabelsOfTopology: what a proxy says of its topology by labels is what counts, and
// what it does not say follows from its locality, network and cluster.
func TestLabelsOfTopology(t *testing.T) {
	labels, locality := topology(&registry.Proxy{
		Locality: "eu/a/1", Network: "net", ClusterID: "c1",
		Labels: registry.Labels{networkLabel: "mine", zoneLabel: "b", "app": "web"},
	})
	want := registry.Labels{networkLabel: "mine", zoneLabel: "b", "app": "web", clusterLabel: "c1"}
	if !labels.Equal(want) || locality != "/b" {
		t.Errorf("labels %v, locality %q", labels, locality)
	}
	labels, locality = topology(&registry.Proxy{Locality: "eu/a/1", Network: "net"})
	want = registry.Labels{networkLabel: "net", regionLabel: "eu", zoneLabel: "a", subzoneLabel: "1"}
	if !labels.Equal(want) || locality != "eu/a/1" {
		t.Errorf("labels %v, locality %q", labels, locality)
	}
}
