// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// directory returns a directory with some services.
func directory(t *testing.T, services int) string {
	t.Helper()
	dir := t.TempDir()
	var content strings.Builder
	for i := range services {
		fmt.Fprintf(&content, "%s\n---\n", entry(fmt.Sprintf("s%d", i), "127.0.0.1:9090"))
	}
	if err := os.WriteFile(filepath.Join(dir, "services.yaml"), []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAdmin: the paths of the README answer.
func TestAdmin(t *testing.T) {
	p := start(t, "-dir", directory(t, 3)).serving()
	for path, want := range map[string]string{
		"/live": "", "/ready": "",
		"/metrics":      `pilotkit_source_synced{source="directory"} 1`,
		"/debug/pprof/": "goroutine",
		"/debug/":       "3</span> services", "/debug/sources": "directory",
		"/": "3</span> services", // it leads to the pages
	} {
		if status, body := get(t, p.admin, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d: %s", path, status, body)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// TestReadyWithClosedPolicies: readiness names the policies that cannot be read.
func TestReadyWithClosedPolicies(t *testing.T) {
	dir := directory(t, 1)
	text := "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: shop}\nspec: {rules: text}\n"
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "-dir", dir).serving()
	if status, body := get(t, p.admin, "/ready"); status != http.StatusOK || !strings.Contains(body, "AuthorizationPolicy shop/p: spec: the policy allows nothing") {
		t.Errorf("/ready: %d: %s", status, body)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// TestStopBesideOneWhoDoesNotRead: a client that has subscribed to everything and does not read
// does not delay the shutdown.
func TestStopBesideOneWhoDoesNotRead(t *testing.T) {
	p := start(t, "-dir", directory(t, 1000), "-patience", "10s", "-drain", "0s").serving()
	conn, err := grpc.NewClient(p.xds, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := &discovery.DiscoveryRequest{TypeUrl: envoy.ClusterType, Node: &core.Node{Id: "router~127.0.0.1~deaf.demo~demo.svc.cluster.local"}}
	if err := stream.Send(request); err != nil {
		t.Fatal(err)
	}
	eventually(t, "response", func() bool {
		_, metrics := get(t, p.admin, "/metrics")
		return strings.Contains(metrics, `pilotkit_xds_responses_total{type_url="`+envoy.ClusterType+`"} 1`)
	})
	began := time.Now()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("it has stopped within %v", time.Since(began))
}

// TestWarmStart: a program whose source is unavailable serves its checkpoint, and without a
// checkpoint it is not ready.
func TestWarmStart(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: sources that are away for seconds")
	}
	file := filepath.Join(t.TempDir(), "checkpoint")
	etcd, store := startEtcd(t)
	if _, err := store.Put(t.Context(), echoKey, entry("echo", "127.0.0.1:9090")); err != nil {
		t.Fatal(err)
	}
	before := start(t, "-etcd", etcd, "-checkpoint", file).serving()
	if err := before.stop(); err != nil { // it writes the file
		t.Error(err)
	}
	away := "127.0.0.1:1"
	warm := start(t, "-etcd", away, "-mcp-from", away, "-checkpoint", file).serving()
	if _, metrics := get(t, warm.admin, "/metrics"); !strings.Contains(metrics, `pilotkit_source_stale{source="checkpoint"} 1`) {
		t.Errorf("the checkpoint is not stale:\n%s", metrics)
	}
	if err := warm.stop(); err != nil {
		t.Error(err)
	}
	cold := start(t, "-etcd", away, "-admin", "127.0.0.1:0")
	admin := regexp.MustCompile(` admin=(\S+)`).FindStringSubmatch(cold.log("msg=\"reading sources\""))[1]
	cold.log("etcd is away")
	if status, body := get(t, admin, "/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, "etcd has not been read: ") {
		t.Errorf("ready: %d %s", status, body)
	}
	if err := cold.stop(); err != nil {
		t.Error(err)
	}
}

// TestPortTaken: the error names the flag, and the program ends.
func TestPortTaken(t *testing.T) {
	dir := directory(t, 1)
	p := start(t, "-dir", dir).serving()
	for flag, address := range map[string]string{"-listen": p.xds, "-admin": p.admin} {
		other := start(t, "-dir", dir, flag, address)
		if err := <-other.ended; err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: %v", flag, err)
		}
		other.ended <- nil
	}
}
