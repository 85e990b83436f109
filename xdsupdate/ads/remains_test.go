// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestNothingRemainsOfClients: when clients have changed their subscriptions, have moved to other
// views and have left, the server has no state of them.
func TestNothingRemainsOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved atomic.Bool
		f := serve(t, ads.Options{
			Providers: []ads.Provider{grouping{making{customType, func(v ads.View, _ *ads.PushContext) map[string]proto.Message {
				return map[string]proto.Message{v.Namespace: wrapperspb.String(v.Namespace)}
			}}, func(*core.Node, *registry.Proxy) any { return moved.Load() }}},
		}, service("a", "shop"), service("b", "shop"))
		f.flush()
		before := f.Remains()
		var clients []*xdstest.Client
		for name, delta := range protocols() {
			for _, n := range []*core.Node{node(name, "shop"), node(name, "mall"), grpcNode(name, "shop")} {
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: n})
				clients = append(clients, c)
				f.subscribe(c, envoy.ClusterType)
				f.subscribe(c, customType, "*")
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"), "none")
				f.subscribe(c, envoy.ListenerType, "a:80", "none")
				f.subscribe(c, envoy.RouteType, cluster("a"), "80")
			}
		}
		synctest.Wait()
		f.waitApplied()
		moved.Store(true)
		f.ReviewProxies(nil)
		f.waitApplied()
		for _, c := range clients {
			for typeURL, name := range map[string]string{envoy.LoadAssignmentType: cluster("a"), envoy.ListenerType: "none", envoy.RouteType: "80"} {
				if err := c.Unsubscribe(typeURL, name); err != nil {
					t.Fatal(err)
				}
			}
			f.subscribe(c, envoy.ClusterType, cluster("a"))
			if err := c.Unsubscribe(envoy.ClusterType, "*"); err != nil {
				t.Fatal(err)
			}
		}
		f.define([]string{"b"}, service("a", "shop"))
		synctest.Wait()
		f.waitApplied()
		for _, c := range clients {
			c.Close()
		}
		synctest.Wait()
		check(t, "what remains", f.Remains(), before)
	})
}

// TestNameThatComesAndGoesInOneRequest: nothing remains of a name that a delta client
// subscribes to and unsubscribes from by one request.
func TestNameThatComesAndGoesInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*discovery.DeltaDiscoveryRequest{
			{ResourceNamesSubscribe: []string{cluster("a")}},
			{ResourceNamesSubscribe: []string{"b"}, ResourceNamesUnsubscribe: []string{"b"}},
		} {
			r.Node, r.TypeUrl = node("a", "shop"), envoy.ClusterType
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			check(t, "what there is of the client", f.Remains(),
				"connections 1, addresses 1, selections 1, waiting 0, types 1, topics 1, leaving 0")
		}
	})
}

// TestClientsThatWaitForTheFirstPush: until the first push, only the last request of a client
// counts.
func TestClientsThatWaitForTheFirstPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		f := serve(t, ads.Options{Providers: []ads.Provider{pausing{pause: func() { <-ready }}}}, service("a", "shop"))
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		for _, name := range []string{"x", "y", cluster("a")} {
			f.subscribe(c, envoy.ClusterType, name)
			synctest.Wait()
		}
		check(t, "what there is of the client", f.Remains(),
			"connections 1, addresses 1, selections 1, waiting 1, types 1, topics 3, leaving 0")
		close(ready)
		f.await(c, envoy.ClusterType, cluster("a"))
	})
}
