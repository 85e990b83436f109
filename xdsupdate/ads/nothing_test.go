// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestWildcardOfEveryResolution: a client that subscribes to all resources of a type gets all of
// them, with services of every kind.
func TestWildcardOfEveryResolution(t *testing.T) {
	resolutions := []registry.Resolution{
		registry.ClientSideLB, registry.DNSLB, registry.DNSRoundRobinLB, registry.Passthrough, registry.Alias, registry.DynamicDNS,
	}
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var list []*registry.Service
				for i, r := range resolutions {
					list = append(list, service(string(rune('a'+i)), "shop", func(s *registry.Service) { s.Resolution = r }))
				}
				f := serve(t, ads.Options{}, list...)
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("n", "shop")})
				for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
					f.subscribe(c, typeURL, "*")
				}
				f.waitApplied()
				if !slices.Contains(c.State().Names(envoy.LoadAssignmentType), cluster("a")) {
					t.Errorf("assignments: %q", c.State().Names(envoy.LoadAssignmentType))
				}
			})
		})
	}
}

// oddProvider answers as nobody should.
type oddProvider struct{ answer func(name string) ads.Answer }

func (oddProvider) Name() string                          { return "odd" }
func (oddProvider) Attach(xdsupdate.XDSUpdater)           {}
func (oddProvider) Group(*core.Node, *registry.Proxy) any { return nil }
func (oddProvider) Covers(_ ads.View, _, name string) (covered, only bool) {
	return name == "covered", true
}

func (p oddProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	return p, ads.Changes{Names: []ads.ChangedName{{}, {TypeURL: envoy.ClusterType}, {TypeURL: envoy.ClusterType, Name: "named"}}}
}

func (oddProvider) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	if typeURL == envoy.ListenerType {
		return nil, true
	}
	return slices.Values([]string{"named", "good", "", "good"}), true
}

func (p oddProvider) Lookup(_ ads.View, _, name string) ads.Answer {
	if name == "good" || name == "" {
		return ads.Answer{Build: func() (proto.Message, error) { return &clusterv3.Cluster{Name: cmp.Or(name, "empty")}, nil }}
	}
	return p.answer(name)
}

// TestProviderThatContradictsItself: a provider lists names that it has no answer for, the same
// name twice, and an empty one. Its resources are sent nevertheless, once.
func TestProviderThatContradictsItself(t *testing.T) {
	for what, answer := range map[string]ads.Answer{
		"nothing":                    {},
		"what the next provider has": {Next: true},
		"a nil message":              {Build: func() (proto.Message, error) { return nil, nil }},
		"a nil cluster":              {Build: func() (proto.Message, error) { return (*clusterv3.Cluster)(nil), nil }},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{Providers: []ads.Provider{oddProvider{func(string) ads.Answer { return answer }}}}, service("a", "shop"))
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("n", "shop")})
					f.subscribe(c, envoy.ClusterType, "*")
					f.subscribe(c, envoy.ListenerType, "*")
					f.await(c, envoy.ClusterType, "good")
					f.subscribe(c, envoy.ClusterType, "named")
					f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
					f.waitApplied()
					for _, r := range c.Responses() {
						if r.TypeURL == envoy.ClusterType && (len(r.Resources) > 1 || slices.Contains(r.Names(), "")) {
							t.Errorf("sent %q", r.Names())
						}
					}
					f.await(c, envoy.ClusterType, "good")
				})
			})
		}
	}
}

// nilProvider provides nothing at all.
type nilProvider struct{ oddProvider }

func (nilProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) { return nil, ads.Changes{} }

// TestHostThatAnswersNil: every function of the program that may answer nil does.
// Everything else is served.
func TestHostThatAnswersNil(t *testing.T) {
	const other = "example.com/Other"
	for what, options := range map[string]ads.Options{
		"provided": {Providers: []ads.Provider{nilProvider{}}},
		"group":    {Providers: []ads.Provider{grouping{group: func(*core.Node, *registry.Proxy) any { return nil }}}},
		"resources": {Providers: []ads.Provider{making{other, func(ads.View, *ads.PushContext) map[string]proto.Message {
			return map[string]proto.Message{"": nil, "nil": nil, "typed": (*clusterv3.Cluster)(nil)}
		}}}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, options, service("a", "shop"), service("b", "shop", func(s *registry.Service) {
					s.Ports = []*registry.Port{nil, {Name: "grpc", Number: 80}, nil}
				}))
				f.EDSUpdate(shard, "a", "shop", []*registry.Endpoint{nil, endpoint("10.0.0.1", 80), nil})
				f.EDSDeltaUpdate(shard, "a", "shop", []xdsupdate.EndpointChange{{}, {New: endpoint("10.0.0.2", 80)}})
				c := f.client(xdstest.ClientOptions{Node: node("n", "shop")})
				for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, other} {
					f.subscribe(c, typeURL, "*")
				}
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.waitApplied()
				check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.0.1", "10.0.0.2"})
				f.define([]string{"a", "b"}, nil, service("b", "shop"), nil)
				f.await(c, envoy.ClusterType, cluster("b"))
			})
		})
	}
}

// TestProxyOfNobody: a program that returns neither a proxy nor an error rejects the client.
func TestProxyOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			if n.GetId() == "nobody" {
				return nil, nil
			}
			return ads.ProxyOf(n), nil
		}}, service("a", "shop"))
		nobody := f.client(xdstest.ClientOptions{Node: &core.Node{Id: "nobody"}})
		f.subscribe(nobody, envoy.ClusterType)
		if _, err := nobody.Next(f.context()); status.Code(err) != codes.Unauthenticated {
			t.Errorf("nobody: %v", err)
		}
		c := f.client(xdstest.ClientOptions{Node: node("n", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
	})
}
