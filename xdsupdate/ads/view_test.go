// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/types/known/durationpb"
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
		options := ads.Options{
			Group: func(n *core.Node, p *registry.Proxy) any {
				if moved.Load() {
					return "west"
				}
				return localityGroup(n, p)
			},
			Generators: []ads.Generator{ads.GenerateAll("g", customType, func(v ads.View, _ *ads.PushContext) ([]ads.Resource, error) {
				return []ads.Resource{{Name: "where", Message: wrapperspb.String(v.Group.(string))}}, nil
			})},
		}
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
		f.ReviewProxies(func(p ads.ProxyStatus) bool { return p.View.Group == "east" })
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
		`namespace "shop", cluster "east", gRPC, group gold`:                  {Namespace: "shop", Cluster: "east", Client: envoy.ForGRPC, Group: "gold", Policy: 1},
		`namespace "` + strings.Repeat("n", 256) + `... (1000 bytes)", Envoy`: {Namespace: strings.Repeat("n", 1000)},
	} {
		check(t, "text", view.String(), want)
	}
}

// TestCustomizer: clusters are changed as the program says, once for all views or for
// each scope; a failure leaves the last good one.
func TestCustomizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seconds, calls atomic.Int64
		seconds.Store(3)
		var log lockedBuffer
		options := ads.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Group:  localityGroup,
			Services: ads.ServiceOptions{Customizers: []ads.Customizer{{
				Name: "timeouts", TypeURL: envoy.ClusterType,
				Customize: func(c ads.Customization) error {
					calls.Inc()
					switch s := seconds.Load(); s {
					case 0:
						return errors.New("no timeout")
					case -1:
						panic("no timeout at all")
					default:
						c.Message.(*clusterv3.Cluster).ConnectTimeout = durationpb.New(time.Duration(s) * time.Second)
						return nil
					}
				},
				Changed: func(push *ads.PushContext) iter.Seq[registry.Hostname] {
					for key := range push.Request.ConfigsUpdated {
						if key.Name == "x" {
							return slices.Values([]registry.Hostname{"a", "unknown"})
						}
					}
					return func(func(registry.Hostname) bool) {}
				},
			}, {
				Name: "alt-stat-names", TypeURL: envoy.ClusterType,
				Scope: func(v ads.View, _ *registry.Service, _ *registry.Port) any { return v.Group },
				Customize: func(c ads.Customization) error {
					c.Message.(*clusterv3.Cluster).AltStatName = c.Scope.(string)
					return nil
				},
			}}},
		}
		f := serve(t, options, service("a", "shop"), service("b", "shop"))
		f.flush()
		var clients []*xdstest.Client
		for _, name := range []string{"east", "west", "east2"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: nodeIn(name, name[:4])})
			f.subscribe(c, envoy.ClusterType)
			f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
			m, err := c.State().Resources(envoy.ClusterType)[cluster("a")].Message()
			if err != nil {
				t.Fatal(err)
			}
			check(t, "scope", m.(*clusterv3.Cluster).GetAltStatName(), name[:4])
			check(t, "timeout", timeoutOf(t, c, "a"), 3*time.Second)
			clients = append(clients, c)
		}
		check(t, "calls", calls.Load(), int64(4)) // two clusters in two scopes
		f.waitApplied()
		since := len(clients[0].Responses())
		seconds.Store(5)
		f.other()
		f.waitApplied()
		check(t, "customized anew", received(clients[0], since), []string{"CDS " + cluster("a")})
		check(t, "timeout", timeoutOf(t, clients[0], "a"), 5*time.Second)
		for _, bad := range []int64{0, -1} {
			log.take()
			seconds.Store(bad)
			f.other()
			f.waitApplied()
			if said := log.take(); !strings.Contains(said, "customizer timeouts") || !strings.Contains(said, "no timeout") {
				t.Errorf("log: %q", said)
			}
			check(t, "after a failure", timeoutOf(t, clients[0], "a"), 5*time.Second)
		}
		late := f.client(xdstest.ClientOptions{Delta: true, Node: nodeIn("late", "east")})
		f.subscribe(late, envoy.ClusterType)
		f.await(late, envoy.ClusterType, cluster("a"), cluster("b"))
		check(t, "a client that comes after a failure", timeoutOf(t, late, "a"), 5*time.Second)
	})
}
