// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// service returns what entry("a", nil, "a.com") becomes, changed by edit.
func service(edit func(*registry.Service)) *registry.Service {
	s := &registry.Service{
		Hostname: "a.com", DefaultAddress: registry.UnspecifiedAddress, MeshExternal: true,
		Ports:        []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		CreationTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Attributes: registry.ServiceAttributes{
			Provider: registry.External, Name: "a.com", Namespace: "ns", ObjectName: "a",
		},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func with(c configstore.Config, edit func(*configstore.Config)) configstore.Config {
	edit(&c)
	return c
}

// plain is a minimal entry with changed metadata.
func plain(edit func(*configstore.Config)) configstore.Config {
	return with(entry("a", nil, "a.com"), edit)
}

func TestServices(t *testing.T) {
	t.Parallel()
	resolution := func(r networking.ServiceEntry_Resolution) configstore.Config {
		return entry("a", func(e *networking.ServiceEntry) { e.Resolution = r }, "a.com")
	}
	resolved := func(r registry.Resolution) []*registry.Service {
		return []*registry.Service{service(func(s *registry.Service) { s.Resolution = r })}
	}
	addresses := func(a ...string) configstore.Config {
		return entry("a", func(e *networking.ServiceEntry) { e.Addresses = a }, "a.com")
	}
	addressed := func(all ...string) []*registry.Service {
		var out []*registry.Service
		for _, a := range all {
			out = append(out, service(func(s *registry.Service) { s.DefaultAddress = a }))
		}
		return out
	}
	annotated := func(key, value string) configstore.Config {
		return plain(func(c *configstore.Config) { c.Annotations = map[string]string{key: value} })
	}
	distributed := func(d registry.TrafficDistribution) []*registry.Service {
		return []*registry.Service{service(func(s *registry.Service) { s.Attributes.TrafficDistribution = d })}
	}
	const distribution = "networking.istio.io/traffic-distribution"
	for _, test := range []struct {
		name    string
		options serviceentry.Options
		entry   configstore.Config
		want    []*registry.Service
	}{
		{name: "minimal", entry: entry("a", nil, "a.com"), want: []*registry.Service{service(nil)}},
		{name: "STATIC", entry: resolution(networking.ServiceEntry_STATIC), want: resolved(registry.ClientSideLB)},
		{name: "DNS", entry: resolution(networking.ServiceEntry_DNS), want: resolved(registry.DNSLB)},
		{name: "DNS_ROUND_ROBIN", entry: resolution(networking.ServiceEntry_DNS_ROUND_ROBIN), want: resolved(registry.DNSRoundRobinLB)},
		{name: "NONE", entry: resolution(networking.ServiceEntry_NONE), want: resolved(registry.Passthrough)},
		{name: "DYNAMIC_DNS", entry: resolution(networking.ServiceEntry_DYNAMIC_DNS), want: resolved(registry.DynamicDNS)},
		{name: "unknown resolution", entry: resolution(99), want: resolved(registry.ClientSideLB)},
		{name: "one address", entry: addresses("10.0.0.1"), want: addressed("10.0.0.1")},
		{name: "several addresses", entry: addresses("10.0.0.2", "10.0.0.1"), want: addressed("10.0.0.1", "10.0.0.2")},
		{name: "the same address", entry: addresses("10.0.0.1", "10.0.0.1/32"), want: addressed("10.0.0.1")},
		{name: "range", entry: addresses("10.1.2.3/8"), want: addressed("10.1.2.3/8")},
		{name: "range of one", entry: addresses("2001:db8::1/128"), want: addressed("2001:db8::1")},
		{name: "bad addresses", entry: addresses("10.0.0.1", "nonsense", "1.2.3.4/99"), want: addressed("10.0.0.1")},
		{name: "only bad addresses", entry: addresses("nonsense"), want: nil},
		{
			name:  "internal",
			entry: entry("a", func(e *networking.ServiceEntry) { e.Location = networking.ServiceEntry_MESH_INTERNAL }, "a.com"),
			want:  []*registry.Service{service(func(s *registry.Service) { s.MeshExternal = false })},
		},
		{
			name: "hosts once each",
			entry: entry("a", func(e *networking.ServiceEntry) {
				e.Hosts = []string{"b.com", "a.com", "b.com"}
			}, ""),
			want: []*registry.Service{service(nil), service(func(s *registry.Service) { s.Hostname, s.Attributes.Name = "b.com", "b.com" })},
		},
		{
			name: "ports in order, protocols in any case",
			entry: entry("a", func(e *networking.ServiceEntry) {
				e.Ports = []*networking.ServicePort{{Number: 90, Name: "x", Protocol: "gRPC"}, nil, {Number: 80, Name: "y"}}
			}, "a.com"),
			want: []*registry.Service{service(func(s *registry.Service) {
				s.Ports = []*registry.Port{
					{Name: "x", Number: 90, Protocol: registry.ProtocolGRPC}, {Name: "y", Number: 80, Protocol: registry.ProtocolUnsupported},
				}
			})},
		},
		{
			name: "target ports of NONE",
			entry: entry("a", func(e *networking.ServiceEntry) {
				e.Resolution = networking.ServiceEntry_NONE
				e.Ports = []*networking.ServicePort{{Number: 80, Name: "http"}, {Number: 90, Name: "x", TargetPort: 9090}}
			}, "a.com"),
			want: []*registry.Service{service(func(s *registry.Service) {
				s.Resolution = registry.Passthrough
				s.Ports = []*registry.Port{
					{Name: "http", Number: 80, Protocol: registry.ProtocolUnsupported}, {Name: "x", Number: 90, Protocol: registry.ProtocolUnsupported},
				}
				s.Attributes.PassthroughTargetPorts = map[uint32]uint32{90: 9090}
			})},
		},
		{
			name:  "exportTo is a set",
			entry: entry("a", func(e *networking.ServiceEntry) { e.ExportTo = []string{"ns3", ".", "ns3"} }, "a.com"),
			want:  []*registry.Service{service(func(s *registry.Service) { s.Attributes.ExportTo = []registry.Visibility{".", "ns3"} })},
		},
		{
			name:  "accounts in order",
			entry: entry("a", func(e *networking.ServiceEntry) { e.SubjectAltNames = []string{"y", "x"} }, "a.com"),
			want:  []*registry.Service{service(func(s *registry.Service) { s.ServiceAccounts = []string{"y", "x"} })},
		},
		{
			name:  "selector",
			entry: entry("a", selecting, "a.com"),
			want:  []*registry.Service{service(func(s *registry.Service) { s.Attributes.LabelSelectors = registry.Labels{"app": "web"} })},
		},
		{
			name:  "labels",
			entry: plain(func(c *configstore.Config) { c.Labels = map[string]string{"l": "1"} }),
			want:  []*registry.Service{service(func(s *registry.Service) { s.Attributes.Labels = registry.Labels{"l": "1"} })},
		},
		{
			name:    "canonical labels",
			options: serviceentry.Options{CanonicalServiceForMeshExternal: true},
			entry:   plain(func(c *configstore.Config) { c.Labels = map[string]string{"app": "x", "version": "v2"} }),
			want: []*registry.Service{service(func(s *registry.Service) {
				s.Attributes.Labels = registry.Labels{
					"app": "x", "version": "v2", "service.istio.io/canonical-name": "x", "service.istio.io/canonical-revision": "v2",
				}
			})},
		},
		{
			name:    "canonical labels by default",
			options: serviceentry.Options{CanonicalServiceForMeshExternal: true},
			entry:   entry("a", nil, "a.com"),
			want: []*registry.Service{service(func(s *registry.Service) {
				s.Attributes.Labels = registry.Labels{"service.istio.io/canonical-name": "a", "service.istio.io/canonical-revision": "latest"}
			})},
		},
		{name: "PreferClose", entry: annotated(distribution, "preferclose"), want: distributed(registry.TrafficDistributionPreferSameZone)},
		{name: "PreferSameZone", entry: annotated(distribution, "PreferSameZone"), want: distributed(registry.TrafficDistributionPreferSameZone)},
		{name: "PreferSameNode", entry: annotated(distribution, "PreferSameNode"), want: distributed(registry.TrafficDistributionPreferSameNode)},
		{
			name:    "traffic distribution of the namespace",
			options: serviceentry.Options{Namespaces: []serviceentry.Namespace{{Name: "ns", Annotations: map[string]string{distribution: "PreferSameNode"}}}},
			entry:   entry("a", nil, "a.com"), want: distributed(registry.TrafficDistributionPreferSameNode),
		},
		{
			name:    "an unknown value hides that of the namespace",
			options: serviceentry.Options{Namespaces: []serviceentry.Namespace{{Name: "ns", Annotations: map[string]string{distribution: "PreferSameNode"}}}},
			entry:   annotated(distribution, "nonsense"), want: distributed(registry.TrafficDistributionAny),
		},
		{
			name:    "an empty value does not hide that of the namespace",
			options: serviceentry.Options{Namespaces: []serviceentry.Namespace{{Name: "ns", Annotations: map[string]string{distribution: "PreferSameNode"}}}},
			entry:   annotated(distribution, ""), want: distributed(registry.TrafficDistributionPreferSameNode),
		},
		{
			name: "connect strategy", entry: annotated("istio.io/connect-strategy", "race_first_tcp_connect"),
			want: []*registry.Service{service(func(s *registry.Service) { s.Attributes.DNSConnectStrategy = "RaceFirstTCPConnect" })},
		},
		{name: "unknown connect strategy", entry: annotated("istio.io/connect-strategy", "other"), want: []*registry.Service{service(nil)}},
		{
			name: "visibility by namespace labels",
			options: serviceentry.Options{
				Mesh: serviceentry.Mesh{Visibility: []serviceentry.VisibilityRule{
					{Matches: having(registry.Labels{"team": "other"}), Visibility: registry.VisibilityNone},
					{Matches: having(registry.Labels{"team": "x"}), Visibility: registry.VisibilityPrivate},
					{Visibility: registry.VisibilityNone},
				}},
				Namespaces: []serviceentry.Namespace{{Name: "ns", Labels: registry.Labels{"team": "x"}}},
			},
			entry: entry("a", nil, "a.com"),
			want:  []*registry.Service{service(func(s *registry.Service) { s.Attributes.Visibility = registry.VisibilityPrivate })},
		},
		{
			name: "public visibility is none",
			options: serviceentry.Options{Mesh: serviceentry.Mesh{Visibility: []serviceentry.VisibilityRule{
				{Matches: func(registry.Labels) bool { return true }, Visibility: registry.VisibilityPublic},
				{Visibility: registry.VisibilityNone},
			}}},
			entry: entry("a", nil, "a.com"), want: []*registry.Service{service(nil)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newUncheckedSystem(t, test.options, updates)
			s.apply(test.entry)
			got := s.registry.Services()
			if d := cmp.Diff(test.want, got, withoutResourceVersions, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("Services() (-want +got):\n%s", d)
			}
		})
	}
}

var withoutResourceVersions = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ResourceVersion" }, cmp.Ignore())

func TestAllocatedFromStatus(t *testing.T) {
	t.Parallel()
	status := func(values ...string) *networking.ServiceEntryStatus {
		out := &networking.ServiceEntryStatus{Addresses: []*networking.ServiceEntryAddress{{Host: "other.com", Value: "240.240.9.9"}}}
		for _, v := range values {
			out.Addresses = append(out.Addresses, &networking.ServiceEntryAddress{Host: "a.com", Value: v})
		}
		return out
	}
	for _, test := range []struct {
		name   string
		edit   func(*configstore.Config)
		v4, v6 string
	}{
		{"none", func(*configstore.Config) {}, "", ""},
		{"both families", func(c *configstore.Config) { c.Status = status("240.240.0.5", "2001:2::f0f0:5") }, "240.240.0.5", "2001:2::f0f0:5"},
		{"an unusual spelling", func(c *configstore.Config) { c.Status = status("2001:2:0:0::F0F0:5") }, "", "2001:2::f0f0:5"},
		{"the last of a family", func(c *configstore.Config) { c.Status = status("240.240.0.5", "240.240.0.6", "nonsense") }, "240.240.0.6", ""},
		{"given addresses", func(c *configstore.Config) {
			c.Status = status("240.240.0.5")
			c.Spec.(*networking.ServiceEntry).Addresses = []string{"10.0.0.1"}
		}, "", ""},
		{"NONE", func(c *configstore.Config) {
			c.Status = status("240.240.0.5")
			c.Spec.(*networking.ServiceEntry).Resolution = networking.ServiceEntry_NONE
		}, "", ""},
		{"refused by label", func(c *configstore.Config) {
			c.Status = status("240.240.0.5")
			c.Labels = map[string]string{"networking.istio.io/enable-autoallocate-ip": "False"}
		}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newUncheckedSystem(t, serviceentry.Options{}, updates)
			s.apply(plain(test.edit))
			got := s.registry.GetService("a.com")
			if got.AutoAllocatedIPv4 != test.v4 || got.AutoAllocatedIPv6 != test.v6 {
				t.Errorf("allocated %q and %q, want %q and %q", got.AutoAllocatedIPv4, got.AutoAllocatedIPv6, test.v4, test.v6)
			}
		})
	}
}
