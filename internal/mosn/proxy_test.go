// SPDX-License-Identifier: Apache-2.0

package mosn

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// requireVariable makes the tests fail where they would be skipped.
const requireVariable = "PILOTKIT_REQUIRE_CLIENTS"

// buildTimeout is for a cold build on a busy machine.
const buildTimeout = 8 * time.Minute

// buildProxy builds the proxy, or skips the test with the reason. Go's build cache
// makes all builds but the first one a matter of seconds.
func buildProxy(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building the proxy takes a minute")
	}
	program := filepath.Join(t.TempDir(), "proxy")
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "proxy")
	if out, err := build.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		reason := fmt.Sprintf("MOSN cannot be built: %v: %s", err, lines[len(lines)-1])
		if os.Getenv(requireVariable) != "" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	return program
}

// TestPrerequisites is skipped where the proxy cannot be built; ./test.sh shows what
// it says.
func TestPrerequisites(t *testing.T) { buildProxy(t) }

// startProxy runs the proxy against an ADS server until the test ends.
func startProxy(t *testing.T, program, serverAddress string, serverPort int) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "proxy.json")
	if err := os.WriteFile(config, bootstrap(t, dir, serverAddress, serverPort), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "out.log"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(program, "--config", config) //nolint:noctx // It is ended by the cleanup.
	proxy.Dir, proxy.Stdout, proxy.Stderr = dir, log, log
	proxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Kill()
		_ = proxy.Wait()
		_ = log.Close()
		if t.Failed() {
			for _, name := range []string{"out.log", "proxy.log"} {
				data, _ := os.ReadFile(filepath.Join(dir, name))
				t.Logf("%s: %s", name, ends(data))
			}
		}
	})
}

// ends are the beginning and the end of a log: the same error may fill it.
func ends(data []byte) []byte {
	const size = 8000
	if len(data) <= 2*size {
		return data
	}
	return slices.Concat(data[:size], []byte("\n…\n"), data[len(data)-size:])
}

// bootstrap is what the proxy starts with: who it is, and where its server is.
func bootstrap(t *testing.T, dir, address string, port int) []byte {
	t.Helper()
	type object = map[string]any
	ads := object{"ads": object{}, "resource_api_version": "V3"}
	config := object{
		"default_log_path": filepath.Join(dir, "proxy.log"), "default_log_level": "WARN",
		// The backends have another address: a proxy with theirs would be one of them.
		"node": object{
			"id": "router~127.0.0.9~edge.ingress~ingress.svc.cluster.local", "cluster": "edge",
			"metadata": object{"NAMESPACE": "ingress", "LABELS": object{"app": "edge"}},
		},
		"dynamic_resources": object{
			"lds_config": ads, "cds_config": ads,
			"ads_config": object{
				"api_type": "GRPC", "transport_api_version": "V3",
				"grpc_services": []object{{"envoy_grpc": object{"cluster_name": "xds"}}},
			},
		},
		"static_resources": object{"clusters": []object{{
			"name": "xds", "type": "STATIC", "connect_timeout": "1s", "lb_policy": "ROUND_ROBIN",
			"load_assignment": object{"cluster_name": "xds", "endpoints": []object{{"lb_endpoints": []object{{"endpoint": object{
				"address": object{"socket_address": object{"address": address, "port_value": port}},
			}}}}}},
			"http2_protocol_options": object{},
		}}},
	}
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}
