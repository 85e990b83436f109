// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// BenchmarkNamesSotW: an endpoint changes, until a SotW client in another process
// that names n load assignments has it, and has answered the change before: its ACK
// repeats all names. The CPU time is the server's. The limit is a server that reads
// the same bytes and does not look at them.
func BenchmarkNamesSotW(b *testing.B) {
	for _, n := range []int{1, 1_000, 10_000} {
		b.Run(fmt.Sprintf("ads/n=%d", n), func(b *testing.B) {
			f, names := benchServer(b, n)
			const host = "service-00000.example.com"
			old, spare := benchEndpoints(0), benchEndpoints(1)
			f.eds(host, "shop", old...)
			f.flush()
			benchNames(b, f.listener.Addr().String(), names, n, func() {
				f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
				old[0], spare[0] = spare[0], old[0]
			})
		})
		b.Run(fmt.Sprintf("limit/n=%d", n), func(b *testing.B) {
			_, names := benchServer(b, n)
			svc := service("service-00000.example.com", "shop")
			value, err := proto.Marshal(xdsbuild.LoadAssignment(svc, svc.Ports[0], benchEndpoints(0), envoy.ForEnvoy))
			if err != nil {
				b.Fatal(err)
			}
			m := &discovery.DiscoveryResponse{VersionInfo: "0123456789abcdef", TypeUrl: envoy.LoadAssignmentType, Nonce: "1"}
			m.ProtoReflect().SetUnknown(appendString(nil, 2, string(value)))
			message, err := proto.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			address, opened := limitServer(b, message)
			var push chan<- struct{}
			benchNames(b, address, names, 0, func() {
				if push == nil {
					push = <-opened
				}
				push <- struct{}{}
			})
		})
	}
}

// benchNames connects a client of some names, which takes so many resources at first,
// and then has change called until it has received each change.
func benchNames(b *testing.B, address string, names []string, resources int, change func()) {
	b.Helper()
	process := startClients(b, address)
	command := clientsCommand{Clients: 1, TypeURL: envoy.LoadAssignmentType, Names: names, Resources: resources, Responses: 1 << 30}
	command.First = firstRequest(b, false, command.TypeURL, names, nil)
	process.start(command)
	if resources == 0 {
		change()
	}
	process.wait()
	b.ReportAllocs()
	defer cputime.Report(b, "op", 1)()
	for b.Loop() {
		change()
		process.wait()
	}
}
