// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// echoVariable names the echo server that the process outside has built.
const echoVariable = "PILOTKIT_GATEWAYCONFORMANCE_ECHO"

// environment is an API server with a node and a control plane.
type environment struct {
	config *rest.Config
	plane  *plane
	envoys *envoys
}

// startCluster starts everything. It ends with the test.
func startCluster(t *testing.T) *environment {
	t.Helper()
	program := envoyProgram(t)
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	network, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	server := kubetest.Start(t)
	server.ApplyCRDs(t, manifests(t))
	config := restConfig(server.Config())
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(client, network, os.Getenv(echoVariable), t.TempDir(), logger)
	logs, err := n.serveLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(logs.Close)
	lis := testserver.Listen(t, hostAddress+":0")
	c := &environment{config: config, envoys: newEnvoys(n, program, lis.Addr().String())}
	t.Cleanup(c.envoys.stop)
	if c.plane, err = newPlane(rest.CopyConfig(config), c.envoys, logger); err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, n.Run)
	runUntilEnd(t, c.plane.run)
	serve(t, c.plane.server, lis)
	c.createClass(t)
	return c
}

// envoyProgram returns the Envoy that runs Gateways.
func envoyProgram(t *testing.T) envoyproxy.Program {
	t.Helper()
	switch *version {
	case "newest":
		return envoyproxy.Newest(t)
	case "oldest":
		return envoyproxy.Oldest(t)
	default:
		t.Fatalf(`-envoy is %q, and must be "newest" or "oldest"`, *version)
		return envoyproxy.Program{}
	}
}

// runUntilEnd runs something until the end of the test, which outlives the test's own context.
func runUntilEnd(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func serve(t *testing.T, server *ads.Server, lis net.Listener) {
	t.Helper()
	g := grpc.NewServer(ads.ServerOptions()...)
	server.Register(g)
	testserver.Serve(t, lis, g)
}

// createClass creates the GatewayClass.
func (c *environment) createClass(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	class := &gatewayv1.GatewayClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "GatewayClass"},
		ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayapi.ControllerName},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(class)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Group: gatewayv1.GroupName, Version: "v1", Resource: "gatewayclasses"}).
		Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// restConfig returns the configuration of a client without limits of its own.
func restConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
}

// manifests returns the CRDs of the Gateway API, of its experimental channel: without it API
// servers drop retries of HTTPRoutes.
func manifests(t *testing.T) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatalf("go list -m sigs.k8s.io/gateway-api: %v", err)
	}
	var all bytes.Buffer
	dir := os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "experimental"))
	files, err := fs.Glob(dir, "gateway.networking.k8s.io_*s.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("kind: CustomResourceDefinition")) {
			all.WriteString("\n---\n")
			all.Write(data)
		}
	}
	return all.Bytes()
}

// buildEcho builds the suite's echo server, without C, so that it runs in an otherwise empty file
// system.
func buildEcho(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "echo-basic")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "sigs.k8s.io/gateway-api/conformance/echo-basic")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the echo server: %v: %s", err, out)
	}
	return path
}
