// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// clientsAddress is the environment variable that makes a process of this test a
// process of raw clients, of the server with that address.
const clientsAddress = "PILOTKIT_ADS_CLIENTS_OF"

// clientProcess has raw clients in a process of their own, so that the CPU time of
// the process of the benchmark is the server's alone.
type clientProcess struct {
	b   *testing.B
	in  *json.Encoder
	out *json.Decoder
}

// clientsCommand is the next command for a client process, which answers it with a clientsDone.
type clientsCommand struct {
	Clients int
	Delta   bool
	TypeURL string
	// First is the first request of each client, Second one that follows at once;
	// none if it is empty. Resources is how many resources each then takes: 0 stands
	// for one response.
	First, Second []byte
	Resources     int
	// Names are the names in the ACKs (SotW).
	Names []string
	// Responses is how many further responses each client takes after that; it
	// reports each of them with a clientsDone.
	Responses int
	// Leave: the clients close their connections in the end; else they wait.
	Leave bool
}

// clientsDone reports how long the first answers took, the slowest client's.
type clientsDone struct{ Took time.Duration }

// startClients starts the process.
func startClients(b *testing.B, address string) *clientProcess {
	b.Helper()
	in, out := startProcess(b, "TestClientProcess", clientsAddress+"="+address)
	return &clientProcess{b, json.NewEncoder(in), json.NewDecoder(out)}
}

// startProcess runs a test of this program in another process, with one more environment
// variable, by a command if there is any and this machine has it. The process is killed
// in the end.
func startProcess(b *testing.B, test, env string, by ...string) (in io.Writer, out io.Reader) {
	b.Helper()
	command := []string{os.Args[0], "-test.run=^" + test + "$", "-test.v=false"}
	if len(by) > 0 {
		if _, err := exec.LookPath(by[0]); err == nil {
			command = append(by, command...)
		}
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // This program, which is killed in the end.
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
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
	return in, out
}

// start sends a command.
func (p *clientProcess) start(c clientsCommand) {
	p.b.Helper()
	if err := p.in.Encode(c); err != nil {
		p.b.Fatal(err)
	}
}

// wait returns the next report.
func (p *clientProcess) wait() clientsDone {
	p.b.Helper()
	var done clientsDone
	if err := p.out.Decode(&done); err != nil {
		p.b.Fatal(err)
	}
	return done
}

// TestClientProcess is a client process.
func TestClientProcess(t *testing.T) {
	address := os.Getenv(clientsAddress)
	if address == "" {
		t.Skip("it is the clients of benchmarks, in a process of their own")
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c clientsCommand
		if err := in.Decode(&c); err != nil {
			return
		}
		c.run(t, address, out)
	}
}

// run connects clients at once, and serves them one by one later.
func (c clientsCommand) run(tb testing.TB, address string, out *json.Encoder) {
	tb.Helper()
	begun := time.Now()
	clients := make([]*rawClient, c.Clients)
	conns := make([]*grpc.ClientConn, c.Clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			conns[i] = dialClient(tb, address)
			method := sotwMethod
			if c.Delta {
				method = deltaMethod
			}
			clients[i] = &rawClient{stream: newRawStream(tb, conns[i], method), delta: c.Delta, typeURL: c.TypeURL, names: c.Names}
			for _, request := range [][]byte{c.First, c.Second} {
				if len(request) > 0 {
					if err := clients[i].stream.SendMsg(&request); err != nil {
						tb.Error(err)
					}
				}
			}
			for got := 0; got < max(1, c.Resources); {
				got += max(1, clients[i].receive(tb))
			}
		})
	}
	all.Wait()
	_ = out.Encode(clientsDone{time.Since(begun)})
	for range c.Responses {
		for _, client := range clients {
			client.receive(tb)
		}
		_ = out.Encode(clientsDone{})
	}
	if c.Leave {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}
