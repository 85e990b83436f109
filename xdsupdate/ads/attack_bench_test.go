// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// attackOn is the environment variable that makes a process of this test attack the
// server with that address, with the attack after a space.
const attackOn = "PILOTKIT_ADS_ATTACK_ON"

// attacks are what clients do that take from others what they can. Each runs until its
// process is killed; it calls ready when it has begun.
var attacks = map[string]func(address string, ready func()){
	"names-delta": attackNames(3, true, 100_000),
	"names-sotw":  attackNames(3, false, 100_000),
	"flood":       attackFlood(5, 0),
	"flood-wide":  attackFlood(5, 20_000),
	"refusals":    attackRefusals(3, 300<<10),
	"large":       attackLarge(3, 100<<20),
	"connects":    attackConnects(2_000),
	"half-open":   attackHalfOpen(2_000),
	"never-reads": attackUnread(50),
}

// BenchmarkAttack: how long a client waits for the change of an endpoint while others
// attack the server from another process, which has the lowest priority: attackers
// have machines of their own.
func BenchmarkAttack(b *testing.B) {
	names := []string{"quiet"}
	for name := range attacks {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	for _, name := range names {
		b.Run(name, func(b *testing.B) { benchAttack(b, name) })
	}
}

func benchAttack(b *testing.B, attack string) {
	b.Helper()
	f, names := benchServer(b, 10_000)
	const host = "service-00007.example.com"
	old, spare := benchEndpoints(0), benchEndpoints(1)
	f.eds(host, "shop", old...)
	f.flush()
	address := f.serveOn(ads.PacedListener(listen(b), 500), ads.ServerOptions()...).Addr().String()
	c := &rawClient{stream: dialRaw(b, address, deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType, names: names[7:8]}
	c.subscribe(b, 1)
	f.waitApplied()
	if attack != "quiet" {
		startAttack(b, address, attack)
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
		old[0], spare[0] = spare[0], old[0]
		c.receive(b)
		took = append(took, time.Since(begun))
		time.Sleep(time.Millisecond) // attackers are not to be kept from it by changes
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

// startAttack starts the process and waits until it has begun.
func startAttack(b *testing.B, address, attack string) {
	b.Helper()
	command := []string{os.Args[0], "-test.run=^TestAttackProcess$", "-test.v=false"}
	if nice, err := exec.LookPath("nice"); err == nil {
		command = append([]string{nice, "-n", "19"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // this program, which is killed in the end
	cmd.Env = append(os.Environ(), attackOn+"="+address+" "+attack)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
}

// TestAttackProcess is the process of an attack.
func TestAttackProcess(t *testing.T) {
	address, attack, found := strings.Cut(os.Getenv(attackOn), " ")
	if !found {
		t.Skip("it is the attackers of benchmarks, in a process of their own")
	}
	attacks[attack](address, func() { fmt.Println("begun") })
	select {}
}

// attacker is a stream whose responses are dropped.
type attacker struct {
	conn   *grpc.ClientConn
	stream grpc.ClientStream
	method string
}

func newAttacker(address, method string) *attacker {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		panic(err)
	}
	return &attacker{conn: conn, method: method}
}

// open opens a stream, and drops what comes.
func (a *attacker) open() {
	stream, err := a.conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, a.method)
	if err != nil {
		time.Sleep(time.Millisecond)
		return
	}
	a.stream = stream
	go func() {
		for {
			var data []byte
			if stream.RecvMsg(&data) != nil {
				return
			}
		}
	}()
}

// send sends a request, on a new stream if the one before has ended.
func (a *attacker) send(request []byte) {
	for a.stream == nil || a.stream.SendMsg(&request) != nil {
		a.open()
	}
}

func encodedRequest(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

// attackNames: clients subscribe to names, give them up, and so on.
func attackNames(clients int, delta bool, count int) func(string, func()) {
	return func(address string, ready func()) {
		for i := range clients {
			names := make([][]string, 2)
			for k := range count {
				names[k%2] = append(names[k%2], fmt.Sprintf("outbound|80||%d-%06d.example.com", i, k))
			}
			var requests [][]byte
			method := deltaMethod
			if delta {
				all := slices.Concat(names...)
				requests = [][]byte{
					encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.LoadAssignmentType, ResourceNamesSubscribe: all}),
					encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.LoadAssignmentType, ResourceNamesUnsubscribe: all}),
				}
			} else {
				method = sotwMethod
				for k := range names { // the nonce of the first response, and what is no answer
					all := slices.Concat(names[k:]...)
					requests = append(requests, encodedRequest(&discovery.DiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNames: all}))
				}
			}
			a := newAttacker(address, method)
			go func() {
				for {
					for _, r := range requests {
						a.send(r)
					}
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackFlood: clients subscribe to one name more and give it up, as fast as they can.
func attackFlood(clients, count int) func(string, func()) {
	return func(address string, ready func()) {
		var names []string
		for k := range count {
			names = append(names, fmt.Sprintf("invented-%06d", k))
		}
		begin := encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNamesSubscribe: names})
		one := []string{cluster("service-00009.example.com")}
		on := encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNamesSubscribe: one})
		off := encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNamesUnsubscribe: one})
		for range clients {
			a := newAttacker(address, deltaMethod)
			go func() {
				a.send(begin)
				for {
					a.send(on)
					a.send(off)
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackRefusals: clients refuse what they were sent, at length, again and again.
func attackRefusals(clients, bytes int) func(string, func()) {
	return func(address string, ready func()) {
		refusal := encodedRequest(&discovery.DeltaDiscoveryRequest{
			Node: node("bad", "shop"), TypeUrl: envoy.ClusterType, ResponseNonce: "1",
			ErrorDetail: &status.Status{Message: strings.Repeat("no ", bytes/3)},
		})
		for range clients {
			a := newAttacker(address, deltaMethod)
			go func() {
				for {
					a.send(refusal)
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackLarge: clients send requests that are far too large.
func attackLarge(clients, bytes int) func(string, func()) {
	return func(address string, ready func()) {
		request := encodedRequest(&discovery.DeltaDiscoveryRequest{
			Node: node("bad", "shop"), TypeUrl: envoy.ClusterType, ResourceNamesSubscribe: []string{strings.Repeat("x", bytes)},
		})
		for range clients {
			a := newAttacker(address, deltaMethod)
			go func() {
				for {
					a.send(request)
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackConnects: clients connect, ask for everything and leave.
func attackConnects(clients int) func(string, func()) {
	return func(address string, ready func()) {
		request := encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.ClusterType})
		for range clients {
			go func() {
				for {
					a := newAttacker(address, deltaMethod)
					a.send(request)
					var data []byte
					_ = a.stream.RecvMsg(&data)
					_ = a.conn.Close()
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackHalfOpen: connections that never become one of HTTP/2, and are opened again.
func attackHalfOpen(clients int) func(string, func()) {
	return func(address string, ready func()) {
		for range clients {
			go func() {
				for {
					conn, err := net.Dial("tcp", address) //nolint:noctx // the process is killed in the end
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					_, _ = conn.Write([]byte("PRI * HTTP/2.0\r\n"))
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}()
		}
		time.Sleep(time.Second)
		ready()
	}
}

// attackUnread: clients ask for everything and read nothing.
func attackUnread(clients int) func(string, func()) {
	return func(address string, ready func()) {
		request := encodedRequest(&discovery.DeltaDiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.ClusterType})
		for range clients {
			a := newAttacker(address, deltaMethod)
			stream, err := a.conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, a.method)
			if err != nil {
				panic(err)
			}
			if err := stream.SendMsg(&request); err != nil {
				panic(err)
			}
		}
		time.Sleep(time.Second)
		ready()
	}
}
