// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// timeouts is a provider that gives the clusters of services a connect timeout. It answers for the
// names of clusters and makes them by package envoy; for which names there are clusters, the server
// decides.
type timeouts struct{ seconds *atomic.Int64 }

func (timeouts) Name() string                          { return "timeouts" }
func (timeouts) Attach(xdsupdate.XDSUpdater)           {}
func (timeouts) Group(*core.Node, *registry.Proxy) any { return nil }

// Provide reports the clusters of changed hosts, and all of them if the timeout may have changed.
func (t timeouts) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	if _, changed := push.Request.ConfigsUpdated[xdsupdate.ConfigKey{Name: "timeout"}]; changed {
		return timeoutsOfPush{t, push}, ads.Changes{Everything: func(_ ads.View, typeURL string) bool { return typeURL == envoy.ClusterType }}
	}
	var changes ads.Changes
	for _, host := range push.ChangedHosts() {
		for _, svc := range push.ServicesNamed(host.Hostname) {
			for _, port := range svc.Ports {
				changes.Names = append(changes.Names, ads.ChangedName{TypeURL: envoy.ClusterType, Name: envoy.ClusterName(port.Number, svc.Hostname)})
			}
		}
	}
	return timeoutsOfPush{t, push}, changes
}

type timeoutsOfPush struct {
	timeouts
	push *ads.PushContext
}

func (timeoutsOfPush) Names(ads.View, string) (iter.Seq[string], bool) { return nil, false }

func (timeoutsOfPush) Covers(ads.View, string, string) (covered, only bool) { return false, false }

func (t timeoutsOfPush) Lookup(v ads.View, typeURL, name string) ads.Answer {
	number, host, ok := envoy.ParseClusterName(name)
	if typeURL != envoy.ClusterType || !ok {
		return ads.Answer{Next: true}
	}
	for _, svc := range t.push.ServicesOf(v, host) {
		for _, port := range svc.Ports {
			if port.Number == number {
				return ads.Answer{Share: v, Build: func() (proto.Message, error) { return t.cluster(v, svc, port), nil }}
			}
		}
	}
	return ads.Answer{Next: true}
}

func (t timeoutsOfPush) cluster(v ads.View, svc *registry.Service, port *registry.Port) proto.Message {
	endpoints := t.push.Endpoints(svc.Hostname, svc.Attributes.Namespace)
	c := xdsbuild.Cluster(svc, port, slices.Collect(endpoints.All()), endpoints.ServiceAccounts(), v.Client)
	if c == nil {
		return nil
	}
	c.ConnectTimeout = durationpb.New(time.Duration(t.seconds.Load()) * time.Second)
	return c
}

// TestClustersOfServicesByAProvider: a provider changes the clusters that the server has of services.
func TestClustersOfServicesByAProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seconds atomic.Int64
		seconds.Store(3)
		f := serve(t, ads.Options{Providers: []ads.Provider{timeouts{&seconds}}}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		check(t, "at first", timeoutOf(t, c, "a"), 3*time.Second)

		f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
		f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
		f.waitApplied()
		check(t, "of a new service", timeoutOf(t, c, "b"), 3*time.Second)

		seconds.Store(5)
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: "timeout"})})
		f.waitApplied()
		for _, host := range []string{"a", "b"} {
			check(t, "changed, of "+host, timeoutOf(t, c, host), 5*time.Second)
		}
	})
}
