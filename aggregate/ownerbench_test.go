// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// BenchmarkEndpointChange changes one endpoint of a service of many, in a registry whose
// updater is that of the Controller, and the same without a Controller.
func BenchmarkEndpointChange(b *testing.B) {
	for name, wire := range map[string]func(p *xdsupdate.Pusher, create func(xdsupdate.XDSUpdater) registry.Instance){
		"aggregate": func(p *xdsupdate.Pusher, create func(xdsupdate.XDSUpdater) registry.Instance) {
			c := aggregate.NewController()
			c.AttachUpdater(p)
			c.AddRegistry(create)
		},
		"direct": func(p *xdsupdate.Pusher, create func(xdsupdate.XDSUpdater) registry.Instance) { create(p) },
	} {
		for _, n := range []int{1000} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				var r *memory.Registry
				wire(xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}), func(u xdsupdate.XDSUpdater) registry.Instance {
					r = memory.New(memory.Options{Provider: registry.External, Cluster: "c1", Updater: u})
					return r
				})
				var hosts []registry.Hostname
				versions := [2]*registry.Endpoint{endpointOn("10.0.0.1"), endpointOn("10.0.0.1")}
				versions[1].HealthStatus = registry.UnHealthy
				for i := range n {
					s := benchService(i, "c1")
					if err := r.SetService(s); err != nil {
						b.Fatal(err)
					}
					if err := r.SetEndpoints(s.Hostname, "ns", []*registry.Endpoint{versions[0]}); err != nil {
						b.Fatal(err)
					}
					hosts = append(hosts, s.Hostname)
				}
				i, version := 0, make([]byte, n)
				for b.Loop() {
					i = (i + benchStride) % n
					version[i] ^= 1
					if err := r.AddEndpoint(hosts[i], "ns", versions[version[i]]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
