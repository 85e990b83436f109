// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// FuzzRegistries serves services that no registry should let through, many at a time, to clients of
// both kinds and protocols: clients accept each resource in each response, no resource is in a
// response twice, and a valid service among the others is served.
func FuzzRegistries(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed, "a.example.com")
	}
	f.Add(uint64(1), strings.Repeat("long.", 200))
	f.Add(uint64(2), "a:80")
	f.Add(uint64(3), "[::1]")
	f.Add(uint64(4), "\x00\xff")
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		synctest.Test(t, func(t *testing.T) {
			odd := &oddities{Rand: rand.New(rand.NewPCG(seed, 0)), texts: oddTexts(text)}
			list := []*registry.Service{service("good", "shop")}
			for range 8 {
				list = append(list, odd.service())
			}
			server := serve(t, ads.Options{}, list...)
			server.eds("good", "shop", endpoint("10.0.0.1", 80))
			for _, s := range list[1:] {
				server.eds(string(s.Hostname), s.Attributes.Namespace, odd.endpoints(s)...)
			}
			server.flush()
			for name, delta := range protocols() {
				for _, kind := range []envoy.Client{envoy.ForEnvoy, envoy.ForGRPC} {
					c := odd.client(server, delta, kind)
					if !c.State().Has(envoy.LoadAssignmentType, cluster("good")) {
						t.Fatalf("%s: the client has no endpoints of the good service: %v", name, c.Err())
					}
					check(t, "addresses", addressesOf(t, c, "good"), []string{"10.0.0.1"})
				}
			}
		})
	})
}

// oddities makes services and endpoints of odd texts and numbers.
type oddities struct {
	*rand.Rand
	texts []string
}

func oddTexts(fuzzed string) []string {
	return []string{
		fuzzed, fuzzed, "", "a.com", "A.com", "a.com.", "*.a.com", "*", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "fe80::1%0",
		"/" + strings.Repeat("s", 107), "/run/s", "@s", "@\x00", "10.0.0.0/8", "0.0.0.0", "a b", "a\nb", "\xff\xfe", "r/z/s", "a|b",
		"istio", "a:80", "80", strings.Repeat("x", 300) + ".com", "ünïcode.com", "good", "shop", ".", "~", "%2f", "{}",
	}
}

func (o *oddities) text() string { return o.texts[o.IntN(len(o.texts))] }

func (o *oddities) number() uint32 {
	return []uint32{0, 1, 80, 80, 8080, 65535, 65536, 1<<32 - 1}[o.IntN(8)]
}

func (o *oddities) service() *registry.Service {
	s := service(o.text(), o.text(), func(s *registry.Service) {
		s.DefaultAddress, s.AutoAllocatedIPv4, s.AutoAllocatedIPv6 = o.text(), o.text(), o.text()
		s.Resolution = registry.Resolution(o.IntN(8))
		s.ServiceAccounts = []string{o.text(), o.text()}
		s.CreationTime = s.CreationTime.Add(time.Duration(o.IntN(3)))
		s.ClusterVIPs = map[registry.ClusterID][]string{"c1": {o.text(), o.text()}}
		s.Attributes.Name, s.Attributes.Provider = o.text(), registry.ProviderID(o.text())
		s.Attributes.PassthroughTargetPorts = map[uint32]uint32{80: o.number()}
		s.Ports = nil
	})
	protocols := []registry.Protocol{"", registry.ProtocolHTTP, registry.ProtocolGRPC, registry.ProtocolTCP, registry.ProtocolHTTP2, "odd"}
	for range o.IntN(4) {
		s.Ports = append(s.Ports, &registry.Port{Name: o.text(), Number: o.number(), Protocol: protocols[o.IntN(len(protocols))]})
	}
	if o.IntN(8) == 0 {
		s.Ports = append(s.Ports, nil)
	}
	return s
}

func (o *oddities) endpoints(s *registry.Service) []*registry.Endpoint {
	var out []*registry.Endpoint
	for range o.IntN(6) {
		e := &registry.Endpoint{
			EndpointPort: o.number(), HealthStatus: registry.HealthStatus(o.IntN(7)), WorkloadName: o.text(),
			Shared: &registry.EndpointAttributes{
				Locality: o.text(), LbWeight: o.number(), TLSMode: o.text(), Namespace: o.text(), ServiceAccount: o.text(),
				ClusterID: registry.ClusterID(o.text()), DiscoverableFromSameCluster: o.IntN(4) == 0,
				SendUnhealthyEndpoints: o.IntN(2) == 0, Labels: registry.Labels{o.text(): o.text()},
			},
		}
		for range o.IntN(3) {
			e.Addresses = append(e.Addresses, o.text())
		}
		if len(s.Ports) > 0 && s.Ports[0] != nil {
			e.ServicePortName = s.Ports[0].Name
		}
		out = append(out, e)
	}
	return out
}

// client returns a client that has asked for everything that there may be.
func (o *oddities) client(f *fixture, delta bool, kind envoy.Client) *xdstest.Client {
	f.t.Helper()
	options := xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: func(r xdstest.Response) error {
		names := make(map[string]bool)
		for _, res := range r.Resources {
			if names[res.Name] || res.Name == "" {
				f.t.Errorf("%s: %q is in a response twice, or has no name", short(r.TypeURL), res.Name)
			}
			names[res.Name] = true
			m, err := res.Message()
			switch {
			case err != nil:
			case kind == envoy.ForGRPC:
				err = envoycheck.GRPC(m)
			default:
				err = envoycheck.Envoy(m)
			}
			if err != nil {
				f.t.Errorf("%s %q: %v", short(r.TypeURL), res.Name, err)
			}
		}
		return nil
	}}
	names, listeners, routes := []string{cluster("good")}, []string{"good:80"}, []string{cluster("good")}
	for _, text := range o.texts {
		if strings.ToValidUTF8(text, "") != text { // cannot be asked for
			continue
		}
		listeners = append(listeners, text)
		for _, port := range []uint32{80, 8080, 65535} {
			host := registry.Hostname(text)
			names = append(names, envoy.ClusterName(port, host))
			listeners = append(listeners, envoy.ListenerName(port, host))
			routes = append(routes, envoy.ClusterName(port, host), fmt.Sprint(port))
		}
	}
	if kind == envoy.ForGRPC {
		options.Node.UserAgentName = "gRPC Go"
	}
	c := f.client(options)
	if kind == envoy.ForGRPC {
		f.subscribe(c, envoy.ClusterType, names...)
		f.subscribe(c, envoy.ListenerType, listeners...)
	} else {
		f.subscribe(c, envoy.ClusterType)
	}
	f.subscribe(c, envoy.LoadAssignmentType, names...)
	f.subscribe(c, envoy.RouteType, routes...)
	synctest.Wait()
	f.waitApplied()
	return c
}
