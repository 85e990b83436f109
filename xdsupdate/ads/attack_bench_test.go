// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// attackOn is the environment variable that makes a process of this test attack the
// server with that address, with the attack after a space.
const attackOn = "PILOTKIT_ADS_ATTACK_ON"

// attacks are clients that try to take as much from others as they can. Each runs until its process
// is killed.
var attacks = map[string]func(address string){
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
	address := f.serveOn(ads.PacedListener(listen(b), 500), ads.ServerOptions()...).Addr().String()
	c, change := f.watched(b, address, names)
	if attack != "quiet" {
		startAttack(b, address, attack)
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		change()
		c.receive(b)
		took = append(took, time.Since(begun))
		time.Sleep(time.Millisecond) // attackers are not to be kept from it by changes
	}
	reportQuantiles(b, took)
}

// startAttack starts the process and waits until it has begun.
func startAttack(b *testing.B, address, attack string) {
	b.Helper()
	_, out := startProcess(b, "TestAttackProcess", attackOn+"="+address+" "+attack, "nice", "-n", "19")
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
	attacks[attack](address)
	time.Sleep(time.Second) // the clients have used up the work that they may request at once
	fmt.Println("begun")
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

// open opens a stream, and drops the responses.
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

// repeat has clients send requests, over and over, after an optional first one.
func repeat(address, method string, clients int, requests func(client int) (first []byte, rest [][]byte)) {
	for i := range clients {
		a := newAttacker(address, method)
		go func() {
			first, rest := requests(i)
			if first != nil {
				a.send(first)
			}
			for {
				for _, r := range rest {
					a.send(r)
				}
			}
		}()
	}
}

func deltaRequest(typeURL string, subscribe, unsubscribe []string) []byte {
	return encodedRequest(&discovery.DeltaDiscoveryRequest{
		Node: node("bad", "shop"), TypeUrl: typeURL, ResourceNamesSubscribe: subscribe, ResourceNamesUnsubscribe: unsubscribe,
	})
}

// attackNames: clients subscribe to names, give them up, and so on.
func attackNames(clients int, delta bool, count int) func(string) {
	return func(address string) {
		method := sotwMethod
		if delta {
			method = deltaMethod
		}
		repeat(address, method, clients, func(client int) (first []byte, rest [][]byte) {
			all := make([]string, count)
			for k := range all {
				all[k] = fmt.Sprintf("outbound|80||%d-%06d.example.com", client, k)
			}
			if delta {
				return nil, [][]byte{
					deltaRequest(envoy.LoadAssignmentType, all, nil), deltaRequest(envoy.LoadAssignmentType, nil, all),
				}
			}
			for _, some := range [][]string{all, all[count/2:]} { // there are none, and so no responses
				rest = append(rest, encodedRequest(&discovery.DiscoveryRequest{Node: node("bad", "shop"), TypeUrl: envoy.RouteType, ResourceNames: some}))
			}
			return nil, rest
		})
	}
}

// attackFlood: clients subscribe to one name more and give it up, as fast as they can.
func attackFlood(clients, count int) func(string) {
	return func(address string) {
		var names []string
		for k := range count {
			names = append(names, fmt.Sprintf("invented-%06d", k))
		}
		one := []string{cluster("service-00009.example.com")}
		repeat(address, deltaMethod, clients, func(int) (first []byte, rest [][]byte) {
			return deltaRequest(envoy.RouteType, names, nil), [][]byte{
				deltaRequest(envoy.RouteType, one, nil), deltaRequest(envoy.RouteType, nil, one),
			}
		})
	}
}

// attackRefusals has clients reject all responses, with long errors, again and again.
func attackRefusals(clients, bytes int) func(string) {
	return func(address string) {
		refusal := encodedRequest(&discovery.DeltaDiscoveryRequest{
			Node: node("bad", "shop"), TypeUrl: envoy.ClusterType, ResponseNonce: "1",
			ErrorDetail: &status.Status{Message: strings.Repeat("no ", bytes/3)},
		})
		repeat(address, deltaMethod, clients, func(int) ([]byte, [][]byte) { return nil, [][]byte{refusal} })
	}
}

// attackLarge: clients send requests that are far too large.
func attackLarge(clients, bytes int) func(string) {
	return func(address string) {
		request := deltaRequest(envoy.ClusterType, []string{strings.Repeat("x", bytes)}, nil)
		repeat(address, deltaMethod, clients, func(int) ([]byte, [][]byte) { return nil, [][]byte{request} })
	}
}

// attackConnects: clients connect, ask for everything and leave.
func attackConnects(clients int) func(string) {
	return func(address string) {
		request := deltaRequest(envoy.ClusterType, nil, nil)
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
	}
}

// attackHalfOpen: connections that never become one of HTTP/2, and are opened again.
func attackHalfOpen(clients int) func(string) {
	return func(address string) {
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
	}
}

// attackUnread: clients ask for everything and read nothing.
func attackUnread(clients int) func(string) {
	return func(address string) {
		request := deltaRequest(envoy.ClusterType, nil, nil)
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
	}
}
