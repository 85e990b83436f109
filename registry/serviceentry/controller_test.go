// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{ClusterID: "c7"})
	diff(t, "Provider", s.registry.Provider(), registry.External)
	diff(t, "Cluster", s.registry.Cluster(), registry.ClusterID("c7"))
	diff(t, "shard", xdsupdate.ShardKeyOf(s.registry).String(), "External/c7")
	if g := s.registry.NetworkGateways(); g != nil {
		t.Errorf("NetworkGateways = %v, want none", g)
	}
}

func TestHasSynced(t *testing.T) {
	t.Parallel()
	cache := memory.NewController(memory.Make(istio.Schemas()))
	recorder := newRecorder(t)
	r := serviceentry.New(cache, recorder, serviceentry.Options{})
	if _, err := cache.Create(entry("a", nil, "a.com", "1.1.1.1")); err != nil {
		t.Fatal(err)
	}
	during := true
	recorder.during = func(string) { during = during && !r.HasSynced() }
	if r.HasSynced() || len(r.Services()) != 0 {
		t.Error("synced before the cache delivered anything")
	}
	cache.Drain()
	if !during {
		t.Error("synced while the updater was still being called")
	}
	if !r.HasSynced() || len(r.Services()) != 1 {
		t.Error("not synced after the cache delivered everything")
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := memory.NewController(memory.Make(istio.Schemas()))
		recorder := newRecorder(t)
		r := serviceentry.New(cache, recorder, serviceentry.Options{ClusterID: "c1"})
		stopCache, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go cache.Run(stopCache)
		go func() {
			r.Run(stop)
			close(ended)
		}()
		create := func(c configstore.Config) {
			if _, err := cache.Create(c); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		create(entry("a", nil, "a.com", "1.1.1.1"))
		diff(t, "calls", recorder.take(), []string{"service ns/a.com add", "eds ns/a.com [1.1.1.1:80]", "config service ServiceEntry/ns/a.com"})
		select {
		case <-ended:
			t.Error("Run returned before stop was closed")
		default:
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a second Run did not panic")
				}
			}()
			r.Run(stop)
		}()
		close(stop)
		<-ended
		create(entry("b", nil, "b.com", "1.1.1.2"))
		r.WorkloadInstanceHandler(pod("p", nil, "1.1.1.3"), registry.EventAdd)
		r.ResyncEDS()
		diff(t, "calls after the end", recorder.take(), []string(nil))
		close(stopCache)
	})
}

func TestServiceHandlers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"))
	var notified []string
	handler := func(prev, curr *registry.Service, e registry.Event) {
		notified = append(notified, fmt.Sprintf("%s %s %s", e, name(prev), name(curr)))
	}
	cancel := s.registry.SubscribeServices(handler)
	s.apply(entry("b", nil, "b.com"))
	s.apply(entry("a", nil, "a.com", "1.1.1.2"))
	s.apply(entry("a", ports(8080), "a.com", "1.1.1.2"))
	s.delete(istio.ServiceEntry, "ns", "a")
	diff(t, "notified", notified, []string{"add - a/a.com", "add - b/b.com", "update a/a.com a/a.com", "delete - a/a.com"})
	notified = nil
	cancel()
	cancel()
	s.apply(entry("c", nil, "c.com"))
	diff(t, "notified after cancel", notified, []string(nil))
}

func name(s *registry.Service) string {
	if s == nil {
		return "-"
	}
	return s.Attributes.ObjectName + "/" + string(s.Hostname)
}

