// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// momentProvider has clusters and listeners of numbered moments, each of which may differ from its
// predecessor in everything: one that is always there, and one of the moment. The resources of a
// moment are built when the test releases them.
type momentProvider struct {
	mu      sync.Mutex
	updater xdsupdate.XDSUpdater
	moment  int
	held    map[int]chan struct{} // moments whose resources are not built yet
}

func newMomentProvider() *momentProvider {
	return &momentProvider{moment: 1, held: make(map[int]chan struct{})}
}

func (p *momentProvider) Name() string                          { return "moments" }
func (p *momentProvider) Attach(updater xdsupdate.XDSUpdater)   { p.updater = updater }
func (p *momentProvider) Group(*core.Node, *registry.Proxy) any { return nil }

func (p *momentProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return momentProvided{p, p.moment}, ads.Changes{Everything: func(ads.View, string) bool { return true }}
}

// next asks for a push of the next moment.
func (p *momentProvider) next() {
	p.mu.Lock()
	p.moment++
	p.mu.Unlock()
	p.updater.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
}

// hold keeps the resources of a moment from being built until the returned function is called.
func (p *momentProvider) hold(moment int) (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[moment] = held
	return func() { close(held) }
}

// momentProvided has the resources of a momentProvider at a moment.
type momentProvided struct {
	*momentProvider
	moment int
}

func (m momentProvided) names() []string { return []string{"always", "at " + strconv.Itoa(m.moment)} }

func (m momentProvided) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	if typeURL != envoy.ClusterType && typeURL != envoy.ListenerType {
		return nil, false
	}
	return slices.Values(m.names()), true
}

func (m momentProvided) Covers(_ ads.View, _, name string) (covered, only bool) {
	return slices.Contains(m.names(), name), true
}

func (m momentProvided) Lookup(_ ads.View, typeURL, name string) ads.Answer {
	if !slices.Contains(m.names(), name) {
		return ads.Answer{Next: true}
	}
	return ads.Answer{Build: func() (proto.Message, error) {
		m.mu.Lock()
		held := m.held[m.moment]
		m.mu.Unlock()
		if held != nil {
			<-held
		}
		text := strconv.Itoa(m.moment)
		if typeURL == envoy.ClusterType {
			return &clusterv3.Cluster{Name: name, AltStatName: text}, nil
		}
		return &listenerv3.Listener{Name: name, StatPrefix: text}, nil
	}}
}

// momentsOf returns the moments of the resources that a client has, by name.
func momentsOf(tb testing.TB, c *xdstest.Client, typeURL string) map[string]string {
	tb.Helper()
	out := make(map[string]string)
	for name, r := range maps.All(c.State().Resources(typeURL)) {
		switch m, _ := r.Message(); m := m.(type) {
		case *clusterv3.Cluster:
			out[name] = m.GetAltStatName()
		case *listenerv3.Listener:
			out[name] = m.GetStatPrefix()
		}
	}
	return out
}

// TestSubscribesWhilePushing: a client that subscribes to everything of a type during a push that
// may change everything ends with the resources of that push, whichever of the two is finished
// first.
func TestSubscribesWhilePushing(t *testing.T) {
	for order, test := range map[string]func(f *fixture, p *momentProvider, subscribe func()){
		"the push is made while the first answer is": func(f *fixture, p *momentProvider, subscribe func()) {
			answer := p.hold(1)
			subscribe()
			p.next()
			f.flush()
			answer()
		},
		"the first answer is made while the push is": func(_ *fixture, p *momentProvider, subscribe func()) {
			push := p.hold(2)
			p.next()
			synctest.Wait()
			subscribe()
			push()
		},
		"the first answer begins before the push is shown, and ends after it": func(_ *fixture, p *momentProvider, subscribe func()) {
			answer, push := p.hold(1), p.hold(2)
			p.next()
			synctest.Wait()
			subscribe()
			push()
			synctest.Wait()
			answer()
		},
	} {
		for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType} {
			for protocol, delta := range protocols() {
				t.Run(order+"/"+short(typeURL)+"/"+protocol, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := newMomentProvider()
						f := serveDiscovery(t, ads.Options{Providers: []ads.Provider{p}}, nil)
						f.flush()
						before := f.client(xdstest.ClientOptions{Delta: true, Node: node("before", "shop"), Answer: acceptAny})
						f.subscribe(before, typeURL, "always") // has pushes make it
						f.await(before, typeURL, "always")
						c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("c", "shop"), Answer: acceptAny})
						test(f, p, func() {
							f.subscribe(c, typeURL)
							synctest.Wait()
						})
						f.flush()
						synctest.Wait()
						check(t, "what the client has", momentsOf(t, c, typeURL), map[string]string{"always": "2", "at 2": "2"})
					})
				})
			}
		}
	}
}

// gatedProvider is a momentProvider that does not know the resources of the namespace "late" before
// the second moment.
type gatedProvider struct {
	*momentProvider
	closed func() // called for each view that is closed
}

func (p gatedProvider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	provided, _ := p.momentProvider.Provide(push)
	return gatedProvided{provided.(momentProvided), p.closed}, ads.Changes{}
}

type gatedProvided struct {
	momentProvided
	closed func()
}

// IsOpen implements ads.Gate.
func (g gatedProvided) IsOpen(v ads.View) bool {
	if v.Namespace != "late" || g.moment > 1 {
		return true
	}
	g.closed()
	return false
}

// TestClosedView: clients of a view whose resources a provider does not know get no response, also for
// the resources of others, and nobody waits for them. The push that opens the view answers them,
// also if it comes while the view is found closed.
func TestClosedView(t *testing.T) {
	for order, meanwhile := range map[string]bool{"opened later": false, "opened meanwhile": true} {
		for protocol, delta := range protocols() {
			t.Run(order+"/"+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := gatedProvider{newMomentProvider(), func() {}}
					var f *fixture
					if meanwhile {
						p.closed = sync.OnceFunc(func() {
							p.next()
							f.flush()
						})
					}
					f = serveDiscovery(t, ads.Options{Providers: []ads.Provider{p}}, nil)
					f.setResource("own", &listenerv3.Listener{Name: "own"})
					f.flush()
					other := f.client(xdstest.ClientOptions{Delta: delta, Node: node("other", "shop"), Answer: acceptAny})
					f.subscribe(other, envoy.ClusterType)
					f.await(other, envoy.ClusterType, "always", "at 1")
					late := f.client(xdstest.ClientOptions{Delta: delta, Node: node("late", "late"), Answer: acceptAny})
					f.subscribe(late, envoy.ClusterType)
					f.subscribe(late, envoy.ListenerType, "own")
					synctest.Wait()
					if !meanwhile {
						f.waitApplied()
						check(t, "responses of a closed view", len(late.Responses()), 0)
						p.next()
					}
					f.waitApplied()
					check(t, "clusters", late.State().Names(envoy.ClusterType), []string{"always", "at 2"})
					check(t, "listeners", late.State().Names(envoy.ListenerType), []string{"own"})
					check(t, "responses", len(late.Responses()), 2)
				})
			})
		}
	}
}
