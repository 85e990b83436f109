// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/authority"
)

// kind is a library.
type kind struct {
	name string
	// missing says why it cannot be tried; "": it can.
	missing func() string
	// start has a server serve at an address until the test ends.
	start func(t *testing.T, address string, bootstrap []byte)
	// reconnects: a new listener ends connections.
	reconnects bool
	// unconnected: it does not know the addresses and ports of connections.
	unconnected bool
	// random is how many random policies it is tried with.
	random int
}

// kinds are those that there are.
func kinds() []kind {
	return []kind{
		{"grpc-go", func() string { return "" }, startGo, false, false, 2000},
		{"C-core", missingPython, startPython, true, false, 500},
		{"grpc-js", missingNode, startNode, true, true, 100},
	}
}

// eachKind runs a test for each library that is installed.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			if reason := k.missing(); reason != "" {
				t.Skip(reason)
			}
			if testing.Short() && k.name != "grpc-go" {
				t.Skip("a process of its own")
			}
			test(t, k)
		})
	}
}

// TestPrerequisites is skipped for a library that is not installed.
func TestPrerequisites(t *testing.T) { eachKind(t, func(*testing.T, kind) {}) }

func startGo(t *testing.T, address string, bootstrap []byte) {
	t.Helper()
	serveGo(t, listen(t, address), bootstrap)
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// serveGo has a server of grpc-go serve until the test ends.
func serveGo(t *testing.T, listener net.Listener, bootstrap []byte) {
	t.Helper()
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}
	server, err := xds.NewGRPCServer(grpc.Creds(creds), grpc.UnknownServiceHandler(answer), xds.BootstrapContentsForTesting(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when stopped
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
}

const python = "/usr/bin/python3"

func missingPython() string {
	if exec.Command(python, "-c", "import grpc").Run() != nil { //nolint:noctx // ends at once
		return "python3 has no grpc: apt-get install python3-grpcio"
	}
	return ""
}

func startPython(t *testing.T, address string, bootstrap []byte) {
	t.Helper()
	startProgram(t, bootstrap, nil, python, filepath.Join("testdata", "server.py"), address)
}

const nodeModules = "../realclients/testdata/node/node_modules"

func missingNode() string {
	if _, err := os.Stat(filepath.Join(nodeModules, "@grpc", "grpc-js-xds", "package.json")); err != nil {
		return "grpc-js is not installed: npm ci --prefix internal/realclients/testdata/node"
	}
	return ""
}

func startNode(t *testing.T, address string, bootstrap []byte) {
	t.Helper()
	modules, err := filepath.Abs(nodeModules)
	if err != nil {
		t.Fatal(err)
	}
	// Without the second grpc-js refuses every listener with policies.
	env := []string{"NODE_MODULES=" + modules, "GRPC_XDS_EXPERIMENTAL_RBAC=true"}
	startProgram(t, bootstrap, env, "node", filepath.Join("testdata", "server.js"), address)
}

// startProgram starts a server in a process of its own, which ends with its standard input.
func startProgram(t *testing.T, bootstrap []byte, env []string, program string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "GRPC_XDS_BOOTSTRAP="+file)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Cancel = func() error {
		_ = stdin.Close()
		return os.ErrProcessDone
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		if t.Failed() && output.Len() > 0 {
			t.Logf("%s wrote: %.4000s", program, output.String())
		}
	})
}

// freeAddress returns an address on the loopback interface at which nobody listens.
func freeAddress() string { return fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)) }

// bootstrap returns what a server is told: its control plane, and its certificate.
func bootstrap(t *testing.T, plane string, issuer *authority.Authority) []byte {
	t.Helper()
	dir := t.TempDir()
	certificate, key := issuer.Issue("spiffe://cluster.local/ns/shop/sa/quotes")
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": issuer.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": plane, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []string{"xds_v3"},
		}},
		"node": map[string]any{
			"id": "sidecar~127.0.0.1~quotes.shop~shop.svc.cluster.local", "locality": map[string]any{},
			"metadata": map[string]any{"GENERATOR": "grpc", "NAMESPACE": "shop"},
		},
		"certificate_providers": map[string]any{"default": map[string]any{"plugin_name": "file_watcher", "config": map[string]any{
			"certificate_file": filepath.Join(dir, "tls.crt"), "private_key_file": filepath.Join(dir, "tls.key"),
			"ca_certificate_file": filepath.Join(dir, "ca.crt"), "refresh_interval": "1s",
		}}},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
