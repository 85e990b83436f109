// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"iter"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// making is a provider of the resources of one type that a function of the test makes for a view,
// anew with each push. A nil message hides the resource of the next providers.
type making struct {
	typeURL string
	make    func(view ads.View, push *ads.PushContext) map[string]proto.Message
}

func (m making) Name() string                          { return "making" }
func (m making) Attach(xdsupdate.XDSUpdater)           {}
func (m making) Group(*core.Node, *registry.Proxy) any { return nil }
func (m making) of(typeURL string) bool                { return typeURL == m.typeURL }

func (m making) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	return madeForPush{m, push}, ads.Changes{Everything: func(_ ads.View, typeURL string) bool { return m.of(typeURL) }}
}

type madeForPush struct {
	making
	push *ads.PushContext
}

func (m madeForPush) Names(v ads.View, typeURL string) (iter.Seq[string], bool) {
	if !m.of(typeURL) {
		return nil, false
	}
	return maps.Keys(m.make(v, m.push)), false
}

func (m madeForPush) Covers(v ads.View, typeURL, name string) (covered, only bool) {
	return !m.Lookup(v, typeURL, name).Next, false
}

func (m madeForPush) Lookup(v ads.View, typeURL, name string) ads.Answer {
	if !m.of(typeURL) {
		return ads.Answer{Next: true}
	}
	switch message, set := m.make(v, m.push)[name]; {
	case !set:
		return ads.Answer{Next: true}
	case message == nil:
		return ads.Answer{}
	default:
		return ads.Answer{Share: v, Build: func() (proto.Message, error) { return message, nil }}
	}
}

// pausing is a provider without resources that calls a function in each push.
type pausing struct {
	making
	pause func()
}

func (p pausing) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	p.pause()
	return p.making.Provide(push)
}

// hiding returns a provider that hides a cluster while hidden is set.
func hiding(name string, hidden *atomic.Bool) ads.Provider {
	return making{envoy.ClusterType, func(ads.View, *ads.PushContext) map[string]proto.Message {
		if hidden.Load() {
			return map[string]proto.Message{name: nil}
		}
		return nil
	}}
}

// lockedBuffer is a log that tests read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

// other asks for a push of something that is no service.
func (f *fixture) other() {
	f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: "x"})})
}

// setTexts sets own resources of customType, by name, in one step; "" deletes one.
func (f *fixture) setTexts(of map[string]string) {
	f.t.Helper()
	f.UpdateResources(func(w ads.ResourceWriter) {
		for name, text := range of {
			if text == "" {
				w.DeleteResource(customType, name)
			} else if err := w.SetResource(name, wrapperspb.String(text)); err != nil {
				f.t.Error(err)
			}
		}
	})
	f.flush()
}

// texts are the strings that a client has.
func texts(c *xdstest.Client) map[string]string {
	out := make(map[string]string)
	for name, r := range c.State().Resources(customType) {
		m, err := r.Message()
		if err == nil {
			out[name] = m.(*wrapperspb.StringValue).GetValue()
		}
	}
	return out
}

// TestListenersUnderAWildcard: an Envoy that subscribes to all listeners is sent those of the
// program, in the order of names, and no API listeners.
func TestListenersUnderAWildcard(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("svc", "shop"))
				for _, name := range []string{"b", "a"} {
					f.setResource(name, &listenerv3.Listener{Name: name})
				}
				f.flush()
				c := f.client(xdstest.ClientOptions{
					Delta: delta, Node: node("a", "shop"), Answer: func(xdstest.Response) error { return nil }, // which are names only
				})
				f.subscribe(c, envoy.ListenerType)
				f.await(c, envoy.ListenerType, "a", "b")
				check(t, "in order", received(c, 0), []string{"LDS a", "LDS b"})
				f.DeleteResource(envoy.ListenerType, "a")
				f.setResource("c", &listenerv3.Listener{Name: "c"})
				f.await(c, envoy.ListenerType, "b", "c")
			})
		})
	}
}

// TestHiddenClusterComesBack: the assignment comes with the cluster, although the client does not
// subscribe again.
func TestHiddenClusterComesBack(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var hidden atomic.Bool
				f := serve(t, ads.Options{Providers: []ads.Provider{hiding(cluster("a"), &hidden)}}, service("a", "shop"), service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"))
				hidden.Store(true)
				f.other()
				f.await(c, envoy.ClusterType, cluster("b"))
				f.waitApplied()
				since := len(c.Responses())
				hidden.Store(false)
				f.other()
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.waitApplied()
				got := received(c, since)
				if got[0] != "CDS "+cluster("a") || got[len(got)-1] != "EDS "+cluster("a") {
					t.Errorf("received %q", got)
				}
				check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.0.1"})
			})
		})
	}
}

// grouping is a provider that groups proxies by a function.
type grouping struct {
	making
	group func(*core.Node, *registry.Proxy) any
}

func (g grouping) Group(node *core.Node, proxy *registry.Proxy) any { return g.group(node, proxy) }
