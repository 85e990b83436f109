// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestSeveralServicesOfOneHost: services of a host in one namespace are united by port, the first
// service of each port counts, and a service that is not exported stays hidden.
func TestSeveralServicesOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := func(s *registry.Service) {
			s.CreationTime = s.CreationTime.Add(time.Hour)
			s.Attributes.ObjectName = "second"
			s.DefaultAddress = "10.9.9.8"
			s.Ports = []*registry.Port{
				{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}, {Name: "admin", Number: 81, Protocol: registry.ProtocolHTTP},
			}
			s.Attributes.ExportTo = []registry.Visibility{registry.VisibilityPrivate}
		}
		f := serve(t, ads.Options{}, service("a", "shop", http), service("a", "shop", second))
		f.flush()
		admin := envoy.ClusterName(81, "a")
		for namespace, want := range map[string]struct{ clusters, domains []string }{
			"shop":  {[]string{cluster("a"), admin}, []string{"a", "a:80", "10.9.9.9", "10.9.9.9:80", "10.9.9.8", "10.9.9.8:80"}},
			"other": {[]string{cluster("a")}, []string{"a", "a:80", "10.9.9.9", "10.9.9.9:80"}},
		} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", namespace)})
			f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), admin)
			f.subscribe(c, envoy.RouteType, "80")
			f.subscribe(c, envoy.ClusterType)
			f.await(c, envoy.ClusterType, want.clusters...)
			f.await(c, envoy.LoadAssignmentType, want.clusters...)
			f.await(c, envoy.RouteType, "80")
			m, err := c.State().Resources(envoy.RouteType)["80"].Message()
			if err != nil {
				t.Fatal(err)
			}
			check(t, namespace, m.(*routev3.RouteConfiguration).GetVirtualHosts()[0].GetDomains(), want.domains)
		}
	})
}

// TestPrivateServiceHidesNothing: of two services of one host and port, other
// namespaces see the one that is exported to them, however old the other is.
func TestPrivateServiceHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := func(s *registry.Service) {
			s.CreationTime = s.CreationTime.Add(time.Hour)
			s.Attributes.ObjectName, s.Attributes.Name = "second", "second"
		}
		f := serve(t, ads.Options{}, service("a", "shop", exportTo(registry.VisibilityPrivate)), service("a", "shop", second))
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.flush()
		for namespace, want := range map[string]string{"shop": "a", "other": "second"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", namespace)})
			f.subscribe(c, envoy.ListenerType, "a", "a:80")
			f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
			f.subscribe(c, envoy.ClusterType)
			f.await(c, envoy.ClusterType, cluster("a"))
			f.await(c, envoy.ListenerType, "a", "a:80")
			f.await(c, envoy.LoadAssignmentType, cluster("a"))
			check(t, namespace, serviceOf(t, c, "a"), want)
		}
	})
}

// TestKubernetesOwnsItsNames: a ServiceEntry does not take over the name of a
// Kubernetes service of its namespace, however old it is.
func TestKubernetesOwnsItsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := func(s *registry.Service) {
			s.CreationTime = s.CreationTime.Add(time.Hour)
			s.Attributes.Provider = registry.Kubernetes
			s.Attributes.Name = "kube"
		}
		f := serve(t, ads.Options{}, service("a", "shop"), service("a", "shop", kube))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		check(t, "service", serviceOf(t, c, "a"), "kube")
	})
}
