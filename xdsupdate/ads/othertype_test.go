// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// answering is a provider with one answer, for the listener "a".
type answering struct {
	updater xdsupdate.XDSUpdater
	answer  ads.Answer
}

func (*answering) Name() string                          { return "p" }
func (p *answering) Attach(updater xdsupdate.XDSUpdater) { p.updater = updater }
func (*answering) Group(*core.Node, *registry.Proxy) any { return nil }
func (p *answering) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	return answered{p.answer}, ads.Changes{Names: []ads.ChangedName{{TypeURL: envoy.ListenerType, Name: "a"}}}
}

// set has the provider answer otherwise, and asks for a push.
func (p *answering) set(answer ads.Answer) {
	p.answer = answer
	p.updater.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: "a"})})
}

type answered struct{ answer ads.Answer }

func (answered) Names(ads.View, string) (iter.Seq[string], bool)      { return nil, false }
func (answered) Covers(ads.View, string, string) (covered, only bool) { return false, false }
func (a answered) Lookup(_ ads.View, typeURL, name string) ads.Answer {
	if typeURL != envoy.ListenerType || name != "a" {
		return ads.Answer{Next: true}
	}
	return a.answer
}

// acceptAny also accepts resources that an Envoy would not accept.
func acceptAny(xdstest.Response) error { return nil }

// TestMessageOfAnotherType: a message is never sent as one of another type, which a client
// would take for a resource of another name. The last good state stays, and it is reported
// with both types.
func TestMessageOfAnotherType(t *testing.T) {
	route := func() (proto.Message, error) { return &routev3.RouteConfiguration{Name: "a"}, nil }
	listener := func() (proto.Message, error) { return &listenerv3.Listener{Name: "a", StatPrefix: "good"}, nil }
	state := func(make func() (proto.Message, error)) *ads.ResourceState {
		m, _ := make()
		out, err := ads.NewResourceState("a", m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const both = "it is a envoy.config.route.v3.RouteConfiguration, and the type URL is that of a envoy.config.listener.v3.Listener"
	var provider *answering
	answer := func(a ads.Answer) func(*fixture) { return func(*fixture) { provider.set(a) } }
	for name, test := range map[string]struct {
		good, bad func(*fixture)
		want      string
	}{
		"Build": {answer(ads.Answer{Build: listener}), answer(ads.Answer{Build: route}), both},
		"StandIn": {answer(ads.Answer{}), answer(ads.Answer{
			Build:   func() (proto.Message, error) { return nil, errBroken },
			StandIn: func() proto.Message { m, _ := route(); return m },
		}), "broken"},
		"State": {
			answer(ads.Answer{State: state(listener)}), answer(ads.Answer{State: state(route)}),
			envoy.ListenerType + " a: answered with the state of another resource: " + envoy.RouteType + " a",
		},
	} {
		for protocol, delta := range protocols() {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log lockedBuffer
					provider = &answering{answer: ads.Answer{Next: true}}
					f := serve(t, ads.Options{Providers: []ads.Provider{provider}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: acceptAny})
					f.subscribe(c, envoy.ListenerType, "a")
					synctest.Wait()
					test.good(f)
					f.flush()
					f.waitApplied()
					had := c.State().Resources(envoy.ListenerType)
					since := len(c.Responses())
					test.bad(f)
					f.flush()
					f.waitApplied()
					check(t, "received", received(c, since), []string{})
					check(t, "kept", len(c.State().Resources(envoy.ListenerType)), len(had))
					if said := log.take(); !strings.Contains(said, test.want) {
						t.Errorf("log without %q:\n%s", test.want, said)
					}
				})
			})
		}
	}
}

// TestTypeURLOfAnotherProtocol: a type URL without the prefix of xDS does not name the type of the
// message. Clients get that type from the type URL next to the message, and so do callers of
// Resources; a stand-in is no exception.
func TestTypeURLOfAnotherProtocol(t *testing.T) {
	const typeURL = "networking.istio.io/v1/ServiceEntry"
	route := &routev3.RouteConfiguration{Name: "a"}
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := making{typeURL, func(ads.View, *ads.PushContext) map[string]proto.Message {
					return map[string]proto.Message{"a": route}
				}}
				f := serve(t, ads.Options{Providers: []ads.Provider{g, standingIn{typeURL}}})
				c := f.client(xdstest.ClientOptions{Delta: delta, Answer: acceptAny, Node: node("a", "shop")})
				f.subscribe(c, typeURL, "a", "b")
				f.await(c, typeURL, "a", "b")
				f.waitApplied()
				for _, want := range []*routev3.RouteConfiguration{route, {Name: "b"}} {
					got := c.State().Resources(typeURL)[want.GetName()].Any
					check(t, "type URL", got.GetTypeUrl(), envoy.RouteType)
					sent, err := got.UnmarshalNew()
					if err != nil || !proto.Equal(sent, want) {
						t.Errorf("sent %v, %v", sent, err)
					}
				}
				for _, r := range f.resourcesOf(node("a", "shop").GetId(), typeURL) {
					if m, err := r.Accepted.Message(); err != nil || !proto.Equal(m, &routev3.RouteConfiguration{Name: r.Name}) {
						t.Errorf("said to have %v, %v", m, err)
					}
				}
			})
		})
	}
}

// standingIn is a provider of a resource "b" that cannot be built and has a stand-in.
type standingIn struct{ typeURL string }

func (standingIn) Name() string                                           { return "standing in" }
func (standingIn) Attach(xdsupdate.XDSUpdater)                            {}
func (standingIn) Group(*core.Node, *registry.Proxy) any                  { return nil }
func (standingIn) Names(ads.View, string) (iter.Seq[string], bool)        { return nil, false }
func (standingIn) Covers(ads.View, string, string) (covered, only bool)   { return false, false }
func (p standingIn) Provide(*ads.PushContext) (ads.Provided, ads.Changes) { return p, ads.Changes{} }

func (p standingIn) Lookup(_ ads.View, typeURL, name string) ads.Answer {
	if typeURL != p.typeURL || name != "b" {
		return ads.Answer{Next: true}
	}
	return ads.Answer{
		Build:   func() (proto.Message, error) { return nil, errBroken },
		StandIn: func() proto.Message { return &routev3.RouteConfiguration{Name: "b"} },
	}
}
