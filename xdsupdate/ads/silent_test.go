// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestSilentRegistries: a registry that shows services that take their endpoints
// from assignments, and never called the server, is warned of once, on a push of
// everything. Any call will do, and endpoints that another reports for it.
func TestSilentRegistries(t *testing.T) {
	of := func(host string, resolution registry.Resolution) *registry.Service {
		return service(host, "shop", func(s *registry.Service) {
			s.Attributes.Provider, s.Resolution = "silent", resolution
		})
	}
	silent := xdsupdate.ShardKey{Cluster: "c1", Provider: "silent"}
	endpoints := []*registry.Endpoint{endpoint("10.0.0.1", 80)}
	for _, test := range []struct {
		name     string
		services []*registry.Service
		call     func(*fixture)
		want     int
	}{
		{name: "no call", services: []*registry.Service{of("a", registry.ClientSideLB), of("b", registry.ClientSideLB)}, want: 1},
		{name: "other resolutions", services: []*registry.Service{of("a", registry.DNSLB), of("b", registry.Passthrough)}},
		{name: "unknown provider", services: []*registry.Service{service("a", "shop")}},
		{name: "EDSUpdate", call: func(f *fixture) { f.EDSUpdate(silent, "x", "shop", nil) }},
		{name: "EDSDeltaUpdate", call: func(f *fixture) { f.EDSDeltaUpdate(silent, "x", "shop", nil) }},
		{name: "EDSCacheUpdate", call: func(f *fixture) { f.EDSCacheUpdate(silent, "x", "shop", nil) }},
		{name: "SvcUpdate", call: func(f *fixture) { f.SvcUpdate(silent, "x", "shop", registry.EventAdd) }},
		{name: "an owner", call: func(f *fixture) { xdsupdate.NewWriters(f).New().EDSUpdate(silent, "x", "shop", nil) }},
		{name: "endpoints from another", call: func(f *fixture) { f.EDSUpdate(shard, "a", "shop", endpoints) }},
		{
			name: "endpoints of one service from another", call: func(f *fixture) { f.EDSUpdate(shard, "a", "shop", endpoints) },
			services: []*registry.Service{of("a", registry.ClientSideLB), of("b", registry.ClientSideLB)},
		},
		{
			name: "endpoints of another service from another", call: func(f *fixture) { f.EDSUpdate(shard, "b", "shop", endpoints) },
			services: []*registry.Service{of("a", registry.ClientSideLB), of("b", registry.ClientSideLB)},
		},
		{name: "a call of another", call: func(f *fixture) { f.EDSUpdate(shard, "x", "shop", endpoints) }, want: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				f := unserved(t, &log)
				f.define([]string{"a"})
				f.flush() // the first push is one of everything
				if test.call != nil {
					test.call(f)
				}
				list := test.services
				if list == nil {
					list = []*registry.Service{of("a", registry.ClientSideLB)}
				}
				f.define([]string{"a", "b"}, list...)
				f.flush()
				checkSilent(t, f, test.want)
				check(t, "after a push of some services", strings.Count(log.take(), "provider=silent"), 0)
				for _, want := range []int{test.want, 0} {
					f.define(nil, list...)
					f.flush()
					said := log.take()
					check(t, "warnings", strings.Count(said, "level=WARN"), want)
					check(t, "of the registry", strings.Count(said, "provider=silent"), want)
					checkSilent(t, f, test.want)
					check(t, "with what to do", strings.Count(said, "give the registry this server as its updater"), want)
				}
			})
		})
	}
}

// checkSilent checks that CheckRegistries names the provider, one of its services and what
// to do, or nothing.
func checkSilent(t *testing.T, f *fixture, want int) {
	t.Helper()
	err := f.CheckRegistries()
	check(t, "CheckRegistries", errors.Is(err, ads.ErrSilentRegistry), want > 0)
	if want > 0 {
		check(t, "its error", err.Error(), "provider silent, service shop/a: "+ads.ErrSilentRegistry.Error())
	}
}

// TestSilentRegistryThatReports: CheckRegistries names a registry, without a Logger and before Run,
// until its first call of any kind.
func TestSilentRegistryThatReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discovery := &services{}
		f := &fixture{Server: ads.New(discovery), services: discovery, t: t}
		checkSilent(t, f, 0) // before the first push
		provided := func(s *registry.Service) { s.Attributes.Provider = "silent" }
		f.define(nil, service("a", "", provided))
		f.flush()
		check(t, "without a namespace", f.CheckRegistries().Error(), "provider silent, service a: "+ads.ErrSilentRegistry.Error())
		f.define(nil, service("a", "shop", provided))
		f.flush()
		checkSilent(t, f, 1)
		checkSilent(t, f, 1)
		f.EDSUpdate(xdsupdate.ShardKey{Cluster: "c1", Provider: "silent"}, "x", "shop", nil)
		checkSilent(t, f, 0)
	})
}

// TestSilentRegistryAtStart: the first push is one of everything, for any request.
func TestSilentRegistryAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		f := unserved(t, &log)
		f.define([]string{"x"}, service("a", "shop", func(s *registry.Service) { s.Attributes.Provider = "silent" }))
		f.flush()
		check(t, "warnings", strings.Count(log.take(), "provider=silent"), 1)
	})
}

// unserved is a server without streams that pushes when it is flushed.
func unserved(t *testing.T, log *lockedBuffer) *fixture {
	t.Helper()
	discovery := &services{}
	server := ads.New(discovery, ads.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	return &fixture{Server: server, services: discovery, t: t}
}
