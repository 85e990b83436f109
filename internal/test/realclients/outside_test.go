// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
)

// outside is what control planes read from: a source of each sort. Each has one
// service that moves and one that stays.
type outside struct {
	t       *testing.T
	dir     string
	records *records
	control *control
}

// movingHost and stayingHost are the hosts of the services of a source.
func movingHost(source string) string  { return "moving." + source + ".example.com" }
func stayingHost(source string) string { return "staying." + source + ".example.com" }

// The sources.
const (
	fromFiles     = "files"
	fromCatalogue = "catalogue"
	fromControl   = "control"
)

func sources() []string { return []string{fromFiles, fromCatalogue, fromControl} }

// newOutside returns sources whose services are all answered by one backend.
func newOutside(t *testing.T, b *backend) *outside {
	t.Helper()
	o := &outside{t: t, dir: filepath.Join(t.TempDir(), "configs"), records: new(records), control: newControl(t)}
	if err := os.Mkdir(o.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o.writeFile(o.dir, stayingHost(fromFiles), b)
	o.control.set(stayingHost(fromControl), b)
	o.move(o.dir, b, b)
	return o
}

// move has the services that move answered by another backend. The files are below a
// directory, the catalogue's other service stays with its backend.
func (o *outside) move(dir string, moving, staying *backend) {
	o.t.Helper()
	o.writeFile(dir, movingHost(fromFiles), moving)
	o.records.set(record(movingHost(fromCatalogue), moving), record(stayingHost(fromCatalogue), staying))
	o.control.set(movingHost(fromControl), moving)
}

// goneDir is where the directory is while it is away.
func (o *outside) goneDir() string { return o.dir + "-away" }

// goAway takes all sources away.
func (o *outside) goAway() {
	o.t.Helper()
	o.rename(o.dir, o.goneDir())
	o.records.fail(errors.New("the catalogue is away"))
	o.control.stop()
}

// comeBack brings them back.
func (o *outside) comeBack() {
	o.t.Helper()
	o.rename(o.goneDir(), o.dir)
	o.records.fail(nil)
	o.control.serve()
}

func (o *outside) rename(from, to string) {
	o.t.Helper()
	if err := os.Rename(from, to); err != nil {
		o.t.Fatal(err)
	}
}

// writeFile writes a ServiceEntry, by a rename, as editors and tools do.
func (o *outside) writeFile(dir, host string, b *backend) {
	o.t.Helper()
	const manifest = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: %[1]s
  namespace: shop
spec:
  hosts: [%[1]s]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {grpc: %[2]d}}]
`
	path := filepath.Join(dir, host+".yaml")
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, manifest, host, b.port), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.rename(path+".new", path)
}

// records is a catalogue.
type records struct {
	mu   sync.Mutex
	list []bridge.Record
	err  error
}

func (r *records) set(list ...bridge.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = list
}

func (r *records) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// List implements bridge.Catalogue.
func (r *records) List(context.Context) (bridge.Listing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return bridge.Listing{}, r.err
	}
	return bridge.Listing{Records: r.list}, nil
}

// record returns a service with one endpoint.
func record(host string, b *backend) bridge.Record {
	return bridge.Record{
		Service: &registry.Service{
			Hostname:   registry.Hostname(host),
			Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
			Attributes: registry.ServiceAttributes{Namespace: "shop"},
		},
		Endpoints: []*registry.Endpoint{{
			Addresses: []string{"127.0.0.1"}, EndpointPort: b.port, ServicePort: 80, ServicePortName: "grpc",
		}},
	}
}

// catalogueOptions have a bridge ask its catalogue often.
func catalogueOptions() bridge.Options {
	return bridge.Options{Provider: "Catalogue", Interval: 200 * time.Millisecond, MaxBackoff: 500 * time.Millisecond}
}
