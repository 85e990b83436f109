// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// history returns etcd's events for a prefix, from the beginning up to a revision, each transaction
// in the form of describe.
func history(t *testing.T, client *clientv3.Client, prefix string, upTo int64) (batches [][]string) {
	t.Helper()
	ctx := within(t)
	at := int64(0)
	for r := range client.Watch(ctx, prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Events {
			event := configstore.EventUpdate
			if e.IsCreate() {
				event = configstore.EventAdd
			} else if e.Type == mvccpb.Event_DELETE {
				event = configstore.EventDelete
			}
			var parts [4]string
			rest := string(e.Kv.Key)[len(prefix)+1:]
			for i := range parts {
				n := len(rest)
				if slash := slices.Index([]byte(rest), '/'); slash >= 0 {
					n = slash
				}
				parts[i] = rest[:n]
				rest = rest[min(n+1, len(rest)):]
			}
			change := configstore.Change{Event: event, Curr: &configstore.Config{Meta: configstore.Meta{
				GroupVersionKind: configstore.GroupVersionKind{Group: parts[0], Kind: parts[1]}, Namespace: parts[2], Name: parts[3],
				ResourceVersion: fmt.Sprint(e.Kv.ModRevision),
			}}}
			if e.Kv.ModRevision != at {
				at = e.Kv.ModRevision
				batches = append(batches, nil)
			}
			batches[len(batches)-1] = append(batches[len(batches)-1], describe(change))
		}
		if at >= upTo {
			break
		}
	}
	return batches
}

// writer writes at random through one replica.
type writer struct {
	*replica
	rng *rand.Rand
	// writes counts the writes that etcd has accepted.
	writes int
}

