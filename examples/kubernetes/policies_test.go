// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const policies = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: tls, namespace: demo}
spec:
  host: encrypted.example.com
  trafficPolicy:
    tls: {mode: MUTUAL, clientCertificate: /certs/cert.pem, privateKey: /certs/key.pem, caCertificates: /certs/ca.pem}
`

// TestPolicies: the files that a DestinationRule names are secrets for an Envoy.
func TestPolicies(t *testing.T) {
	c := newCluster(t)
	c.apply(greeter)
	c.apply(policies)
	_, xds := startPlane(t, c.serviceAccount())
	conn, err := grpc.NewClient(xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	envoy := xdstest.NewClient(conn, xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~10.9.9.8~envoy.demo~demo.svc.cluster.local"}})
	defer envoy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := envoy.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	const certificate = "file-cert:/certs/cert.pem~/certs/key.pem"
	if err := envoy.Subscribe(secrets.Type, certificate); err != nil {
		t.Fatal(err)
	}
	if err := envoy.Await(ctx, func(s xdstest.State) bool { return s.Has(secrets.Type, certificate) }); err != nil {
		t.Errorf("the secret of a DestinationRule: %v", err)
	}
}

// output is the output of a program, safe for concurrent use.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	serving chan struct{} // closed when the output reports that the program serves
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Contains(p, []byte("msg=serving xds=")) {
		close(o.serving)
	}
	return o.text.Write(p)
}

// TestKubeconfig: the program reads the kubeconfig file, serves, and ends without an error when it
// is interrupted.
func TestKubeconfig(t *testing.T) {
	server := clientConfig(newCluster(t).server.Config())
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"it": {Server: server.Host, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{"me": {Token: server.BearerToken}},
		Contexts:       map[string]*api.Context{"here": {Cluster: "it", AuthInfo: "me"}},
		CurrentContext: "here",
	}, file); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := &output{serving: make(chan struct{})}, make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-kubeconfig", file, "-listen", "127.0.0.1:0", "-probes", "127.0.0.1:0"}, out)
	}()
	select {
	case <-out.serving:
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(patience):
		t.Fatal("it does not serve")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
