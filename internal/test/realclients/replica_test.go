// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// replica is one of several control planes that read the same sources.
type replica struct {
	files     *file.Source
	catalogue *bridge.Bridge
	control   *mcp.Source
	server    *ads.Server
	grpc      *grpc.Server
	running   sync.WaitGroup
	end       func()
}

// startReplica starts a control plane of all sources, and returns when it has synced.
func startReplica(t *testing.T, o *outside) *replica {
	t.Helper()
	r := &replica{grpc: grpc.NewServer()}
	fileStore := memory.Make(istio.Schemas())
	r.files = file.New(o.dir, fileStore)
	conn, err := grpc.NewClient(o.control.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	controlStore := memory.Make(istio.Schemas())
	r.control = mcp.NewSource(conn, controlStore, mcp.SourceOptions{MaxBackoff: 500 * time.Millisecond})
	configs := aggregate.MakeCache(memory.NewController(fileStore), memory.NewController(controlStore))

	registries := aggregate.NewController()
	r.server = ads.New(registries)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		options := catalogueOptions()
		options.Updater = updater
		r.catalogue = bridge.New(o.records, options)
		return r.catalogue
	})
	r.server.Register(r.grpc)

	stop := make(chan struct{})
	for _, run := range []func(<-chan struct{}){r.files.Run, r.control.Run, configs.Run, registries.Run, r.server.Run} {
		r.running.Go(func() { run(stop) })
	}
	r.end = sync.OnceFunc(func() {
		r.grpc.Stop()
		close(stop)
		r.running.Wait()
		_ = conn.Close()
	})
	t.Cleanup(r.end)
	return r
}

// listen serves on another address; "" takes a free one.
func (r *replica) listen(t *testing.T, address string) string {
	t.Helper()
	listener := testserver.Listen(t, address)
	r.running.Go(func() { r.serve(listener) })
	return listener.Addr().String()
}

func (r *replica) serve(listener net.Listener) { _ = r.grpc.Serve(listener) } // ends when stopped

// seesSourcesAway returns when all sources are said to be stale.
func (r *replica) seesSourcesAway(t *testing.T) {
	t.Helper()
	r.sees(t, "stale sources", func(stale bool) bool { return stale })
}

// seesSources returns when no source is stale.
func (r *replica) seesSources(t *testing.T) {
	t.Helper()
	r.sees(t, "current sources", func(stale bool) bool { return !stale })
}

func (r *replica) sees(t *testing.T, what string, right func(stale bool) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !right(len(r.files.Errors()) > 0) || !right(r.catalogue.Status().Stale()) || !right(r.control.Status().Stale()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %s: %v, %+v, %+v", what, r.files.Errors(), r.catalogue.Status(), r.control.Status())
		}
	}
}
