// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// service is a ServiceEntry with one endpoint.
func service(name, address string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Name: name, Namespace: "ns", CreationTimestamp: time.Unix(1_700_000_000, 0),
		},
		Spec: &networking.ServiceEntry{
			Hosts: []string{name + ".example.com"}, Location: networking.ServiceEntry_MESH_INTERNAL,
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_STATIC, Endpoints: []*networking.WorkloadEntry{{Address: address}},
		},
	}
}

// updates is an updater that records the updates for clients.
type updates struct {
	xdsupdate.XDSUpdater
	made []string
}

// EDSUpdate implements xdsupdate.XDSUpdater.
func (u *updates) EDSUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, endpoints []*registry.Endpoint) {
	var list []string
	for _, e := range endpoints {
		list = append(list, e.Address())
	}
	u.made = append(u.made, fmt.Sprintf("eds %s %v", host, list))
}

// SvcUpdate implements xdsupdate.XDSUpdater.
func (u *updates) SvcUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, event registry.Event) {
	u.made = append(u.made, fmt.Sprintf("svc %s %s", host, event))
}

// TestClientsGetTheDifference: a control plane that starts while its source is down has the
// previous services, and when the source is back, its registry updates the differences. The source
// is one that assigns new resource versions at each start.
func TestClientsGetTheDifference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	start := func(synced *bool, objects ...configstore.Config) (*checkpoint.Cache, *serviceentry.Controller, *updates) {
		source := memory.NewController(memory.Make(istio.Schemas()))
		source.RegisterHasSyncedHandler(func() bool { return *synced })
		for _, o := range objects {
			if _, err := source.Create(o); err != nil {
				t.Fatal(err)
			}
		}
		cache, u := checkpoint.New(source, path), &updates{XDSUpdater: xdsupdate.Multi()}
		reg := serviceentry.New(cache, u, serviceentry.Options{})
		cache.Drain()
		return cache, reg, u
	}
	synced := true
	before, _, _ := start(&synced, service("stays", "10.0.0.1"), service("moves", "10.0.0.2"), service("goes", "10.0.0.3"))
	if err := before.Save(); err != nil {
		t.Fatal(err)
	}
	synced = false
	after, reg, u := start(&synced, service("new", "10.0.0.4"), service("moves", "10.0.0.9"), service("stays", "10.0.0.1"))
	if !after.HasSynced() || !reg.HasSynced() || !after.Status().Stale || len(reg.Services()) != 3 {
		t.Fatalf("synced %t %t, %+v, %d services", after.HasSynced(), reg.HasSynced(), after.Status(), len(reg.Services()))
	}
	u.made = nil
	synced = true
	after.Drain()
	slices.Sort(u.made)
	want := []string{
		"eds moves.example.com [10.0.0.9]", "eds new.example.com [10.0.0.4]", "svc goes.example.com delete", "svc new.example.com add",
	}
	if !slices.Equal(u.made, want) {
		t.Errorf("updates %q, want %q", u.made, want)
	}
}
