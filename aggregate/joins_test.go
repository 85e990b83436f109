// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// A registry joins, replaces another one and leaves as one update: each push has its services and its endpoints, or
// neither.
func TestJoinsAndLeavesAreOneUpdate(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			c := aggregate.NewController()
			var root *xdsupdate.Root
			pushes := 0
			pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
				pushes++
				services, exact := c.ServicesAt(c, root)
				if !exact {
					t.Error("services were read past the root")
				}
				for _, host := range []registry.Hostname{"a", "b"} {
					defined, served := "", ""
					if s := services.Get(host); s != nil {
						defined = s.DefaultAddress
					}
					for e := range root.Endpoints().Service(host, "ns").All() {
						served = "240.0.0." + strconv.Itoa(int(e.EndpointPort))
					}
					if defined != served {
						t.Errorf("push %d: %s is defined as %q and has endpoints of %q", pushes, host, defined, served)
					}
				}
			}, xdsupdate.PusherOptions{
				Debounce: xdsupdate.Debounce{After: -1},
				Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
					root = now
					return true
				},
			})
			c.AttachUpdater(pusher)
			stop := make(chan struct{})
			var running sync.WaitGroup
			running.Go(func() { pusher.Run(stop) })
			joining := func(version int) func(xdsupdate.XDSUpdater) registry.Instance {
				return func(u xdsupdate.XDSUpdater) registry.Instance {
					r := memory.New(memory.Options{Cluster: "c", Updater: u})
					for _, host := range []registry.Hostname{"a", "b"} {
						s := service(string(host), "ns")
						s.DefaultAddress = "240.0.0." + strconv.Itoa(version)
						if err := r.Set(s, []*registry.Endpoint{{
							Addresses: []string{"10.0.0.1"}, EndpointPort: uint32(version), ServicePort: 80, ServicePortName: "http",
						}}); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
					}
					return r
				}
			}
			// With many updates to hold back, a join that is no single update is seen between its parts.
			c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				r := joining(1)(u)
				shard := xdsupdate.ShardKeyOf(r)
				for range 50_000 {
					u.SvcUpdate(shard, "other", "ns", registry.EventUpdate)
				}
				return r
			})
			c.DeleteRegistry("c", registry.Memory)
			for version := 1; version < 200; version += 2 {
				c.AddRegistry(joining(version))
				runtime.Gosched()
				c.UpdateRegistry(joining(version + 1))
				runtime.Gosched()
				if !c.DeleteRegistry("c", registry.Memory) {
					t.Fatal("there is no registry")
				}
			}
			if err := pusher.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			close(stop)
			running.Wait()
			if pushes < 3 {
				t.Errorf("%d pushes are too few", pushes)
			}
		})
	}
}
