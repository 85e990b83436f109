// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// BenchmarkWrite compares an Update, which returns once the cache has the result, with a put of the
// same bytes: sequentially, and from 16 goroutines.
func BenchmarkWrite(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		srv := benchServer(b, fsync)
		for _, writers := range []int{1, 16} {
			name := fmt.Sprintf("fsync=%t/writers=%d", fsync, writers)
			b.Run(name+"/put", func(b *testing.B) {
				client := newClient(b, srv.addr)
				parallel(b, writers, func(i int) error {
					value, err := manifest.MarshalJSON(entry(fmt.Sprint("w", i%64), fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)))
					if err == nil {
						_, err = client.Put(context.Background(), fmt.Sprint("/raw/", i%64), string(value))
					}
					return err
				})
			})
			b.Run(name+"/update", func(b *testing.B) {
				r := start(b, srv.addr, etcd.Options{Prefix: "/" + name})
				benchUpdates(b, r, writers)
			})
		}
	}
}

// BenchmarkTold is the minimum cost of a write that is read back from a watch: a transaction with a
// comparison, and its event in a watch of the client, without decoding. The same run also measures
// a put and an Update.
func BenchmarkTold(b *testing.B) {
	srv := benchServer(b, false)
	client, next := newClient(b, srv.addr), 0
	value, err := manifest.MarshalJSON(entry("w", "10.0.0.1"))
	if err != nil {
		b.Fatal(err)
	}
	key := func(prefix string) string {
		next++
		return prefix + fmt.Sprint(next%64)
	}
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.Put(b.Context(), key("/raw/"), string(value)); err != nil {
				b.Fatal(err)
			}
		}
	})
	transaction := func(b *testing.B) int64 {
		b.Helper()
		k := key("/told/")
		answer, err := client.Txn(b.Context()).If(clientv3.Compare(clientv3.ModRevision(k), ">", -1)).
			Then(clientv3.OpPut(k, string(value))).Else(clientv3.OpGet(k)).Commit()
		if err != nil || !answer.Succeeded {
			b.Fatal(err)
		}
		return answer.Header.Revision
	}
	b.Run("transaction", func(b *testing.B) {
		for b.Loop() {
			transaction(b)
		}
	})
	b.Run("told", func(b *testing.B) {
		watch := client.Watch(b.Context(), "/told/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		<-watch
		for b.Loop() {
			for revision, seen := transaction(b), int64(0); seen < revision; {
				events := (<-watch).Events
				seen = events[len(events)-1].Kv.ModRevision
			}
		}
	})
	b.Run("update", func(b *testing.B) { benchUpdates(b, start(b, srv.addr, etcd.Options{Prefix: "/updates"}), 1) })
}

// BenchmarkReplicas is an Update that several replicas receive: it ends when all have it.
func BenchmarkReplicas(b *testing.B) {
	srv := benchServer(b, false)
	for _, n := range []int{1, 3, 10} {
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			var replicas []*replica
			for range n {
				replicas = append(replicas, start(b, srv.addr, etcd.Options{Prefix: fmt.Sprint("/replicas", n)}))
			}
			benchUpdates(b, replicas[0], 1)
			last := replicas[0].Status().Revision
			for _, r := range replicas {
				eventually(b, "all is shown", func() bool { return r.Status().Revision >= last })
			}
		})
	}
}

// BenchmarkStart is the first list of 1,000 objects.
func BenchmarkStart(b *testing.B) {
	srv := benchServer(b, false)
	r := start(b, srv.addr, etcd.Options{})
	for i := range 10 {
		var batch []configstore.Mutation
		for j := range 100 {
			batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: entry(fmt.Sprint("e", 100*i+j), "10.0.0.1")})
		}
		if _, err := r.Apply(batch...); err != nil {
			b.Fatal(err)
		}
	}
	client := newClient(b, srv.addr)
	for b.Loop() {
		fresh := replicaOf(b, client, etcd.Options{})
		if fresh.Drain(); !fresh.HasSynced() {
			b.Fatal(fresh.Status().Err)
		}
	}
}

func benchUpdates(b *testing.B, r *replica, writers int) {
	b.Helper()
	for i := range 64 {
		if _, err := configstore.Upsert(r, entry(fmt.Sprint("w", i), "10.0.0.1")); err != nil {
			b.Fatal(err)
		}
	}
	parallel(b, writers, func(i int) error {
		_, err := r.Update(entry(fmt.Sprint("w", i%64), fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)))
		return err
	})
}

// parallel calls f b.N times from some goroutines, with 1, 2, ….
func parallel(b *testing.B, goroutines int, f func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var working sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range goroutines {
		working.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.StopTimer()
}

// benchServer returns an etcd of the benchmark's own.
func benchServer(b *testing.B, fsync bool) *server {
	b.Helper()
	s, err := startServerWith(b.TempDir(), "", fsync)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.stop)
	return s
}
