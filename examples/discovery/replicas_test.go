// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pilotkit/pilotkit/examples/discovery/internal/calls"
)

// echoKey is the key of the service that is called.
const echoKey = "/pilotkit/networking.istio.io/ServiceEntry/demo/echo"

// startEtcd starts an etcd in this process, and returns its address and a client.
func startEtcd(t *testing.T) (address string, client *clientv3.Client) {
	t.Helper()
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync = true
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		t.Fatal(err)
	}
	address = server.Clients[0].Addr().String()
	client, err = clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return address, client
}

// startBackend runs a backend until the test ends.
func startBackend(t *testing.T) *calls.Backend {
	t.Helper()
	b, err := calls.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inBackground(t, func(ctx context.Context) { _ = b.Run(ctx) }) // it ends when stopped
	return b
}

// inBackground runs f until the test ends.
func inBackground(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// eventually returns when a condition is true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	timeout := time.NewTimer(testPatience)
	defer timeout.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("not seen: %s", what)
		}
	}
}

// TestReplicas is the run that the README shows: two control planes on one etcd, and a
// client that comes from one to the other, and back, while its service moves. No call
// fails.
func TestReplicas(t *testing.T) {
	etcd, store := startEtcd(t)
	put := func(b *calls.Backend) {
		t.Helper()
		if _, err := store.Put(t.Context(), echoKey, entry("echo", b.Address())); err != nil {
			t.Fatal(err)
		}
	}
	here, there := startBackend(t), startBackend(t)
	put(here)
	first, second := start(t, "-etcd", etcd, "-drain", "100ms").serving(), start(t, "-etcd", etcd).serving()
	client, err := calls.New("xds:///echo.example.com:80", []string{first.xds, second.xds})
	if err != nil {
		t.Fatal(err)
	}
	inBackground(t, client.Run)
	moves := func(to *calls.Backend) {
		t.Helper()
		before := to.Calls.Load()
		eventually(t, "calls", func() bool { return to.Calls.Load() > before+50 })
	}
	connected := func(p *program) {
		t.Helper()
		eventually(t, "client at "+p.xds, func() bool {
			_, metrics := get(t, p.admin, "/metrics")
			return strings.Contains(metrics, `pilotkit_xds_connected_proxies{protocol="sotw"} 1`)
		})
	}
	moves(here)
	connected(first)

	if err := first.stop(); err != nil {
		t.Errorf("stop the first replica: %v", err)
	}
	connected(second)
	put(there)
	moves(there)
	again := start(t, "-etcd", etcd, "-listen", first.xds).serving()
	if err := second.stop(); err != nil {
		t.Errorf("stop the second replica: %v", err)
	}
	connected(again)
	put(here)
	moves(here)
	if client.Failed.Load() > 0 {
		t.Errorf("%s", client)
	}
}
