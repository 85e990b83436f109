// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// dialed is dial until the test ends.
func dialed(tb testing.TB, listener *memnet.Listener) *grpc.ClientConn {
	tb.Helper()
	conn := dial(tb, listener)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// contentsOf returns the transferred part of a store.
func contentsOf(store configstore.Reader, revision string) contents {
	out := contents{}
	for _, schema := range store.Schemas().All() {
		kind := schema.GroupVersionKind
		out[typeURL(kind)] = map[string]configstore.Config{}
		for _, c := range store.List(kind, "") {
			if inRevision(c.Labels, revision) {
				out[typeURL(kind)][resourceName(c.Name, c.Namespace)] = travelled(c)
			}
		}
	}
	return out
}

// differing counts the objects that differ between two contents.
func differing(before, after contents) (n int) {
	for url, objects := range after {
		for name, c := range objects {
			if old, ok := before[url][name]; !ok || !old.Equal(c) {
				n++
			}
		}
		for name := range before[url] {
			if _, ok := objects[name]; !ok {
				n++
			}
		}
	}
	return n
}

// TestSourceWritesDifferences: after each change of a random history the store of a source equals
// that of the server, by either protocol, with streams that are cut, and was written to
// only where the two differed.
func TestSourceWritesDifferences(t *testing.T) {
	seeds, steps := 2, 50
	if !tier.Full() {
		seeds, steps = 1, 25
	}
	for _, o := range []SourceOptions{{}, {Delta: true}, {Revision: "canary"}, {Revision: "canary", Delta: true}} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("delta=%v,revision=%s,seed=%d", o.Delta, o.Revision, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := export(t, ServerOptions{})
					cut := &cutter{ClientConnInterface: dialed(t, e.listener), left: -1}
					store := newStore()
					source := NewSource(cut, store, o)
					defer run(source)()
					random := rand.New(rand.NewPCG(uint64(seed), 2))
					for step := range steps {
						before, revision := contentsOf(store, ""), store.Revision()
						if random.IntN(4) == 0 {
							cut.cut()
						}
						removed := random.IntN(12) == 0
						historyWrite(e, random) // one batch, so that there is nothing in between
						if removed {
							for _, c := range e.List(istio.ServiceEntry, "") {
								e.remove(c.GroupVersionKind, c.Namespace, c.Name)
							}
						}
						time.Sleep(time.Minute) // longer than any back-off
						synctest.Wait()
						want := contentsOf(e.Store, o.Revision)
						same(t, fmt.Sprint("step ", step), contentsOf(store, ""), want)
						if n, wrote := differing(before, want), store.Revision()-revision; !removed && uint64(n) != wrote {
							t.Errorf("step %d: %d objects differ, %d were written", step, n, wrote)
						}
						if s := source.Status(); s.Stale() || s.Delta != o.Delta || len(source.Report().Errors) > 0 {
							t.Errorf("step %d: status %+v, report %v", step, s, messages(source))
						}
					}
				})
			})
		}
	}
}

// line is a connection that can be given another server.
type line struct {
	mu   sync.Mutex
	conn grpc.ClientConnInterface
}

func (l *line) to(conn grpc.ClientConnInterface) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
}

func (l *line) get() grpc.ClientConnInterface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

func (l *line) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return l.get().Invoke(ctx, method, args, reply, opts...)
}

func (l *line) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.get().NewStream(ctx, desc, method, opts...)
}

// TestSourceOfReplicas: a source that moves to another server with the same objects writes nothing,
// regardless of the revisions of the two; to one with other objects, it writes the difference; and
// while there is no server, nothing.
func TestSourceOfReplicas(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta=%v", delta), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := time.Unix(1700000000, 0)
				object := func(name, host string) configstore.Config {
					c := entry("default", name, host+".example.com")
					c.CreationTimestamp = at
					return c
				}
				first := export(t, ServerOptions{}, object("a", "a"), object("b", "b"))
				second := export(t, ServerOptions{}, object("x", "x"), object("b", "b"), object("a", "a"))
				second.remove(istio.ServiceEntry, "default", "x")
				third := export(t, ServerOptions{}, object("c", "c"), object("b", "new"))
				for _, e := range []*exporter{second, third} {
					e.settle()
				}
				way := &line{conn: dialed(t, first.listener)}
				store := newStore()
				source := NewSource(way, store, SourceOptions{Delta: delta})
				defer run(source)()
				synced(t, source)
				for _, to := range []struct {
					from, to *exporter
					writes   uint64
				}{{first, second, 0}, {second, third, 3}} {
					synctest.Wait()
					revision, before := store.Revision(), contentsOf(store, "")
					to.from.stop()
					time.Sleep(time.Hour)
					synctest.Wait()
					same(t, "without a server", contentsOf(store, ""), before)
					if s := source.Status(); !s.Stale() || status.Code(s.Err) != codes.Unavailable || time.Since(s.StaleSince) < time.Hour {
						t.Errorf("status %+v", s)
					}
					way.to(dialed(t, to.to.listener))
					time.Sleep(time.Minute)
					synctest.Wait()
					same(t, "with the next server", contentsOf(store, ""), contentsOf(to.to.Store, ""))
					if wrote := store.Revision() - revision; wrote != to.writes || source.Status().Stale() {
						t.Errorf("%d writes, want %d, status %+v", wrote, to.writes, source.Status())
					}
				}
			})
		})
	}
}

// TestSourceOfLaxServer: from a server whose schemas accept more, a source has all valid objects,
// and the others once they are corrected.
func TestSourceOfLaxServer(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta=%v", delta), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The schema of the server accepts objects that the client's schema rejects.
				schema := *schemaOf(t, istio.ServiceEntry)
				schema.Validate = nil
				lax := configstore.NewSchemasBuilder().MustAdd(schema).Build()
				served := memory.NewController(memory.Make(lax))
				server := NewServer(served)
				listener := memnet.Listen()
				serveOn(t, listener, server.Register, served.Run, server.Run)
				store := newStore()
				o := only(istio.ServiceEntry)
				o.Delta = delta
				source := NewSource(dialed(t, listener), store, o)
				defer run(source)()
				write := func(c configstore.Config) {
					t.Helper()
					if _, err := configstore.Upsert(served, c); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				write(entry("default", "a"))
				bad := entry("default", "b")
				bad.Spec.(*networking.ServiceEntry).Ports[0].Number = 70000
				write(bad)
				write(entry("default", "c"))
				if got := names(store); got != "a c" {
					t.Errorf("the store has %q", got)
				}
				if errs := source.Report().Errors; len(errs) != 1 || errs[0].Object != bad.Key() || errs[0].Kept {
					t.Errorf("report %v", errs)
				}
				write(entry("default", "b"))
				if got := names(store); got != "a b c" || len(source.Report().Errors) > 0 {
					t.Errorf("the store has %q, the report %v", got, messages(source))
				}
				write(bad)
				if got := store.Get(istio.ServiceEntry, "b", "default"); got == nil || !source.Report().Errors[0].Kept {
					t.Errorf("stored %v, report %v", got, messages(source))
				}
			})
		})
	}
}
