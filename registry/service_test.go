// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func TestServiceNames(t *testing.T) {
	t.Parallel()
	s := &registry.Service{
		Hostname: "a.com", DefaultAddress: "10.0.0.1",
		Attributes: registry.ServiceAttributes{Namespace: "ns", ObjectName: "o"},
	}
	if got := s.Key(); got != "ns/a.com" {
		t.Errorf("Key() = %q", got)
	}
	if got := s.ResourceName(); got != "ns/o/a.com/10.0.0.1" {
		t.Errorf("ResourceName() = %q", got)
	}
	if got := (*registry.Service)(nil).Key(); got != "" {
		t.Errorf("Key() of nil = %q, want none", got)
	}
}

func TestServicePorts(t *testing.T) {
	t.Parallel()
	first, second := &registry.Port{Name: "a", Number: 80}, &registry.Port{Name: "b", Number: 90}
	s := &registry.Service{Ports: []*registry.Port{first, second, {Name: "b", Number: 80}}}
	if s.Port(80) != first || s.Port(90) != second || s.Port(1) != nil {
		t.Error("Port does not find the first port of a number")
	}
	if s.PortByName("b") != second || s.PortByName("x") != nil {
		t.Error("PortByName does not find the first port of a name")
	}
}

func TestServicePortsAreComparedByValue(t *testing.T) {
	t.Parallel()
	s := func(ports ...registry.Port) *registry.Service {
		out := &registry.Service{}
		for _, p := range ports {
			out.Ports = append(out.Ports, &p)
		}
		return out
	}
	a, b := registry.Port{Name: "a", Number: 1}, registry.Port{Name: "b", Number: 2}
	if !s(a, b).Equal(s(a, b)) {
		t.Error("equal ports are not equal")
	}
	if s(a, b).Equal(s(b, a)) {
		t.Error("the order of ports does not matter")
	}
}

func TestResolutionIsDNS(t *testing.T) {
	t.Parallel()
	for r, want := range map[registry.Resolution]bool{
		registry.ClientSideLB: false, registry.DNSLB: true, registry.DNSRoundRobinLB: true,
		registry.Passthrough: false, registry.Alias: false, registry.DynamicDNS: false,
	} {
		if got := r.IsDNS(); got != want {
			t.Errorf("%s.IsDNS() = %t, want %t", r, got, want)
		}
	}
}

func TestVisibleIn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		exportTo []registry.Visibility
		limit    registry.Visibility
		own      bool
		listed   bool
		other    bool
	}{
		{"everybody by default", nil, "", true, true, true},
		{"public", []registry.Visibility{"*"}, "", true, true, true},
		{"private", []registry.Visibility{"."}, "", true, false, false},
		{"a namespace", []registry.Visibility{"listed"}, "", false, true, false},
		{"own by name", []registry.Visibility{"own"}, "", true, false, false},
		{"private and a namespace", []registry.Visibility{".", "listed"}, "", true, true, false},
		{"none", []registry.Visibility{"~"}, "", false, false, false},
		{"nobody, whoever else is named", []registry.Visibility{".", "listed", "~"}, "", false, false, false},
		{"everybody, also beside nobody", []registry.Visibility{"~", "*"}, "", true, true, true},
		{"limited to the namespace", nil, registry.VisibilityPrivate, true, false, false},
		{"a limit does not widen", []registry.Visibility{"listed"}, registry.VisibilityPrivate, false, false, false},
		{"limited to nobody", []registry.Visibility{"*"}, registry.VisibilityNone, false, false, false},
		{"not limited", []registry.Visibility{"."}, registry.VisibilityPublic, true, false, false},
	} {
		s := &registry.Service{Attributes: registry.ServiceAttributes{Namespace: "own", ExportTo: test.exportTo, Visibility: test.limit}}
		for namespace, want := range map[string]bool{"own": test.own, "listed": test.listed, "other": test.other} {
			if got := s.VisibleIn(namespace); got != want {
				t.Errorf("%s: VisibleIn(%q) = %t, want %t", test.name, namespace, got, want)
			}
		}
	}
}

func TestParseProtocol(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]registry.Protocol{
		"tcp": registry.ProtocolTCP, "UDP": registry.ProtocolUDP, "gRPC": registry.ProtocolGRPC, "grpc-WEB": registry.ProtocolGRPCWeb,
		"Http": registry.ProtocolHTTP, "HTTP_proxy": registry.ProtocolHTTPProxy, "http2": registry.ProtocolHTTP2,
		"https": registry.ProtocolHTTPS, "TLS": registry.ProtocolTLS, "mongo": registry.ProtocolMongo,
		"REDIS": registry.ProtocolRedis, "MySQL": registry.ProtocolMySQL, "": registry.ProtocolUnsupported, "other": registry.ProtocolUnsupported,
	} {
		if got := registry.ParseProtocol(text); got != want {
			t.Errorf("ParseProtocol(%q) = %q, want %q", text, got, want)
		}
	}
	for p, want := range map[registry.Protocol][3]bool{
		registry.ProtocolHTTP: {true, false, false}, registry.ProtocolHTTP2: {true, true, false}, registry.ProtocolHTTPProxy: {true, false, false},
		registry.ProtocolGRPC: {true, true, false}, registry.ProtocolGRPCWeb: {true, true, false},
		registry.ProtocolHTTPS: {false, false, true}, registry.ProtocolTLS: {false, false, true},
		registry.ProtocolTCP: {}, registry.ProtocolUnsupported: {}, registry.ProtocolMongo: {},
	} {
		if got := [3]bool{p.IsHTTP(), p.IsHTTP2(), p.IsTLS()}; got != want {
			t.Errorf("%s: is HTTP, HTTP/2, TLS = %v, want %v", p, got, want)
		}
	}
}

func TestSimple(t *testing.T) {
	t.Parallel()
	s := registry.Simple{ProviderID: registry.Memory, ClusterID: "c"}
	if s.Provider() != registry.Memory || s.Cluster() != "c" {
		t.Errorf("Simple is %s/%s, want Memory/c", s.Provider(), s.Cluster())
	}
}
