// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// foreign is a registry of the host's own that wraps none of this module.
type foreign struct{ registry.Instance }

// TestServicesOutsideOfRoots: the services of registries that set them in their updates are those of the root. A
// registry that sets none has its present services, and the read is not exact.
func TestServicesOutsideOfRoots(t *testing.T) {
	var root *xdsupdate.Root
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
		Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
			root = now
			return true
		},
	})
	c := aggregate.NewController(aggregate.Options{Updater: pusher})
	var own *memory.Registry
	c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		own = memory.New(memory.Options{Cluster: "c1", Updater: u})
		return own
	})
	set(t, own, service("a", "ns"))
	if err := pusher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(what string, exact bool, hosts ...registry.Hostname) {
		t.Helper()
		services, got := c.ServicesAt(c, root)
		expect(t, what+": exact", got, exact)
		var found []registry.Hostname
		for _, s := range services.List() {
			found = append(found, s.Hostname)
		}
		expect(t, what, found, hosts)
	}
	set(t, own, service("b", "ns"))
	read("a registry of this module", true, "a")
	other := memory.New(memory.Options{Cluster: "c2", Updater: pusher})
	c.AddRegistry(given(foreign{other}))
	read("before it has joined", true, "a")
	set(t, other, service("c", "ns"))
	if err := pusher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	read("with a foreign one", false, "a", "b", "c")
}
