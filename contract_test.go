// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// The names below are those that every program is written with: the parts and
// how they are wired. That this file compiles is the test. A change here breaks
// programs, and CHANGELOG.md has to say what takes its place.

// life is what everything that delivers events has.
type life interface {
	Run(stop <-chan struct{})
	HasSynced() bool
	configstore.Drainer
	configstore.Flusher
}

// stores is a program's use of the config side.
func stores(ctx context.Context, dir string, schema configstore.Schema) error {
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	if err := configstore.NewSchemasBuilder().Add(schema); err != nil {
		return err
	}
	store := memory.Make(schemas.Union(istio.Schemas()), memory.Options{})
	configs := memory.NewController(store, memory.ControllerOptions{})
	var _ life = configs
	var _ configstore.ConfigStoreCache = configs

	entries := configstore.Typed[*networking.ServiceEntry](store)
	c := configstore.NewConfig("name", "namespace", &networking.ServiceEntry{})
	if _, err := entries.Create(c); err != nil {
		return err
	}
	if _, err := configstore.Upsert(store, c.Config()); err != nil {
		return err
	}
	if _, err := store.Apply(configstore.Mutation{Op: configstore.OpCreate, Config: c.Config()}); err != nil {
		return err
	}
	for change, err := range store.Watch(ctx, store.Revision()) {
		_, _ = change.Revision, err
	}
	var _ configstore.Reader = store.Snapshot()

	source := file.New(dir, store, file.Options{})
	for _, e := range source.Errors() {
		_, _, _ = e.File, e.Line, e.Err
	}
	if err := source.Reload(); err != nil {
		return err
	}
	text, err := manifest.Marshal(c.Config())
	if err != nil {
		return err
	}
	if _, err = manifest.MarshalJSON(c.Config()); err != nil {
		return err
	}
	if err = manifest.Apply(store, text, manifest.Options{}); err != nil {
		return err
	}
	return configstore.WaitForSync(ctx, configs, source)
}

// caches is a program's use of many stores as one.
func caches(configs configstore.ConfigStoreCache, writer configstore.ConfigStore) []life {
	return []life{
		aggregate.MakeCache(configs),
		aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{configs}, writer),
	}
}

// registries is a program's use of the registries and the server.
func registries(ctx context.Context, configs configstore.ConfigStoreCache, stop <-chan struct{}) error {
	all := aggregate.NewController(aggregate.Options{})
	var _ life = all
	server := ads.New(all, ads.Options{})
	server.Register(grpc.NewServer())
	var entries *serviceentry.Controller
	all.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		entries = serviceentry.New(configs, updater, serviceentry.Options{})
		return entries
	})
	var _ life = entries
	all.AppendWorkloadHandler(entries.WorkloadInstanceHandler)
	all.AppendServiceHandlerForCluster("cluster", xdsupdate.ServiceHandler(server))
	all.UnRegisterHandlersForCluster("cluster")
	simple := registry.Simple{Controller: entries, ServiceDiscovery: entries, ProviderID: "other", ClusterID: "cluster"}
	other := func(xdsupdate.XDSUpdater) registry.Instance { return simple }
	all.AddRegistry(other)
	all.AddRegistryAndRun(other, stop)
	all.UpdateRegistry(other)
	all.DeleteRegistry("cluster", "other")

	configs.RegisterEventHandler(istio.Sidecar, xdsupdate.ConfigHandler(server, nil))
	if err := server.WaitApplied(ctx, nil); err != nil {
		return err
	}
	for _, p := range server.Proxies() {
		_, _ = p.ID, p.View
	}
	return server.Flush(ctx)
}

// updaters is a program's use of the update side without the server.
func updaters(push func(*xdsupdate.PushRequest)) *xdsupdate.EndpointIndex {
	pusher := xdsupdate.NewPusher(push, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: time.Second}})
	var (
		_ xdsupdate.XDSUpdater           = pusher
		_ xdsupdate.EndpointDeltaUpdater = pusher
		_ xdsupdate.XDSUpdater           = xdsupdate.Discard{}
	)
	xdsupdate.Multi(pusher, xdsupdate.Discard{}).RemoveShard(xdsupdate.ShardKey{})
	index := xdsupdate.NewEndpointIndex()
	shard := xdsupdate.ShardKey{Provider: registry.External, Cluster: "cluster"}
	switch index.UpdateServiceEndpoints(shard, "host", "namespace", nil) {
	case xdsupdate.NoPush, xdsupdate.IncrementalPush, xdsupdate.FullPush:
	}
	return index
}

// TestContract compiles.
func TestContract(*testing.T) { _, _, _, _ = stores, caches, registries, updaters }
