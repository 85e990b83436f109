// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// indexed returns the addresses that the index has for a service.
func indexed(pusher *xdsupdate.Pusher, hostname registry.Hostname, namespace string) string {
	service := pusher.Index().Service(hostname, namespace)
	if service == nil {
		return ""
	}
	var out []string
	for e := range service.All() {
		out = append(out, e.Address())
	}
	return strings.Join(out, " ")
}

// endpointOn returns an endpoint for the port of service().
func endpointOn(address string) *registry.Endpoint {
	return &registry.Endpoint{Addresses: []string{address}, EndpointPort: 80, ServicePort: 80, ServicePortName: "http"}
}

// fill gives a registry the service "a" with endpoints.
func fill(t *testing.T, r *memory.Registry, addresses ...string) {
	t.Helper()
	set(t, r, service("a", "ns"))
	var endpoints []*registry.Endpoint
	for _, address := range addresses {
		endpoints = append(endpoints, endpointOn(address))
	}
	if err := r.SetEndpoints("a", "ns", endpoints); err != nil {
		t.Fatal(err)
	}
}

// unclaimable is an updater that cannot be claimed, with an index behind it.
type unclaimable struct{ xdsupdate.XDSUpdater }

// withUpdaters runs a test with an updater that can be claimed and one that
// cannot.
func withUpdaters(t *testing.T, test func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater)) {
	t.Helper()
	for name, wrap := range map[string]func(*xdsupdate.Pusher) xdsupdate.XDSUpdater{
		"claimed": func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return p },
		"fenced":  func(p *xdsupdate.Pusher) xdsupdate.XDSUpdater { return unclaimable{p} },
	} {
		t.Run(name, func(t *testing.T) {
			pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
			test(t, pusher, wrap(pusher))
		})
	}
}

// A registry that was deleted or replaced may still be at work. What it sends to
// its updater must not reach the shard.
func TestLateWritesOfAReplacedRegistryAreIgnored(t *testing.T) {
	withUpdaters(t, func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater) {
		t.Helper()
		addresses := func() string { return indexed(pusher, "a", "ns") }
		c := aggregate.NewController(aggregate.Options{Updater: updater})
		leased := func(r **memory.Registry, address string) func(xdsupdate.XDSUpdater) registry.Instance {
			return func(u xdsupdate.XDSUpdater) registry.Instance {
				*r = memory.New(memory.Options{Provider: registry.Kubernetes, Cluster: "c1", Updater: u})
				if address != "" {
					fill(t, *r, address)
				}
				return *r
			}
		}
		var first, second, third *memory.Registry
		c.AddRegistry(leased(&first, ""))
		fill(t, first, "1.1.1.1")
		set(t, first, service("b", "ns"))
		if err := first.AddEndpoint("b", "ns", endpointOn("1.1.1.2")); err != nil {
			t.Fatal(err)
		}
		expect(t, "endpoints", addresses(), "1.1.1.1")
		c.UpdateRegistry(leased(&second, "2.2.2.2"))
		fill(t, first, "1.1.1.9")
		expect(t, "endpoints after a late write of the predecessor", addresses(), "2.2.2.2")
		expect(t, "endpoints of a service that the successor does not have", indexed(pusher, "b", "ns"), "")
		if c.DeleteRegistryIfCurrent(first) || !c.DeleteRegistryIfCurrent(second) {
			t.Error("DeleteRegistryIfCurrent deletes what is not current")
		}
		expect(t, "endpoints after the deletion", addresses(), "")
		fill(t, second, "2.2.2.9")
		expect(t, "endpoints after a late write of the deleted registry", addresses(), "")
		c.AddRegistry(leased(&third, "3.3.3.3"))
		fill(t, first, "1.1.1.8")
		fill(t, second, "2.2.2.8")
		expect(t, "endpoints of a registry that came later", addresses(), "3.3.3.3")
	})
}

// The lease of a registry that writes nothing before it is replaced must not be
// worth anything afterwards, nor while its successor is being made.
func TestLeaseUsedForTheFirstTimeTooLate(t *testing.T) {
	withUpdaters(t, func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater) {
		t.Helper()
		c := aggregate.NewController(aggregate.Options{Updater: updater})
		var first *memory.Registry
		c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			first = memory.New(memory.Options{Updater: u})
			return first
		})
		c.UpdateRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			r := memory.New(memory.Options{Updater: u})
			fill(t, r, "2.2.2.2")
			fill(t, first, "1.1.1.1")
			return r
		})
		fill(t, first, "1.1.1.2")
		expect(t, "endpoints", indexed(pusher, "a", "ns"), "2.2.2.2")
	})
}

// Until the successor has synced, the endpoints of its predecessor stay.
func TestPredecessorsEndpointsStayUntilTheSuccessorHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, look := range map[string]func(*aggregate.Controller){
			"by HasSynced": func(c *aggregate.Controller) { c.HasSynced() },
			"by Run":       func(*aggregate.Controller) { time.Sleep(time.Minute) },
		} {
			pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
			c := aggregate.NewController(aggregate.Options{Updater: pusher})
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				c.Run(stop)
			}()
			c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				r := memory.New(memory.Options{Updater: u})
				fill(t, r, "1.1.1.1")
				return r
			})
			synced := make(chan struct{})
			c.UpdateRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				return memory.New(memory.Options{Updater: u, HasSynced: func() bool {
					select {
					case <-synced:
						return true
					default:
						return false
					}
				}})
			})
			look(c)
			expect(t, name+": endpoints before", indexed(pusher, "a", "ns"), "1.1.1.1")
			close(synced)
			look(c)
			expect(t, name+": endpoints afterwards", indexed(pusher, "a", "ns"), "")
			close(stop)
			<-ended
		}
	})
}

