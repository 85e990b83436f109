// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// importer is a store that a Source keeps equal to the content of an exporter.
type importer struct {
	*memory.Store
	source *Source
}

// imported returns a running importer of an exporter's content.
func imported(tb testing.TB, o SourceOptions, from *exporter) *importer {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return from.at.Load().Dial(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	i := &importer{Store: memory.Make(istio.Schemas())}
	i.source = NewSource(conn, i.Store, o)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { i.source.Run(stop) })
	tb.Cleanup(func() {
		close(stop)
		running.Wait()
		_ = conn.Close()
	})
	return i
}

// contents returns the content of the store.
func (i *importer) contents() contents { return (&exporter{Store: i.Store}).wanted("") }

// TestSourceOfServer: a Source has the content that a Server serves to its revision, over any
// writes and restarts of the server, by SotW and by delta.
func TestSourceOfServer(t *testing.T) {
	for _, seed := range histories.Seeds(t, 3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 29)) //nolint:gosec // no secret
				e := export(t, ServerOptions{})
				sources := make(map[string]*importer)
				for _, revision := range []string{"", "stable"} {
					for _, delta := range []bool{false, true} {
						sources[fmt.Sprintf("%s, delta %v", revision, delta)] = imported(t, SourceOptions{Revision: revision, Delta: delta}, e)
					}
				}
				for round := range 20 {
					for range random.IntN(6) {
						historyWrite(e, random)
					}
					if random.IntN(4) == 0 {
						e.restart()
						time.Sleep(10 * time.Minute) // the sources connect again
					}
					e.settle()
					for name, i := range sources {
						revision, _, _ := strings.Cut(name, ",")
						same(t, fmt.Sprintf("round %d: %s", round, name), i.contents(), e.wanted(revision))
						if !i.source.HasSynced() || i.source.Status().Stale() {
							t.Errorf("round %d: %s: %+v", round, name, i.source.Status())
						}
					}
					if t.Failed() {
						return
					}
				}
			})
		})
	}
}

// restart ends the server, and has another one serve the same store.
func (e *exporter) restart() {
	e.tb.Helper()
	e.stop()
	e.cache, e.listener = memory.NewController(e.Store), memnet.Listen()
	e.server = NewServer(e.cache)
	e.cache.Drain()
	e.run()
	synctest.Wait()
}

// TestSourceWhileServerIsAway: a Source whose server is down keeps everything, and writes exactly
// the difference when the server is back.
func TestSourceWhileServerIsAway(t *testing.T) {
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := export(t, ServerOptions{}, entry("shop", "a"), entry("shop", "b"), entry("shop", "c"), rule("shop", "r"))
				i := imported(t, SourceOptions{Delta: delta}, e)
				synctest.Wait()
				before, revision := i.contents(), i.Revision()
				same(t, "at first", before, e.wanted(""))
				e.stop()
				time.Sleep(10 * time.Minute)
				if !i.source.Status().Stale() {
					t.Error("it is not stale")
				}
				same(t, "while away", i.contents(), before)
				e.remove(istio.ServiceEntry, "shop", "a")
				e.update(entry("shop", "b", "other.example.com"))
				e.create(entry("shop", "d"))
				e.restart()
				time.Sleep(10 * time.Minute)
				same(t, "afterwards", i.contents(), e.wanted(""))
				same(t, "writes", i.Revision()-revision, uint64(3))
				if s := i.source.Status(); s.Stale() {
					t.Errorf("stale: %+v", s)
				}
			})
		})
	}
}

// TestSourceRefusesWhatServerSends: an object that the Source finds invalid costs itself
// only; the Server knows that it was refused and why, until it is good.
func TestSourceRefusesWhatServerSends(t *testing.T) {
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lax := configstore.NewSchemasBuilder()
				for _, schema := range istio.Schemas().All() {
					schema.Validate = nil
					lax.MustAdd(schema)
				}
				e := &exporter{Store: memory.Make(lax.Build()), tb: t, listener: memnet.Listen()}
				bad := entry("shop", "bad")
				bad.Spec = &networking.ServiceEntry{Hosts: []string{"*"}}
				for _, c := range []configstore.Config{entry("shop", "a"), bad, entry("shop", "z")} {
					e.create(c)
				}
				e.cache = memory.NewController(e.Store)
				e.server = NewServer(e.cache)
				e.cache.Drain()
				e.run()
				i := imported(t, SourceOptions{Delta: delta, Node: controlPlane("pilot", "")}, e)
				time.Sleep(time.Second)
				got := i.contents()[entryType()]
				if len(got) != 2 || got["shop/a"].Name != "a" || got["shop/z"].Name != "z" {
					t.Errorf("contents: %v", got)
				}
				if len(i.source.Report().Errors) != 1 {
					t.Errorf("report: %v", i.source.Report())
				}
				time.Sleep(10 * time.Minute) // it is sent again, and refused again
				s := e.status(controlPlane("pilot", "").GetId()).Types[entryType()]
				faults, _ := e.server.ADS().Faults()
				if len(faults) != 1 || faults[0].Name != "shop/bad" || !strings.Contains(faults[0].Text, "shop/bad") || s.Rejections > 50 {
					t.Errorf("refused: %+v, %+v", s, faults)
				}
				e.update(entry("shop", "bad"))
				time.Sleep(5 * time.Minute)
				same(t, "contents", i.contents(), e.wanted(""))
				if s := e.status(controlPlane("pilot", "").GetId()).Types[entryType()]; s.Pending || s.Acked != s.Sent {
					t.Errorf("accepted: %+v", s)
				}
				if faults, _ := e.server.ADS().Faults(); faults != nil {
					t.Errorf("faults: %+v", faults)
				}
				if len(i.source.Report().Errors) != 0 {
					t.Errorf("report: %v", i.source.Report())
				}
			})
		})
	}
}

// BenchmarkServerToSource is the cost of one changed object of many, from the write to the
// one store until the other has it.
func BenchmarkServerToSource(b *testing.B) {
	for _, objects := range []int{100, 10_000} {
		for name, delta := range map[string]bool{"SotW": false, "delta": true} {
			b.Run(fmt.Sprintf("%s/%d", name, objects), func(b *testing.B) {
				configs := make([]configstore.Config, objects)
				for i := range configs {
					configs[i] = entry("shop", fmt.Sprint("e", i))
				}
				e := export(b, ServerOptions{}, configs...)
				i := imported(b, SourceOptions{Delta: delta}, e)
				if err := configstore.WaitForSync(b.Context(), i.source); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				next := i.Revision()
				watch := i.Watch(b.Context(), next)
				b.ResetTimer()
				n := 0
				e.update(entry("shop", "e7", "first.example.com"))
				for _, err := range watch {
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == b.N {
						break
					}
					e.update(entry("shop", "e7", fmt.Sprintf("h%d.example.com", n)))
				}
			})
		}
	}
}
