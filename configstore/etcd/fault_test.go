// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// impatient returns options with a short interval for detecting outages and a short backoff.
func impatient(prefix string) etcd.Options {
	return etcd.Options{Prefix: prefix, ProgressInterval: 200 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
}

// hasty returns options with a short timeout, for writes that cannot succeed.
func hasty(prefix string) etcd.Options {
	opts := impatient(prefix)
	opts.Timeout = 5 * time.Second
	return opts
}

// isStale expects that the last state stays, and that Status marks it as stale.
func (r *replica) isStale(t *testing.T, since time.Time) {
	t.Helper()
	eventually(t, "the cache is stale", func() bool { return r.Status().Stale })
	s := r.Status()
	if s.Err == nil || s.Revision == 0 || s.Since.Before(since) || s.Since.After(time.Now()) {
		t.Errorf("status %+v, want an error, a revision, and that it is stale since a moment after %v", s, since)
	}
	if state := r.SourceState(); state.Freshness != configstore.Stale || !state.Synced || state.StaleSince.Before(since) || state.Content.Before(since) {
		t.Errorf("source state %+v, want that it is stale since a moment after %v", state, since)
	}
	if !r.HasSynced() {
		t.Error("HasSynced has become false")
	}
}

func (r *replica) isLive(t *testing.T) {
	t.Helper()
	eventually(t, "the cache is live", func() bool {
		return !r.Status().Stale && r.SourceState().Freshness == configstore.Fresh
	})
}

// TestRestart: etcd is killed and restarted. Meanwhile the last state stays and writes fail.
// Afterwards there are only the events of the later writes.
func TestRestart(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	srv := newServer(t)
	p := newProxy(t, srv.addr)
	r, away := start(t, p.addr(), impatient("")), start(t, p.addr(), hasty(""))
	r.create(t, entry("a", "10.0.0.1"))
	r.create(t, entry("b", "10.0.0.1"))
	r.expect(t, "add ns/a", "add ns/b")
	p.set(refusing) // as when the process is killed: a server that stops would wait for its clients
	srv.stop()
	r.isStale(t, begun)
	if _, err := away.Update(entry("a", "10.0.0.2")); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a write while etcd is away: %v, want ErrUnavailable", err)
	}
	if addressOf(r.get("a")) != "10.0.0.1" || len(r.List(istio.ServiceEntry, "")) != 2 {
		t.Error("the last state is gone")
	}
	srv.restart(t)
	p.set(passing)
	r.isLive(t)
	r.expect(t)
	r.update(t, entry("b", "10.0.0.3"))
	r.remove(t, "a")
	r.expect(t, "update ns/b", "delete ns/a")
}

// TestPartition: one replica is partitioned, in two ways, while others write. It keeps the last
// state, marked as stale, and then receives each transaction once, in order.
func TestPartition(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]proxyState{"refused": refusing, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			srv, prefix := shared.get(t)
			p := newProxy(t, srv.addr)
			cut, other := start(t, p.addr(), hasty(prefix)), start(t, srv.addr, etcd.Options{Prefix: prefix})
			other.create(t, entry("a", "10.0.0.1"))
			other.create(t, entry("b", "10.0.0.1"))
			cut.awaits(t, "b", "10.0.0.1")
			cut.expect(t, "add ns/a", "add ns/b")
			p.set(state)
			cut.isStale(t, begun)
			if _, err := cut.Update(entry("a", "10.0.0.9")); !errors.Is(err, etcd.ErrUnavailable) {
				t.Errorf("a write without a way to etcd: %v, want ErrUnavailable", err)
			}
			other.update(t, entry("a", "10.0.0.2"))
			other.remove(t, "b")
			other.create(t, entry("b", "10.0.0.3"))
			other.create(t, entry("c", "10.0.0.4"))
			if addressOf(cut.get("b")) != "10.0.0.1" {
				t.Error("what is cut off has heard something")
			}
			p.set(passing)
			cut.awaits(t, "c", "10.0.0.4")
			cut.isLive(t)
			got, want := cut.take(t), other.take(t)[2:]
			if !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
		})
	}
}

// TestCompacted: the history that a replica has missed is compacted when it reconnects. It receives
// the difference.
func TestCompacted(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	p := newProxy(t, srv.addr)
	cut, other := start(t, p.addr(), impatient("")), start(t, srv.addr, etcd.Options{})
	for _, name := range []string{"again", "changes", "goes", "stays"} {
		other.create(t, entry(name, "10.0.0.1"))
	}
	cut.awaits(t, "stays", "10.0.0.1")
	cut.take(t)
	stays := cut.get("stays")
	p.set(refusing)
	eventually(t, "the cache is stale", func() bool { return cut.Status().Stale })
	other.update(t, entry("changes", "10.0.0.2"))
	other.update(t, entry("changes", "10.0.0.3"))
	other.remove(t, "goes")
	other.remove(t, "again")
	other.create(t, entry("again", "10.0.0.4"))
	other.create(t, entry("new", "10.0.0.5"))
	other.create(t, entry("short", "10.0.0.6"))
	other.remove(t, "short")
	if _, err := newClient(t, srv.addr).Compact(within(t), other.Status().Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	p.set(passing)
	cut.awaits(t, "new", "10.0.0.5")
	cut.isLive(t)
	cut.expect(t, "delete ns/goes", "delete ns/again", "add ns/again", "update ns/changes", "add ns/new")
	if cut.get("stays") != stays {
		t.Error("what has not changed is another object")
	}
	other.update(t, entry("stays", "10.0.0.7"))
	cut.awaits(t, "stays", "10.0.0.7")
	cut.expect(t, "update ns/stays")
}

// TestLostData: etcd loses its data and starts empty. The replica has the new state.
func TestLostData(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	p := newProxy(t, srv.addr)
	r := start(t, p.addr(), impatient(""))
	r.create(t, entry("a", "10.0.0.1"))
	r.create(t, entry("b", "10.0.0.1"))
	r.expect(t, "add ns/a", "add ns/b")
	p.set(refusing)
	srv.stop()
	eventually(t, "the cache is stale", func() bool { return r.Status().Stale })
	srv.dir = t.TempDir()
	srv.restart(t)
	p.set(passing)
	r.awaits(t, "a", "")
	r.isLive(t)
	r.expect(t, "delete ns/a", "delete ns/b")
	r.create(t, entry("a", "10.0.0.2"))
	r.expect(t, "add ns/a")
}

// TestStartWithoutEtcd: a cache that starts during an outage of etcd syncs after it.
func TestStartWithoutEtcd(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	newReplicaWith(t, srv, entry("a", "10.0.0.1"))
	srv.stop()
	opts := impatient("")
	opts.Timeout = 300 * time.Millisecond
	r := newReplica(t, srv.addr, opts)
	if err := r.Flush(within(t)); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("Flush without etcd: %v, want ErrUnavailable", err)
	}
	r.Drain()
	r.run(t)
	eventually(t, "the error shows", func() bool { return r.Status().Err != nil })
	if s := r.Status(); !s.Stale || !s.Since.IsZero() || r.HasSynced() {
		t.Errorf("status %+v and synced %t, want stale since ever", s, r.HasSynced())
	}
	srv.restart(t)
	eventually(t, "the cache has synced", r.HasSynced)
	r.expect(t, "add ns/a")
}

// newReplicaWith writes objects, without Run.
func newReplicaWith(t *testing.T, srv *server, objects ...configstore.Config) {
	t.Helper()
	r := newReplica(t, srv.addr, etcd.Options{})
	for _, o := range objects {
		r.create(t, o)
	}
}