// Whoever has read the services is asked to read them again when registries come
// and go, whatever they have and whatever they send.
func TestMembersThatComeAndGoArePushed(t *testing.T) {
	var pushed []string
	updater := &configs{on: func(req *xdsupdate.PushRequest) { pushed = append(pushed, req.String()) }}
	c := aggregate.NewController()
	c.AttachUpdater(updater)
	filled := func(services ...*registry.Service) *memory.Registry {
		r := newRegistry(registry.External, "c1")
		set(t, r, services...)
		return r
	}
	c.AddRegistry(given(newRegistry(registry.External, "empty")))
	c.AddRegistry(given(filled(service("a", "ns"), service("b", "ns"))))
	c.UpdateRegistry(given(filled(service("a", "ns"), service("b", "other"))))
	c.DeleteRegistry("c1", registry.External)
	expect(t, "pushes", pushed, []string{
		"full push of ServiceEntry/ns/a,ServiceEntry/ns/b (service 1)",
		"full push of ServiceEntry/ns/a,ServiceEntry/ns/b,ServiceEntry/other/b (service 1)",
		"full push of ServiceEntry/ns/a,ServiceEntry/other/b (service 1)",
	})
}

// configs hands on requests of pushes.
type configs struct {
	xdsupdate.Discard
	on func(*xdsupdate.PushRequest)
}

func (c *configs) ConfigUpdate(req *xdsupdate.PushRequest) { c.on(req) }

func TestUpdatersAreAttachedBeforeRegistriesAreMade(t *testing.T) {
	one, two := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}), xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
	c := aggregate.NewController(aggregate.Options{Updater: one})
	c.AttachUpdater(two)
	c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		if _, ok := u.(xdsupdate.EndpointDeltaUpdater); !ok {
			t.Error("the updater takes no deltas, although those behind it do")
		}
		r := memory.New(memory.Options{Updater: u})
		fill(t, r, "1.1.1.1")
		return r
	})
	expect(t, "endpoints of the first", indexed(one, "a", "ns"), "1.1.1.1")
	expect(t, "endpoints of the second", indexed(two, "a", "ns"), "1.1.1.1")
	c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		return memory.New(memory.Options{Cluster: "c2", Updater: u})
	})
	defer func() {
		if recover() == nil {
			t.Error("an updater was attached that the registries do not know")
		}
	}()
	c.AttachUpdater(one)
}

// TestForgottenUpdater: the log says once that registries are made without an updater, what that
// means and what to do; not if there is one, or if Discard says that none is wanted.
func TestForgottenUpdater(t *testing.T) {
	for name, test := range map[string]struct {
		updater  xdsupdate.XDSUpdater
		attached bool
		want     int
	}{
		"none": {want: 1}, "discard": {updater: xdsupdate.Discard{}}, "own": {updater: xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})}, "attached": {attached: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			c := aggregate.NewController(aggregate.Options{Updater: test.updater, Logger: logger})
			if test.attached {
				c.AttachUpdater(xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}))
			}
			for range 2 {
				c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
					return memory.New(memory.Options{Updater: u, Logger: logger})
				})
			}
			expect(t, "lines", strings.Count(log.String(), "\n"), test.want)
			const text = `msg="the registries have no updater, so that nothing is pushed: set Options.Updater or create the ads.Server ` +
				`before the first registry; xdsupdate.Discard{} means that none is wanted"`
			expect(t, "the text", strings.Count(log.String(), text), test.want)
		})
	}
}

// A nil updater is Discard, and so is one that is attached.
func TestRegistriesWithoutUpdater(t *testing.T) {
	c := aggregate.NewController()
	c.AttachUpdater(nil)
	made := c.AddRegistryAndRun(func(u xdsupdate.XDSUpdater) registry.Instance {
		r := memory.New(memory.Options{Updater: u})
		fill(t, r, "1.1.1.1")
		return r
	}, nil)
	expect(t, "services", listed(c.Services()), []string{"Memory/ns/a"})
	if c.Registries()[0] != made || !c.DeleteRegistryIfCurrent(made) {
		t.Error("AddAndRun does not return the registry")
	}
}

// What is written to a shard that is not the registry's goes with the registry.
func TestAllShardsOfARegistryAreRemoved(t *testing.T) {
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
	outer := aggregate.NewController(aggregate.Options{Updater: pusher})
	outer.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		inner := aggregate.NewController(aggregate.Options{Updater: u})
		for _, cluster := range []registry.ClusterID{"c1", "c2"} {
			inner.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				r := memory.New(memory.Options{Cluster: cluster, Updater: u})
				fill(t, r, "1.1.1.1")
				return r
			})
		}
		return instance(inner)
	})
	expect(t, "endpoints", indexed(pusher, "a", "ns"), "1.1.1.1 1.1.1.1")
	outer.DeleteRegistry("all", registry.Memory)
	expect(t, "endpoints", indexed(pusher, "a", "ns"), "")
}
