// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
)

func grant(t *testing.T, r *replica, ttl time.Duration) *etcd.Lease {
	t.Helper()
	l, err := r.Grant(within(t), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// keep runs a lease, and returns a function that ends it and returns the result of Run.
func keep(t *testing.T, l *etcd.Lease) (end func() error) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- l.Run(stop) }()
	stopped := false
	end = func() error {
		if stopped {
			return nil
		}
		stopped = true
		close(stop)
		return <-ended
	}
	t.Cleanup(func() { _ = end() })
	return end
}

// TestLease: objects live as long as the lease of their last write with a lease, regardless of
// changes by others, and are deleted as one batch.
func TestLease(t *testing.T) {
	srv, prefix := shared.get(t)
	r, other := start(t, srv.addr, etcd.Options{Prefix: prefix}), start(t, srv.addr, etcd.Options{Prefix: prefix})
	l := grant(t, r, time.Hour)
	end := keep(t, l)
	for _, name := range []string{"a", "b", "moves"} {
		if _, err := l.Create(entry(name, "10.0.0.1")); err != nil {
			t.Fatal(err)
		}
	}
	r.create(t, entry("stays", "10.0.0.1"))
	if _, err := l.Apply(configstore.Mutation{Op: configstore.OpUpsert, Config: entry("taken", "10.0.0.1")}); err != nil {
		t.Fatal(err)
	}
	other.update(t, entry("a", "10.0.0.2")) // keeps the lease
	later := grant(t, other, time.Hour)
	endLater := keep(t, later)
	if _, err := later.Update(entry("moves", "10.0.0.1")); err != nil { // without another change
		t.Fatal(err)
	}
	if err := l.Delete(entry("x", "").GroupVersionKind, "taken", "ns", nil); err != nil {
		t.Fatal(err)
	}
	other.create(t, entry("taken", "10.0.0.3")) // It has no lease.
	other.awaits(t, "taken", "10.0.0.3")
	other.take(t)
	if err := end(); err != nil {
		t.Errorf("the end of a lease: %v", err)
	}
	other.awaits(t, "a", "")
	other.expectGone(t, "delete ServiceEntry ns/a", "delete ServiceEntry ns/b")
	if _, err := l.Create(entry("late", "10.0.0.1")); !errors.Is(err, etcd.ErrLeaseLost) {
		t.Errorf("a write with a lease that has ended: %v, want ErrLeaseLost", err)
	}
	if err := endLater(); err != nil {
		t.Error(err)
	}
	other.awaits(t, "moves", "")
	if addressOf(other.get("taken")) == "" || addressOf(other.get("stays")) == "" {
		t.Error("an object without a lease has gone")
	}
}

// expectGone expects that these objects were deleted in one batch.
func (r *replica) expectGone(t *testing.T, want ...string) {
	t.Helper()
	if err := r.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, batch := range r.batches {
		if slices.Sort(batch); slices.Equal(batch, want) {
			return
		}
	}
	t.Errorf("the batches are %q, want one of %q", r.batches, want)
}

// TestLeaseLost: a live writer is notified that its lease is lost.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	srv, prefix := shared.get(t)
	p := newProxy(t, srv.addr)
	away, r := start(t, p.addr(), impatient(prefix)), start(t, srv.addr, etcd.Options{Prefix: prefix})
	for name, lose := range map[string]func(*etcd.Lease){
		"revoked": func(l *etcd.Lease) {
			if _, err := newClient(t, srv.addr).Revoke(within(t), l.ID()); err != nil {
				t.Fatal(err)
			}
		},
		"away": func(*etcd.Lease) { p.set(refusing) },
	} {
		l := grant(t, away, 4*time.Second)
		ended := make(chan error, 1)
		go func() { ended <- l.Run(nil) }()
		if _, err := l.Create(entry(name, "10.0.0.1")); err != nil {
			t.Fatal(err)
		}
		r.awaits(t, name, "10.0.0.1")
		lose(l)
		select {
		case err := <-ended:
			if !errors.Is(err, etcd.ErrLeaseLost) {
				t.Errorf("%s: %v, want ErrLeaseLost", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: nobody has said that the lease is lost", name)
		}
		r.awaits(t, name, "")
		p.set(passing)
		away.isLive(t)
	}
}
