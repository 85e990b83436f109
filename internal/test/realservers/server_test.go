// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/grpccall"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// kind is a library.
type kind struct {
	name string
	// start has a server serve at addresses until the test ends.
	start func(t *testing.T, bootstrap []byte, addresses ...string)
	// reconnects: a new listener ends connections.
	reconnects bool
	// unconnected: it does not know the addresses and ports of connections.
	unconnected bool
	// random is how many random policies it is tried with.
	random int
}

// kinds are the existing kinds.
func kinds() []kind {
	return []kind{
		{"grpc-go", startGo, false, false, 2000},
		{"C-core", startPython, true, false, 500},
		{"grpc-js", startNode, true, true, 100},
	}
}

// eachKind runs a test for each library that is installed.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			k.client().Require(t)
			test(t, k)
		})
	}
}

// client is that of the library.
func (k kind) client() grpccall.Kind {
	all := grpccall.Kinds()
	return all[slices.IndexFunc(all, func(c grpccall.Kind) bool { return c.Name == k.name })]
}

// missing returns the reason why the library cannot be tested, or "".
func (k kind) missing() string {
	c := k.client()
	if c.External && !tier.Full() {
		return "only with -full: a process of its own"
	}
	return c.Missing()
}

func startGo(t *testing.T, bootstrap []byte, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		serveGo(t, testserver.Listen(t, address), bootstrap)
	}
}

// serveGo has a server of grpc-go serve until the test ends.
func serveGo(t *testing.T, listener net.Listener, bootstrap []byte) {
	t.Helper()
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		t.Fatal(err)
	}
	server, err := xds.NewGRPCServer(grpc.Creds(creds), grpc.UnknownServiceHandler(answer("")), xds.BootstrapContentsForTesting(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "quotes.Quotes", Streams: []grpc.StreamDesc{
		{StreamName: "Get", Handler: answer("/quotes.Quotes/Get")}, {StreamName: "Put", Handler: answer("/quotes.Quotes/Put")},
	}}, nil)
	testserver.Serve(t, listener, server)
}

// answer returns a method that responds with its view of the call. Its name is that of the call by default.
func answer(name string) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		seen := view{Method: name, Metadata: make(map[string][][]byte)}
		if name == "" {
			seen.Method, _ = grpc.MethodFromServerStream(stream)
		}
		md, _ := metadata.FromIncomingContext(stream.Context())
		for key, values := range md {
			for _, v := range values {
				seen.Metadata[key] = append(seen.Metadata[key], []byte(v))
			}
		}
		text, err := json.Marshal(seen)
		if err != nil {
			return err
		}
		return stream.SendMsg(wrapperspb.String(string(text)))
	}
}

func startPython(t *testing.T, bootstrap []byte, addresses ...string) {
	t.Helper()
	grpccall.StartProgram(t, bootstrap, nil, discard, grpccall.Python(), append([]string{filepath.Join("testdata", "server.py")}, addresses...)...)
}

func startNode(t *testing.T, bootstrap []byte, addresses ...string) {
	t.Helper()
	modules, err := filepath.Abs(grpccall.NodeModules)
	if err != nil {
		t.Fatal(err)
	}
	// Without the second grpc-js refuses every listener with policies.
	env := []string{"NODE_MODULES=" + modules, "GRPC_XDS_EXPERIMENTAL_RBAC=true"}
	grpccall.StartProgram(t, bootstrap, env, discard, "node", append([]string{filepath.Join("testdata", "server.js")}, addresses...)...)
}

// discard reads the output of a server.
func discard(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// freeAddresses returns unused addresses with an IP of the loopback interface.
func freeAddresses(t *testing.T, ip string, n int) (out []string) {
	t.Helper()
	for _, port := range testserver.FreePorts(t, ip, n) {
		out = append(out, fmt.Sprintf("%s:%d", ip, port))
	}
	return out
}

// bootstrap returns the bootstrap of the server of the workload quotes, and the folder of its
// certificate.
func bootstrap(t *testing.T, plane string, issuer *authority.Authority) (content []byte, files string) {
	t.Helper()
	return node{"127.0.0.1", "quotes", "shop"}.bootstrap(t, plane, issuer)
}

// node is who a client or a server is.
type node struct{ ip, account, namespace string }

// bootstrap returns its bootstrap: its control plane, and the folder of its certificate.
func (n node) bootstrap(t *testing.T, plane string, issuer *authority.Authority) (content []byte, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "certificate")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certificate, key := issuer.Issue(fmt.Sprintf("spiffe://cluster.local/ns/%s/sa/%s", n.namespace, n.account))
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": issuer.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": plane, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []string{"xds_v3"},
		}},
		"node": map[string]any{
			"id": fmt.Sprintf("sidecar~%s~%s.%s~%[3]s.svc.cluster.local", n.ip, n.account, n.namespace), "locality": map[string]any{},
			"metadata": map[string]any{"GENERATOR": "grpc", "NAMESPACE": n.namespace},
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
	return content, dir
}