// expected reports whether an error of a write is explained by a concurrent writer.
func expected(err error) bool {
	for _, e := range []error{configstore.ErrNotFound, configstore.ErrAlreadyExists, configstore.ErrConflict} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (w *writer) mutation() configstore.Mutation {
	c := entry(fmt.Sprintf("e%03d", w.rng.IntN(200)), fmt.Sprintf("10.0.%d.%d", w.rng.IntN(256), w.rng.IntN(256)))
	m := configstore.Mutation{Config: c, Op: []configstore.Op{
		configstore.OpCreate, configstore.OpUpdate, configstore.OpUpdate, configstore.OpUpsert, configstore.OpUpsert,
		configstore.OpUpdateStatus, configstore.OpDelete,
	}[w.rng.IntN(7)]}
	if m.Op == configstore.OpUpdateStatus {
		m.Config.Status = &networking.ServiceEntryStatus{Conditions: []*v1alpha1.IstioCondition{{Type: c.Name, Message: fmt.Sprint(w.rng.IntN(1000))}}}
	}
	if old := w.get(c.Name); old != nil && w.rng.IntN(3) == 0 {
		m.Config.ResourceVersion = old.ResourceVersion
	}
	return m
}

// write makes one random write, and checks that its result can be read at once.
func (w *writer) write(t *testing.T) {
	t.Helper()
	if w.rng.IntN(2) == 0 {
		var batch []configstore.Mutation
		for range 1 + w.rng.IntN(20) {
			m := w.mutation()
			if m.Op != configstore.OpUpdateStatus && w.rng.IntN(20) > 0 { // Most of them are possible.
				m.Op, m.Config.ResourceVersion = configstore.OpUpsert, ""
			} else if w.rng.IntN(5) > 0 {
				continue
			}
			batch = append(batch, m)
		}
		if _, err := w.Apply(batch...); err == nil {
			w.writes += len(batch)
		} else if !expected(err) {
			t.Errorf("a batch: %v", err)
		}
		return
	}
	m := w.mutation()
	before := w.Status().Revision
	revision, err := w.Apply(m)
	switch {
	case err == nil:
		w.writes++
		if w.Revision() < revision || w.Status().Revision < before {
			t.Errorf("%s %s is done at %d, and %d is shown", m.Op, m.Config.Name, revision, w.Revision())
		}
	case !expected(err):
		t.Errorf("%s %s: %v", m.Op, m.Config.Name, err)
	}
}

// TestReplicas: three replicas that write at random have equal states in the end, and each has
// received etcd's events, each transaction as one batch.
func TestReplicas(t *testing.T) {
	writes := tier.Share(10_000)
	srv, prefix := shared.get(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var replicas []*replica
	var writing sync.WaitGroup
	const perReplica = 2
	for range 3 {
		replicas = append(replicas, start(t, srv.addr, etcd.Options{Prefix: prefix, Timeout: patience}))
	}
	for i, r := range replicas {
		for j := range perReplica {
			w := &writer{replica: r, rng: rand.New(rand.NewPCG(seed, uint64(i*perReplica+j)))}
			writing.Go(func() {
				for w.writes < writes/3/perReplica && !t.Failed() {
					w.write(t)
				}
			})
		}
	}
	writing.Wait()
	last := int64(0)
	for _, r := range replicas {
		last = max(last, r.Status().Revision)
	}
	want := history(t, newClient(t, srv.addr), prefix, last)
	t.Logf("%d transactions", len(want))
	for _, r := range replicas {
		eventually(t, "all is shown", func() bool { return r.Status().Revision >= last })
		if diff := cmp.Diff(slices.Concat(want...), r.take(t)); diff != "" {
			t.Fatalf("the history of a replica is another one (-etcd +replica):\n%s", diff)
		}
	}
	fresh := newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
	fresh.Drain()
	for _, r := range replicas {
		if errs := r.Errors(); len(errs) > 0 {
			t.Errorf("errors %v", errs)
		}
		sameContent(t, fresh, r)
	}
}

// sameContent expects that two caches have equal content.
func sameContent(t *testing.T, want, got configstore.Reader) {
	t.Helper()
	a, b := want.List(istio.ServiceEntry, ""), got.List(istio.ServiceEntry, "")
	if len(a) != len(b) {
		t.Fatalf("%d objects, want %d", len(b), len(a))
	}
	for i := range a {
		if !a[i].Equal(*b[i]) {
			t.Errorf("%+v, want %+v", b[i], a[i])
		}
	}
}

// TestWholeTransactions: neither a reader nor a handler of another replica sees a part of a batch.
func TestWholeTransactions(t *testing.T) {
	srv, prefix := shared.get(t)
	from, to := start(t, srv.addr, etcd.Options{Prefix: prefix}), start(t, srv.addr, etcd.Options{Prefix: prefix})
	const rounds = 50
	var reading sync.WaitGroup
	reading.Go(func() {
		for done := false; !done; {
			list := to.Snapshot().List(istio.ServiceEntry, "")
			for _, c := range list {
				if len(list) != 3 || addressOf(c) != addressOf(list[0]) {
					t.Errorf("%d objects, %s beside %s", len(list), addressOf(list[0]), addressOf(c))
					return
				}
				done = addressOf(c) == fmt.Sprintf("10.0.0.%d", rounds)
			}
		}
	})
	for i := range rounds {
		var batch []configstore.Mutation
		for _, name := range []string{"c", "a", "b"} {
			batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: entry(name, fmt.Sprintf("10.0.0.%d", i+1))})
		}
		if _, err := from.Apply(batch...); err != nil {
			t.Fatal(err)
		}
	}
	reading.Wait()
	if err := to.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	told := 0
	for _, batch := range to.batches {
		if told += len(batch); len(batch)%3 != 0 {
			t.Errorf("a handler was called with %q", batch)
		}
	}
	if told != 3*rounds {
		t.Errorf("%d events, want %d", told, 3*rounds)
	}
}

// TestLoweredSizes reads objects in pages of one and of three.
func TestLoweredSizes(t *testing.T) {
	tier.OnlyFull(t, "histories of replicas with lowered sizes")
	testmain.Lowered(t, "^TestReplicas$")
}
