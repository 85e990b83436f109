// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// disturbed is a cache behind a proxy that disturbs it, while a writer that is not
// behind it writes.
type disturbed struct {
	t         *testing.T
	server    *kubetest.Server
	front     *kubetest.Front
	live      *live
	writer    *kube.Cache
	cache     *kube.Cache
	replica   *replica
	kind      configstore.GroupVersionKind
	namespace string
}

func newDisturbed(t *testing.T, flags ...string) *disturbed {
	t.Helper()
	server := kubetest.Start(t, flags...)
	schemas := limits("disturbed.example.com")
	server.ApplyCRDs(t, crdsOf(schemas))
	d := &disturbed{
		t: t, server: server, front: server.Front(t), live: newLive(t, restConfig(server.Config()), schemas),
		writer:  newCache(t, restConfig(server.Config()), schemas, kube.Options{}),
		replica: &replica{t: t, objects: map[string]configstore.Config{}},
		kind:    schemas.All()[0].GroupVersionKind, namespace: server.Namespace(t),
	}
	d.cache = newCache(t, restConfig(d.front.Config()), schemas, kube.Options{})
	d.cache.RegisterEventHandler(d.kind, d.replica.handle)
	runSynced(t, d.cache)
	create(t, d.writer, d.steady("1"))
	return d
}

// steady returns an object that the load does not change.
func (d *disturbed) steady(value string) configstore.Config {
	return object(d.kind, d.namespace, "steady", value)
}

// phase disturbs the cache under load, and expects that no event is lost or duplicated.
func (d *disturbed) phase(name string, disturb func()) {
	d.t.Run(name, func(t *testing.T) {
		end := load(t, d.writer, d.kind, d.namespace)
		disturb()
		end()
		expectConverged(t, d.live, d.cache, d.replica)
		eventually(t, "no error remains", func() bool { return len(d.cache.Errors()) == 0 })
	})
}

// changes waits until so many more changes have arrived in the cache.
func (d *disturbed) changes(n uint64) {
	d.t.Helper()
	from := d.cache.Revision()
	eventually(d.t, "changes arrive", func() bool { return d.cache.Revision() >= from+n })
}

func (d *disturbed) cut() {
	for range 10 {
		d.front.Cut()
		d.changes(5)
	}
}

func (d *disturbed) slow() {
	d.front.Delay(100 * time.Millisecond)
	d.changes(20)
	d.front.Delay(0)
}

func (d *disturbed) kill() {
	d.changes(5)
	d.server.Stop()
	eventually(d.t, "the error is shown, with the kind", func() bool {
		errs := d.cache.Errors()
		return len(errs) == 2 && errs[1].Object.Kind == d.kind // after that of the CRDs
	})
	if d.cache.Get(d.kind, "steady", d.namespace) == nil {
		d.t.Error("the state is gone with the server")
	}
	d.server.Restart(d.t)
	d.changes(5)
}

// forget makes the server drop, by a restart, the revisions that the cache has seen.
func (d *disturbed) forget() {
	d.front.Refuse(true)
	state, err := d.live.state(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, "the objects change meanwhile", func() bool {
		now, err := d.live.state(d.t.Context())
		return err == nil && !maps.Equal(state, now)
	})
	if err := d.writer.Delete(d.kind, "steady", d.namespace, nil); err != nil {
		d.t.Fatal(err)
	}
	create(d.t, d.writer, d.steady("2"))
	d.server.Restart(d.t)
	d.front.Refuse(false)
	d.changes(1)
}

// TestDisturbed: watches that break, a slow or killed server, and compacted revisions neither lose
// nor duplicate events.
func TestDisturbed(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	d := newDisturbed(t)
	d.phase("Cut", d.cut)
	d.phase("Slow", d.slow)
	d.phase("Killed", d.kill)
	d.phase("Forgotten", d.forget)
	if got := value(d.cache.Get(d.kind, "steady", d.namespace)); got != "2" {
		t.Errorf("the object that was made anew has the value %q", got)
	}
}

// TestCompacted: the same with a compacted etcd, so that the server repeatedly rejects a watch from
// the cache's last revision.
func TestCompacted(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	// Without a watch cache the server watches etcd for each of its clients.
	d := newDisturbed(t, "--watch-cache=false", "--etcd-compaction-interval=500ms")
	d.phase("Compacted", func() {
		for range 4 {
			d.changes(5)
			d.front.Refuse(true)
			seen := d.revision()
			eventually(t, "the revision is too old", func() bool { return d.tooOld(seen) })
			d.front.Refuse(false)
			d.changes(5)
			d.front.Cut()
		}
	})
}

// revision returns the server's present revision.
func (d *disturbed) revision() string {
	d.t.Helper()
	list, err := d.live.resource(d.live.schemas.All()[0]).List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return list.GetResourceVersion()
}

// tooOld reports whether the server rejects a watch from a revision.
func (d *disturbed) tooOld(revision string) bool {
	d.t.Helper()
	w, err := d.live.resource(d.live.schemas.All()[0]).Watch(d.t.Context(), metav1.ListOptions{ResourceVersion: revision})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer w.Stop()
	event := <-w.ResultChan() // The load goes on.
	if event.Type != watch.Error {
		return false
	}
	err = apierrors.FromObject(event.Object)
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
