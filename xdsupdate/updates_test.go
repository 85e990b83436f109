// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestUpdatesBecomeRequests(t *testing.T) {
	shard := shardOf("c1")
	tests := []struct {
		name string
		call func(p *xdsupdate.Pusher)
		want []string
	}{
		{
			"new service", func(p *xdsupdate.Pusher) { p.EDSUpdate(shard, "b", ns, eps(ep("1.1.1.1"))) },
			[]string{"0s full push of ServiceEntry/default/b (endpoint 1)"},
		},
		{
			"changed endpoints", func(p *xdsupdate.Pusher) { p.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2"))) },
			[]string{"0s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)"},
		},
		{"changed endpoints, delta", func(p *xdsupdate.Pusher) {
			p.EDSDeltaUpdate(shard, host, ns, []xdsupdate.EndpointChange{{New: ep("2.2.2.2")}})
		}, []string{"0s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)"}},
		{"same endpoints", func(p *xdsupdate.Pusher) { p.EDSUpdate(shard, host, ns, eps(ep("1.1.1.1"))) }, nil},
		{
			"no endpoints", func(p *xdsupdate.Pusher) { p.EDSUpdate(shard, host, ns, nil) },
			[]string{"0s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)"},
		},
		{"cache only", func(p *xdsupdate.Pusher) { p.EDSCacheUpdate(shard, host, ns, nil) }, nil},
		{"service changed", func(p *xdsupdate.Pusher) { p.SvcUpdate(shard, host, ns, registry.EventUpdate) }, nil},
		{"service deleted", func(p *xdsupdate.Pusher) { p.SvcUpdate(shard, host, ns, registry.EventDelete) }, nil},
		{
			"shard removed", func(p *xdsupdate.Pusher) { p.RemoveShard(shard) },
			[]string{"0s full push of ServiceEntry/default/a.example.com (cluster 1)"},
		},
		{"unknown shard removed", func(p *xdsupdate.Pusher) { p.RemoveShard(shardOf("c9")) }, nil},
		{"nothing asked", func(p *xdsupdate.Pusher) { p.ConfigUpdate(nil) }, nil},
		{
			"everything, without a reason", func(p *xdsupdate.Pusher) { p.ConfigUpdate(&xdsupdate.PushRequest{Forced: true}) },
			[]string{"0s forced push of everything (unknown 1)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
				p.EDSCacheUpdate(shard, host, ns, eps(ep("1.1.1.1")))
				tt.call(p)
				got.expect(0, tt.want...)
			})
		})
	}
}

// TestEndpointsWaitForTheirService: what a redefined service has for endpoints
// means nothing to clients that have its old definition. A service that goes from
// STATIC to DNS would have none for them.
func TestEndpointsWaitForTheirService(t *testing.T) {
	shard := shardOf("c1")
	definition := &xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(host, ns)),
		Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1},
	}
	both := "full push of ServiceEntry/default/a.example.com (endpoint 1, service 1)"
	for name, updater := range map[string]func(*xdsupdate.Pusher) xdsupdate.XDSUpdater{
		"pusher": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return p },
		"owner":  func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return xdsupdate.NewWriters(p).New() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
				u := updater(p)
				u.EDSCacheUpdate(shard, host, ns, eps(ep("1.1.1.1")))
				u.SvcUpdate(shard, host, ns, registry.EventUpdate)
				u.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2")))
				got.expect(50 * time.Millisecond)
				u.ConfigUpdate(definition)
				got.expect(time.Second, "150ms "+both)

				u.EDSUpdate(shard, host, ns, eps(ep("3.3.3.3")))
				got.expect(0, "1.05s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)")

				// These endpoints wait already when the service is redefined.
				u.EDSUpdate(shard, host, ns, eps(ep("4.4.4.4")))
				time.Sleep(5 * time.Millisecond)
				u.SvcUpdate(shard, host, ns, registry.EventUpdate)
				got.expect(6*time.Millisecond, "1.06s full push of ServiceEntry/default/a.example.com (endpoint 1)")
			})
		})
	}
}

// TestIndexIsCurrentWhenPushed and so is the start of the request.
func TestIndexIsCurrentWhenPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		start := time.Now()
		var p *xdsupdate.Pusher
		p = xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
			for e := range p.Index().Service(host, ns).All() {
				got = append(got, e.Address())
			}
			if r.Start.Sub(start) != 0 {
				t.Errorf("Start is %v after the call, want 0", r.Start.Sub(start))
			}
		}, xdsupdate.PusherOptions{})
		p.EDSUpdate(shardOf("c1"), host, ns, eps(ep("1.1.1.1")))
		time.Sleep(time.Second)
		p.EDSUpdate(shardOf("c1"), host, ns, eps(ep("2.2.2.2")))
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []string{"2.2.2.2"}) {
			t.Errorf("the push saw %q", got)
		}
	})
}

func TestHooks(t *testing.T) {
	var got []string
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
		ProxyUpdate: func(cluster registry.ClusterID, ip string) { got = append(got, string(cluster)+" "+ip) },
	})
	p.ProxyUpdate("c1", "1.1.1.1")
	p.RemoveShard(shardOf("c1"))
	p.RemoveShard(shardOf(""))
	if want := []string{"c1 1.1.1.1"}; !slices.Equal(got, want) {
		t.Errorf("hooks got %q, want %q", got, want)
	}
	bare := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	bare.ProxyUpdate("c1", "1.1.1.1")
	bare.RemoveShard(shardOf("c1"))
}
