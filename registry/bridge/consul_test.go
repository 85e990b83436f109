// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
)

const webHost = "web.service.consul"

// following is a bridge that follows a Consul server, in a bubble.
type following struct {
	*testing.T
	server  *consulServer
	bridge  *bridge.Bridge
	updater *calls
}

// withConsul runs a test with a server that has two services.
func withConsul(t *testing.T, test func(f *following)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &following{T: t, server: startConsul(), updater: &calls{}}
		f.server.register("web", "web-1", "10.0.0.1", 8080)
		f.server.register("web", "web-2", "10.0.0.2", 8080)
		f.server.register("db", "db-1", "", 5432, "role=primary")
		f.bridge = bridge.New(
			&consul{client: f.server.client(), address: "http://consul", port: registry.Port{Name: "tcp", Number: 80}},
			bridge.Options{Provider: "Consul", Updater: f.updater},
		)
		end := run(f.bridge)
		time.Sleep(time.Second)
		expectShown(t, "the first list", f.bridge, "db.service.consul 10.9.9.9", webHost+" 10.0.0.1 10.0.0.2")
		expectCalls(t, "the first list", f.updater,
			"svc db.service.consul add", "svc web.service.consul add",
			"eds db.service.consul [10.9.9.9 Healthy]", "eds web.service.consul [10.0.0.1 Healthy 10.0.0.2 Healthy]")
		test(f)
		end()
		f.server.stop()
	})
}

// expect demands these calls of the updater after a second, which a change takes at most.
func (f *following) expect(when string, want ...string) {
	f.Helper()
	time.Sleep(time.Second)
	expectCalls(f.T, when, f.updater, want...)
}

func TestConsulInstances(t *testing.T) {
	withConsul(t, func(f *following) {
		time.Sleep(time.Hour) // many blocking queries return without a change
		f.expect("nothing")
		f.server.register("web", "web-3", "10.0.0.3", 8081)
		f.expect("an instance more", "eds web.service.consul [10.0.0.1 Healthy 10.0.0.2 Healthy 10.0.0.3 Healthy]")
		f.server.deregister("web-1")
		f.expect("an instance less", "eds web.service.consul [10.0.0.2 Healthy 10.0.0.3 Healthy]")
		f.server.check("web-2", "critical")
		f.expect("a check fails", "eds web.service.consul [10.0.0.2 UnHealthy 10.0.0.3 Healthy]")
		f.server.check("web-2", "passing")
		f.expect("it passes again", "eds web.service.consul [10.0.0.2 Healthy 10.0.0.3 Healthy]")
		f.server.deregister("db-1")
		f.expect("a service less", "svc db.service.consul delete")
		if f.bridge.Status().Stale() {
			f.Errorf("stale: %+v", f.bridge.Status())
		}
	})
}

// TestConsulTags: tags are labels.
func TestConsulTags(t *testing.T) {
	withConsul(t, func(f *following) {
		instances := f.bridge.InstancesByPort(f.bridge.GetService("db.service.consul"), 0)
		if got := instances[0].Endpoint.Attributes().Labels.String(); got != "role=primary" {
			f.Errorf("labels %q", got)
		}
		f.server.register("db", "db-1", "", 5432, "role=replica")
		f.expect("another tag", "eds db.service.consul [10.9.9.9 Healthy]")
	})
}

// TestConsulAway: while a server is unreachable, or responds with errors, the content stays;
// changes become visible after that.
func TestConsulAway(t *testing.T) {
	for name, away := range map[string]func(s *consulServer, gone bool){
		"connections": func(s *consulServer, gone bool) { s.listener.away(gone) },
		"errors": func(s *consulServer, gone bool) {
			if gone {
				s.setFault(http.StatusInternalServerError)
			} else {
				s.setFault(0)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withConsul(t, func(f *following) {
				away(f.server, true)
				time.Sleep(time.Minute)
				if s := f.bridge.Status(); !s.Stale() || s.Err == nil || s.Failures < 3 {
					f.Errorf("status %+v", s)
				}
				f.server.register("web", "web-3", "10.0.0.3", 8080)
				f.expect("the server is away")
				away(f.server, false)
				time.Sleep(time.Minute)
				f.expect("the server is back", "eds web.service.consul [10.0.0.1 Healthy 10.0.0.2 Healthy 10.0.0.3 Healthy]")
				if f.bridge.Status().Stale() {
					f.Errorf("stale: %+v", f.bridge.Status())
				}
			})
		})
	}
}

// TestConsulRestart: after a restart the server's indexes are lower, and unchanged services are not
// updated.
func TestConsulRestart(t *testing.T) {
	withConsul(t, func(f *following) {
		f.server.restart(time.Second, false)
		time.Sleep(10 * time.Minute)
		f.expect("a restart")
		f.server.check("web-1", "critical")
		time.Sleep(10 * time.Minute)
		f.expect("a change after a restart", "eds web.service.consul [10.0.0.1 UnHealthy 10.0.0.2 Healthy]")
	})
}

// TestConsulIndexGoesBack: a query that waits for an index that the server will not reach
// for long ends by its time, and its lower index counts as a change.
func TestConsulIndexGoesBack(t *testing.T) {
	withConsul(t, func(f *following) {
		f.server.mu.Lock() // as a server that is restored from a snapshot: without a break
		f.server.index, f.server.services, f.server.checks = 2, 2, 2
		f.server.instances = f.server.instances[1:]
		f.server.mu.Unlock()
		time.Sleep(6 * time.Minute)
		f.expect("the index went back", "eds web.service.consul [10.0.0.2 Healthy]")
	})
}

// TestConsulWithoutData: a server that comes back without data is not believed.
func TestConsulWithoutData(t *testing.T) {
	withConsul(t, func(f *following) {
		f.server.restart(10*time.Second, true)
		time.Sleep(time.Hour)
		f.expect("the server is empty")
		if s := f.bridge.Status(); !errors.Is(s.Err, bridge.ErrHeld) {
			f.Errorf("status %+v", s)
		}
		f.server.recover()
		time.Sleep(time.Minute)
		f.expect("the data is back")
		if s := f.bridge.Status(); s.Stale() {
			f.Errorf("status %+v", s)
		}
	})
}

// TestConsulDefect: an instance without a port costs its own service only.
func TestConsulDefect(t *testing.T) {
	withConsul(t, func(f *following) {
		f.server.register("web", "web-2", "10.0.0.2", 0)
		f.server.register("db", "db-2", "10.0.1.2", 5432)
		f.expect("a defect", "eds db.service.consul [10.0.1.2 Healthy 10.9.9.9 Healthy]")
		defects := f.bridge.Status().Defects
		if len(defects) != 1 || defects[0].Hostname != webHost || defects[0].Field != "endpoints[1].endpointPort" || !defects[0].Kept {
			f.Errorf("defects %v", defects)
		}
	})
}
