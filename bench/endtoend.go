// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"

	"google.golang.org/grpc"
)

// endToEnd writes the times from the change of an endpoint in a registry until some clients have it,
// beside idle clients of other services. No other module has a registry to compare with.
func endToEnd(w io.Writer, sizes []int, changes int) {
	fmt.Fprintf(w, "\n## End to end: an endpoint changes in a registry, until all clients of its service have it\n\n"+
		"pilotkit alone, because no other module has registries. Each client has one load assignment; idle clients have load\n"+
		"assignments of other services. %d changes, one after the other.\n\n| services | clients | idle | p50 | p99 |\n|---|---|---|---|---|\n", changes)
	for _, n := range sizes {
		for _, of := range []struct{ clients, idle int }{{1, 0}, {10, 0}, {100, 0}, {1_000, 0}, {1, 5_000}} {
			times := moves(n, of.clients, of.idle, changes)
			fmt.Fprintf(w, "| %d | %d | %d | %v | %v |\n", n, of.clients, of.idle, round(times[len(times)/2]), round(times[len(times)*99/100]))
		}
	}
}

func service(i int) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(nameOf(i) + ".example.com"), Attributes: registry.ServiceAttributes{Name: nameOf(i), Namespace: "shop"},
		Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	}
}

func endpoint(version int) []*registry.Endpoint {
	return []*registry.Endpoint{{
		Addresses: []string{fmt.Sprintf("10.0.%d.%d", version/250%250, version%250+1)}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http",
	}}
}

// moves returns the sorted times of some changes.
func moves(n, clients, idle, changes int) []time.Duration {
	registries := aggregate.NewController()
	s := ads.New(registries, ads.Options{Debounce: undelayed()})
	var services *memory.Registry
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		services = memory.New(memory.Options{Updater: updater})
		return services
	})
	for i := range n {
		check(services.Set(service(i), endpoint(0)))
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); s.Run(end) }()
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	s.Register(grpcServer)
	l := listen()
	stop := serveUntil(grpcServer, l)
	var all []*client
	for i := range clients + idle {
		of := 0
		if i >= clients {
			of = 1 + i%(n-1)
		}
		c := dial(l.Addr().String(), fmt.Sprintf("outbound|80||%s", service(of).Hostname))
		c.receive(1)
		all = append(all, c)
	}
	received := make(chan struct{}, clients)
	for _, c := range all[:clients] {
		go func() {
			for range changes {
				c.receive(1)
				received <- struct{}{}
			}
		}()
	}
	var times []time.Duration
	for version := range changes {
		begun := time.Now()
		check(services.SetEndpoints(service(0).Hostname, "shop", endpoint(version+1)))
		for range clients {
			<-received
		}
		times = append(times, time.Since(begun))
	}
	for _, c := range all {
		c.close()
	}
	stop()
	close(end)
	<-ended
	slices.Sort(times)
	return times
}
