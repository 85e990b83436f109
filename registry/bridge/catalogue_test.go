// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// catalogue is one that tests fill.
type catalogue struct {
	mu      sync.Mutex
	records map[string]bridge.Record
	err     error
	panics  bool
	changed int // how often records were changed
	// listed are the times of all lists.
	listed []time.Time
}

func newCatalogue(names ...string) *catalogue {
	c := &catalogue{records: map[string]bridge.Record{}}
	for _, name := range names {
		c.set(record(name, "1.1.1.1"))
	}
	return c
}

// record is a service of namespace ns with endpoints at some addresses.
func record(name string, addresses ...string) bridge.Record {
	r := bridge.Record{Service: &registry.Service{
		Hostname: registry.Hostname(name), Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Namespace: "ns"},
	}}
	for _, a := range addresses {
		r.Endpoints = append(r.Endpoints, &registry.Endpoint{
			Addresses: []string{a}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http",
		})
	}
	return r
}

// List implements bridge.Catalogue.
func (c *catalogue) List(context.Context) (bridge.Listing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed = append(c.listed, time.Now())
	if c.panics {
		panic("defect of the catalogue")
	}
	return bridge.Listing{Records: slices.Collect(maps.Values(c.records)), Revision: fmt.Sprint(len(c.listed))}, c.err
}

func (c *catalogue) set(records ...bridge.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	for _, r := range records {
		c.records[r.Service.Key()] = r
	}
}

func (c *catalogue) remove(name string) { c.removeKey("ns/" + name) }

func (c *catalogue) removeKey(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	delete(c.records, key)
}

func (c *catalogue) changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// replace makes these all records.
func (c *catalogue) replace(names ...string) {
	c.mu.Lock()
	clear(c.records)
	c.mu.Unlock()
	for _, name := range names {
		c.set(record(name, "1.1.1.1"))
	}
}

func (c *catalogue) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *catalogue) lists() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.listed)
}

// watched is a catalogue that reports changes, by poke.
type watched struct {
	*catalogue
	poked  chan struct{}
	broken func() error // nil: it can be watched
	asked  []string
}

// Watch implements bridge.Watcher.
func (w *watched) Watch(ctx context.Context, revision string) error {
	w.asked = append(w.asked, revision)
	if w.broken != nil {
		if err := w.broken(); err != nil {
			return err
		}
	}
	select {
	case <-w.poked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shown returns the services of a registry with the addresses of their endpoints.
func shown(r registry.Instance) []string {
	var out []string
	for _, s := range r.Services() {
		text := string(s.Hostname)
		for _, i := range r.InstancesByPort(s, 0) {
			text += " " + i.Endpoint.Address()
		}
		out = append(out, text)
	}
	return out
}

func expectShown(t *testing.T, when string, r registry.Instance, want ...string) {
	t.Helper()
	if got := shown(r); !slices.Equal(got, want) {
		t.Errorf("%s: the registry shows %q, want %q", when, got, want)
	}
}

// calls is an updater that records its calls about services. It takes only complete lists.
type calls struct {
	mu   sync.Mutex
	made []string
}

func (c *calls) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, fmt.Sprintf(format, args...))
}

// EDSUpdate implements xdsupdate.XDSUpdater.
func (c *calls) EDSUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, endpoints []*registry.Endpoint) {
	var list []string
	for _, e := range endpoints {
		list = append(list, strings.TrimSpace(e.Address()+" "+strings.TrimPrefix(e.HealthStatus.String(), "Unset")))
	}
	c.add("eds %s %v", host, list)
}

// SvcUpdate implements xdsupdate.XDSUpdater.
func (c *calls) SvcUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, event registry.Event) {
	c.add("svc %s %s", host, event)
}

// take returns the calls since the last time.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.made
	c.made = nil
	return made
}

// EDSCacheUpdate implements xdsupdate.XDSUpdater.
func (c *calls) EDSCacheUpdate(_ xdsupdate.ShardKey, host registry.Hostname, _ string, _ []*registry.Endpoint) {
	c.add("eds cache %s", host)
}

// ConfigUpdate implements xdsupdate.XDSUpdater.
func (*calls) ConfigUpdate(*xdsupdate.PushRequest) {}

// ProxyUpdate implements xdsupdate.XDSUpdater.
func (*calls) ProxyUpdate(registry.ClusterID, string) {}

// RemoveShard implements xdsupdate.XDSUpdater.
func (c *calls) RemoveShard(shard xdsupdate.ShardKey) { c.add("remove %s", shard) }
