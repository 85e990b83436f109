// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// localityGroup groups proxies by locality.
func localityGroup(_ *core.Node, p *registry.Proxy) any { return p.Locality }

func nodeIn(name, region string) *core.Node {
	n := node(name, "shop")
	n.Locality = &core.Locality{Region: region}
	return n
}

// TestGroups: proxies of one namespace that the program puts into different groups
// are served differently, and one that comes into another group is served like it.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved atomic.Bool
		where := making{customType, func(v ads.View, _ *ads.PushContext) map[string]proto.Message {
			return map[string]proto.Message{"where": wrapperspb.String(v.Policy.(string))}
		}}
		options := ads.Options{Providers: []ads.Provider{grouping{where, func(n *core.Node, p *registry.Proxy) any {
			if moved.Load() {
				return "west"
			}
			return localityGroup(n, p)
		}}}}
		f := serve(t, options, service("a", "shop"))
		f.flush()
		var clients []*xdstest.Client
		for _, region := range []string{"east", "west"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: nodeIn(region, region)})
			f.subscribe(c, envoy.ClusterType)
			f.subscribe(c, customType, "where")
			f.await(c, customType, "where")
			f.await(c, envoy.ClusterType, cluster("a"))
			check(t, region, texts(c)["where"], region)
			clients = append(clients, c)
		}
		f.waitApplied()
		since := len(clients[0].Responses())
		moved.Store(true)
		f.ReviewProxies(func(p ads.ProxyStatus) bool { return p.View.Policy == "east" })
		if err := clients[0].Await(f.context(), func(xdstest.State) bool { return len(clients) > 0 }); err != nil {
			t.Fatal(err)
		}
		f.waitApplied()
		check(t, "after the move", received(clients[0], since), []string{customType + " where"})
		check(t, "after the move", texts(clients[0])["where"], "west")
	})
}

func timeoutOf(t *testing.T, c *xdstest.Client, host string) time.Duration {
	t.Helper()
	m, err := c.State().Resources(envoy.ClusterType)[cluster(host)].Message()
	if err != nil {
		t.Fatal(err)
	}
	return m.(*clusterv3.Cluster).GetConnectTimeout().AsDuration()
}

// TestViewText: the text of a view distinguishes it by the properties that its proxies report, and
// very long values are cut.
func TestViewText(t *testing.T) {
	for want, view := range map[string]ads.View{
		`namespace "", Envoy`:                                                 {},
		`namespace "shop", cluster "east", gRPC`:                              {Namespace: "shop", Cluster: "east", Client: envoy.ForGRPC, Policy: 1},
		`namespace "` + strings.Repeat("n", 256) + `... (1000 bytes)", Envoy`: {Namespace: strings.Repeat("n", 1000)},
	} {
		check(t, "text", view.String(), want)
	}
}
