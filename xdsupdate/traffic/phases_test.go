// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPhases plays random histories of all kinds with clients that answer when they like. No
// time passes that would end a phase. At no moment a client is given a listener or routes that
// name a cluster which it has not accepted, if there is that cluster, nor does a cluster go
// that listeners or routes name which it has accepted, unless they still did when it had gone.
func TestPhases(t *testing.T) {
	for seed := range uint64(modelSteps(18)) {
		for protocol, delta := range map[string]bool{"sotw": false, "delta": true} {
			t.Run(fmt.Sprintf("%s/%d", protocol, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { playPhases(t, seed, delta) })
			})
		}
	}
}

func playPhases(t *testing.T, seed uint64, delta bool) {
	t.Helper()
	m := &model{t: t, rand: rand.New(rand.NewPCG(seed, 22)), options: traffic.Options{FilterGatewayClusters: seed%2 == 1}}
	m.scene = m.newScene(storememory.Options{}, slog.New(slog.DiscardHandler))
	for range 20 {
		m.step()
	}
	m.scene.serve()
	var all []*phasedClient
	for _, n := range []*core.Node{modelNode("sidecar", "shop", "eu/a/1", "app=web"), modelNode("router", "ingress", "", "app=edge")} {
		all = append(all, newPhasedClient(m, n, delta))
	}
	for range modelSteps(120) {
		if onceIn(m.rand, 3) {
			for range 1 + m.rand.IntN(3) {
				m.step()
			}
			m.scene.flush()
			for _, c := range all {
				c.look()
			}
		}
		for _, c := range all {
			c.follow()
		}
		all[m.rand.IntN(len(all))].answer()
	}
	for _, c := range all {
		c.finish()
		c.Close()
	}
	m.scene.close()
}

// phasedClient is a client whose responses are checked.
type phasedClient struct {
	*xdstest.Client
	m       *model
	node    *core.Node
	delta   bool
	read    int
	waiting []xdstest.Response // not answered
	// accepted are the resources that it has accepted, by type and name.
	accepted map[string]map[string]xdstest.Resource
	// there is what a new client is sent, by type.
	there map[string]map[string]xdstest.Resource
	// dangling are the clusters that do not exist and that something leads to, or did since
	// they have gone.
	dangling map[string]bool
	// asked are the routes that it has asked for.
	asked map[string]bool
}

func newPhasedClient(m *model, n *core.Node, delta bool) *phasedClient {
	m.t.Helper()
	c := &phasedClient{
		m: m, node: n, delta: delta, accepted: make(map[string]map[string]xdstest.Resource), dangling: make(map[string]bool),
		there: make(map[string]map[string]xdstest.Resource), asked: make(map[string]bool),
	}
	c.Client = c.start(xdstest.ClientOptions{Delta: delta, Manual: true})
	c.look()
	c.follow()
	return c
}

// start connects a client that asks for what the proxy asks for first.
func (c *phasedClient) start(o xdstest.ClientOptions) *xdstest.Client {
	c.m.t.Helper()
	o.Node = c.m.scene.numbered(c.node)
	client := xdstest.NewClient(c.m.scene.conn, o)
	c.m.scene.must(client.Connect(c.m.t.Context()))
	for _, typeURL := range modelTypes {
		names := slices.DeleteFunc(modelNames(c.node)[typeURL], func(name string) bool {
			return name == "*" || typeURL == envoy.RouteType && c.node.GetId()[:6] == "router"
		})
		if len(names) > 0 || typeURL == envoy.ClusterType || typeURL == envoy.ListenerType {
			c.m.scene.must(client.Subscribe(typeURL, names...))
		}
	}
	return client
}

// look learns what there is now from a new client, and what of it is dangling.
func (c *phasedClient) look() {
	c.m.t.Helper()
	client := c.start(xdstest.ClientOptions{Delta: true})
	synctest.Wait()
	asked := maps.Clone(c.asked)
	c.asks(client, asked, client.State().Resources(envoy.ListenerType))
	if len(c.asked) > 0 {
		c.m.scene.must(client.Subscribe(envoy.RouteType, slices.Collect(maps.Keys(c.asked))...))
	}
	synctest.Wait()
	for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType, envoy.RouteType} {
		c.there[typeURL] = client.State().Resources(typeURL)
	}
	client.Close()
	synctest.Wait()
	exist := c.there[envoy.ClusterType]
	maps.DeleteFunc(c.dangling, func(name string, _ bool) bool { return exist[name].Any != nil })
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType} {
		for _, r := range c.there[typeURL] {
			for _, name := range namedClusters(c.m.t, r) {
				if exist[name].Any == nil {
					c.dangling[name] = true
				}
			}
		}
	}
}

// follow checks what the client was sent since the last call.
func (c *phasedClient) follow() {
	c.m.t.Helper()
	synctest.Wait()
	all := c.Responses()
	for _, r := range all[c.read:] {
		c.check(r)
		c.waiting = append(c.waiting, r)
	}
	c.read = len(all)
}