func TestWorkloadHandlers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(workloadEntry("w", "1.1.1.1", nil), workloadEntry("v", "vm.org", nil), checked(workloadEntry("u", "1.1.1.2", nil), "False"))
	var notified []string
	var last *registry.WorkloadInstance
	cancel := s.registry.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) {
		notified = append(notified, fmt.Sprintf("%s %s %s %d", e, w.Name, w.Endpoint.Address(), w.PortMap["http"]))
		if e == registry.EventDelete && w != last {
			t.Errorf("delete of %s not with the last state that was notified", w.Name)
		}
		last = w
	})
	diff(t, "what exists", notified, []string{"add w 1.1.1.1 0"})
	notified = nil
	s.apply(workloadEntry("w", "1.1.1.3", nil))
	s.apply(workloadEntry("w", "1.1.1.3", nil))
	s.registry.WorkloadInstanceHandler(pod("p", nil, "1.1.1.4"), registry.EventAdd)
	s.delete(istio.WorkloadEntry, "ns", "v")
	s.apply(checked(workloadEntry("u", "1.1.1.2", nil), "True"))
	s.apply(checked(workloadEntry("u", "1.1.1.2", nil), "False"))
	diff(t, "changes", notified, []string{"update w 1.1.1.3 0", "add u 1.1.1.2 0", "delete u 1.1.1.2 0"})
	notified = nil
	cancel()
	s.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "notified after cancel", notified, []string(nil))
}

func TestWorkloadEntriesOnly(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{WorkloadEntriesOnly: true})
	var notified []string
	s.registry.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
		notified = append(notified, e.String()+" "+w.Name)
	})
	s.apply(entry("a", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	s.registry.WorkloadInstanceHandler(pod("p", nil, "1.1.1.2"), registry.EventAdd)
	s.expect("both", "proxy c1 1.1.1.1")
	diff(t, "notified", notified, []string{"add w"})
	if s.registry.GetService("a.com") != nil || len(s.registry.Services()) != 0 || s.targets("ns", "1.1.1.1") != nil {
		t.Error("there are services")
	}
	explained := explain.Workload(s.registry, registry.WorkloadKey{Kind: registry.WorkloadEntry, Namespace: "ns", Name: "w"})
	if explained.Ignored != "" || len(explained.Entries) != 0 {
		t.Errorf("the explanation is %s", explained)
	}
}

func TestResyncEDS(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("b", nil, "b.com", "1.1.1.1"), entry("a", selecting, "a.com"))
	s.recorder.take()
	s.recorder.resync = true
	s.registry.ResyncEDS()
	s.expect("resync", "eds ns/a.com []", "eds ns/b.com [1.1.1.1:80]")
}

// plainCache hides what a cache can do beyond ConfigStoreCache.
type plainCache struct{ configstore.ConfigStoreCache }

// subscribingCache can end registrations but not batch.
type subscribingCache struct {
	configstore.ConfigStoreCache
	configstore.Subscriber
}

func TestCachesWithoutBatches(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*memory.Controller) configstore.ConfigStoreCache{
		"plain":       func(c *memory.Controller) configstore.ConfigStoreCache { return plainCache{c} },
		"subscribing": func(c *memory.Controller) configstore.ConfigStoreCache { return subscribingCache{c, c} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := memory.NewController(memory.Make(istio.Schemas()))
			s := &system{t: t, cache: cache, recorder: newRecorder(t)}
			s.registry = serviceentry.New(wrap(cache), s.recorder, serviceentry.Options{ClusterID: "c1"})
			s.apply(entry("a", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
			s.delete(istio.ServiceEntry, "ns", "a")
			s.expect("all", "service ns/a.com add", "config service ServiceEntry/ns/a.com", "eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1",
				"service ns/a.com delete", "config service ServiceEntry/ns/a.com")
		})
	}
}

func TestDeltas(t *testing.T) {
	t.Parallel()
	s := newSystemWith(t, serviceentry.Options{}, func(r *recorder) xdsupdate.XDSUpdater { return deltaRecorder{r} })
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2", "1.1.1.3"))
	s.expect("create", "service ns/a.com add", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80 1.1.1.3:80]", "config service ServiceEntry/ns/a.com")
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.4", "1.1.1.3"))
	s.expect("one changed", "delta ns/a.com [1.1.1.1:80 1.1.1.3:80 1.1.1.4:80]")
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.4"))
	s.expect("one gone", "delta ns/a.com [1.1.1.1:80 1.1.1.4:80]")
	s.apply(entry("a", nil, "a.com"))
	s.expect("all gone", "eds ns/a.com []")
}
