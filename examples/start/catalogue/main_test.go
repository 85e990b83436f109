// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func Example_main() {
	main()
	// Output:
	// a first list: <nil>
	//   cart at 10.0.0.1:8080
	//   cart at 10.0.0.2:8080
	// the catalogue is down: list the catalogue: connection refused
	//   cart at 10.0.0.1:8080
	//   cart at 10.0.0.2:8080
	// it has lost its content: the list is held back: it is empty, instead of 2 services with 3 endpoints, after an error
	//   cart at 10.0.0.1:8080
	//   cart at 10.0.0.2:8080
	// it is back: <nil>
	//   cart at 10.0.0.2:8080
	//   cart at 10.0.0.4:8080
}

// TestServe: serve listens after the first list, and ends with its context.
func TestServe(t *testing.T) {
	catalogue := &inventory{services: map[string][]string{"cart.example.com": {"10.0.0.1"}}}
	registries := aggregate.NewController()
	server := ads.New(registries)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return bridge.New(catalogue, bridge.Options{Updater: updater})
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, "127.0.0.1:0", registries, server) }()
	if err := configstore.WaitForSync(ctx, registries); err != nil {
		t.Error(err)
	}
	if err := server.Flush(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := serve(t.Context(), "nowhere", registries, server); err == nil {
		t.Error("an address that cannot be used is no error")
	}
}