// asks has a client ask for the routes that listeners name.
func (c *phasedClient) asks(client *xdstest.Client, asked map[string]bool, listeners map[string]xdstest.Resource) {
	c.m.t.Helper()
	for _, r := range listeners {
		for _, name := range stringsOf(c.m.t, r, isRouteName) {
			if !asked[name] {
				asked[name] = true
				c.m.scene.must(client.Subscribe(envoy.RouteType, name))
			}
		}
	}
}

func (c *phasedClient) check(r xdstest.Response) {
	c.m.t.Helper()
	if r.TypeURL == envoy.ClusterType {
		for name := range c.accepted[r.TypeURL] {
			if _, now := c.after(r)[name]; !now {
				c.checkUsers(name)
			}
		}
		return
	}
	if r.TypeURL != envoy.ListenerType && r.TypeURL != envoy.RouteType {
		return
	}
	exist := c.there[envoy.ClusterType]
	for _, res := range r.Resources {
		if had, ok := c.accepted[r.TypeURL][res.Name]; ok && slices.Equal(had.Any.GetValue(), res.Any.GetValue()) {
			continue
		}
		for _, name := range namedClusters(c.m.t, res) {
			_, exists := exist[name]
			if _, ok := c.accepted[envoy.ClusterType][name]; exists && !ok {
				c.m.t.Errorf("%s leads to %s, which is not accepted", res.Name, name)
			}
		}
	}
}

// checkUsers checks that nothing leads to a cluster that goes, but for what leads there now.
func (c *phasedClient) checkUsers(cluster string) {
	c.m.t.Helper()
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType} {
		for name, had := range c.accepted[typeURL] {
			_, ok := c.there[typeURL][name]
			if ok && !c.dangling[cluster] && slices.Contains(namedClusters(c.m.t, had), cluster) {
				c.m.t.Errorf("cluster %s goes while %s leads to it", cluster, name)
			}
		}
	}
}

// after returns what the client has of a type when it has accepted a response.
func (c *phasedClient) after(r xdstest.Response) map[string]xdstest.Resource {
	out := maps.Clone(c.accepted[r.TypeURL])
	if out == nil || !c.delta && (r.TypeURL == envoy.ClusterType || r.TypeURL == envoy.ListenerType) {
		out = make(map[string]xdstest.Resource)
	}
	for _, res := range r.Resources {
		out[res.Name] = res
	}
	for _, name := range r.Removed {
		delete(out, name)
	}
	return out
}

// answer accepts a response, if there is one: the first of any type.
func (c *phasedClient) answer() {
	c.m.t.Helper()
	if len(c.waiting) == 0 {
		return
	}
	typeURL := c.waiting[c.m.rand.IntN(len(c.waiting))].TypeURL
	i := slices.IndexFunc(c.waiting, func(r xdstest.Response) bool { return r.TypeURL == typeURL })
	r := c.waiting[i]
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.accepted[typeURL] = c.after(r)
	c.m.scene.must(c.Ack(r))
	if typeURL == envoy.ListenerType {
		before := len(c.asked)
		c.asks(c.Client, c.asked, c.accepted[typeURL])
		if len(c.asked) > before {
			c.look()
		}
	}
	c.follow()
}

// finish accepts everything: then the client has what there is.
func (c *phasedClient) finish() {
	c.m.t.Helper()
	const endless = 10_000
	for n := 0; ; n++ {
		if n == endless {
			c.m.t.Fatal("there are always more responses")
		}
		if len(c.waiting) == 0 {
			time.Sleep(51 * time.Millisecond) // routes may wait for threads that switch listeners
			if c.follow(); len(c.waiting) == 0 {
				break
			}
		}
		c.answer()
	}
	for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType} {
		want, got := c.there[typeURL], c.State().Resources(typeURL)
		for name, r := range want {
			if !slices.Equal(r.Any.GetValue(), got[name].Any.GetValue()) {
				c.m.t.Errorf("it has another %s in the end", name)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			c.m.t.Errorf("it has %q in the end", slices.Sorted(maps.Keys(got)))
		}
	}
}

// namedClusters returns the clusters that a resource names.
func namedClusters(tb testing.TB, r xdstest.Resource) []string {
	tb.Helper()
	return stringsOf(tb, r, namesCluster)
}

// stringsOf returns what some fields of a resource have.
func stringsOf(tb testing.TB, r xdstest.Resource, in func(protoreflect.FieldDescriptor) bool) (out []string) {
	tb.Helper()
	message, err := r.Message()
	if err == nil {
		err = protorange.Range(message.ProtoReflect(), func(p protopath.Values) error {
			if last := p.Index(-1); last.Step.Kind() == protopath.FieldAccessStep && in(last.Step.FieldDescriptor()) {
				out = append(out, last.Value.String())
			}
			return nil
		})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// namesCluster reports whether a field has the name of a cluster.
func namesCluster(f protoreflect.FieldDescriptor) bool {
	weighted := f.Name() == "name" && strings.HasSuffix(string(f.Parent().FullName()), "WeightedCluster.ClusterWeight")
	return f.Kind() == protoreflect.StringKind && (f.Name() == "cluster" || weighted)
}

func isRouteName(f protoreflect.FieldDescriptor) bool { return f.Name() == "route_config_name" }
