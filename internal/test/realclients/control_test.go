// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"

	networking "istio.io/api/networking/v1alpha3"
)

// control is another control plane, which gives its configs away by MCP.
type control struct {
	t       *testing.T
	configs *memory.Controller
	address string // "" until it has served
	stop    func()
}

// newControl returns a control plane that serves until the test ends.
func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{t: t, configs: memory.NewController(memory.Make(istio.Schemas()))}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { c.configs.Run(stop) })
	t.Cleanup(func() {
		c.stop()
		close(stop)
		running.Wait()
	})
	c.serve()
	return c
}

// set has a service answered by a backend.
func (c *control) set(host string, b *backend) {
	c.t.Helper()
	config := edited(func(spec *networking.ServiceEntry) { spec.Hosts = []string{host} }, b.entry())
	config.Name = host
	if _, err := configstore.Upsert(c.configs, config); err != nil {
		c.t.Fatal(err)
	}
}

// serve starts a server, at the address of the one before.
func (c *control) serve() {
	c.t.Helper()
	listener := testserver.Listen(c.t, c.address)
	c.address = listener.Addr().String()
	server, streams := grpc.NewServer(), mcp.NewServer(c.configs)
	streams.Register(server)
	c.stop = testserver.Serve(c.t, listener, server, streams.Run)
}
