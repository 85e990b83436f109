// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// patience is longer than anything takes.
const patience = 2 * time.Minute

// Options are the options of a Plane.
type Options struct {
	// Schemas are the kinds of the directory.
	Schemas configstore.Schemas
	// Configs returns the configs of the plane, made of the objects of the directory. Default: these.
	Configs func(objects *memory.Controller) configstore.ConfigStoreCache
	// Files is the initial content of the directory.
	Files map[string]string
	// Type, Namespace and Labels describe the client. Subscribe has the names of its resources by type, or nil for
	// all names.
	Type      string
	Namespace string
	Labels    map[string]any
	Subscribe map[string][]string
}

// Plane is a control plane of a directory with a client. It ends with its test.
type Plane struct {
	tb     testing.TB
	dir    string
	server *ads.Server
	client *xdstest.Client
}

// Start runs a plane.
func Start(tb testing.TB, o Options) *Plane {
	tb.Helper()
	p := &Plane{tb: tb, dir: tb.TempDir()}
	for name, text := range o.Files {
		p.Write(name, text)
	}
	objects := memory.NewController(memory.Make(o.Schemas))
	source := file.New(p.dir, objects.Store, file.Options{Debounce: -1})
	var configs configstore.ConfigStoreCache = objects
	if o.Configs != nil {
		configs = o.Configs(objects)
	}
	registries := aggregate.NewController()
	p.server = ads.New(registries, ads.Options{
		Debounce: xdsupdate.Debounce{After: -1}, Providers: []ads.Provider{traffic.New(configs)},
	})
	registries.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, u) })
	server := grpc.NewServer()
	p.server.Register(server)
	conn, stop := testserver.ServeMemory(tb, server, source.Run, configs.Run, registries.Run, p.server.Run)
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := configstore.WaitForSync(ctx, source, configs, registries); err != nil {
		tb.Fatal(err)
	}
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": o.Namespace, "LABELS": o.Labels})
	if err != nil {
		tb.Fatal(err)
	}
	node := &core.Node{Id: o.Type + "~10.0.0.1~client." + o.Namespace + "~" + o.Namespace + ".svc.cluster.local", Metadata: metadata}
	p.client = xdstest.NewClient(conn, xdstest.ClientOptions{Node: node})
	if err := p.client.Connect(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.client.Close()
		stop()
	})
	for typeURL, names := range o.Subscribe {
		if err := p.client.Subscribe(typeURL, names...); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

// Write replaces a file as editors do, by a new one.
func (p *Plane) Write(name, text string) {
	p.tb.Helper()
	temporary := filepath.Join(p.dir, name+".new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		p.tb.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(p.dir, name)); err != nil {
		p.tb.Fatal(err)
	}
}

// Await returns when the client has a resource with a text, and has accepted everything.
func (p *Plane) Await(typeURL, text string) {
	p.tb.Helper()
	has := func(s xdstest.State) bool {
		for _, r := range s.Resources(typeURL) {
			if strings.Contains(string(r.Any.GetValue()), text) {
				return true
			}
		}
		return false
	}
	ctx, cancel := context.WithTimeout(p.tb.Context(), patience)
	defer cancel()
	if err := p.client.Await(ctx, has); err != nil {
		p.tb.Fatal(err)
	}
	if err := p.server.WaitApplied(ctx, nil); err != nil {
		p.tb.Fatal(err)
	}
}
