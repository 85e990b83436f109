// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// startPlane runs the program's plane until the test ends, and returns the address
// of its xDS once it is ready.
func startPlane(t *testing.T, config *rest.Config) (p *plane, xds string) {
	t.Helper()
	p, err := newPlane(config, settings{
		listen: "127.0.0.1:0", probes: "127.0.0.1:0", cluster: "Kubernetes", domain: "cluster.local",
		lease: "pilotkit/pilotkit", log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan string, 1)
	p.started = func(xds string) { started <- xds }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case xds = <-started:
	case <-time.After(patience):
		t.Fatalf("the plane is not ready; errors: %v", p.configs.Errors())
	}
	return p, xds
}

const greeter = `
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: Service
metadata: {name: greeter, namespace: demo}
spec:
  ports: [{name: grpc, port: 80, targetPort: 9090}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: demo}
spec:
  hosts: [orders.example.com]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.9, ports: {grpc: 9090}}]
`

// slice returns an EndpointSlice of a service, which is the part of its name before
// the dash. Addresses that begin with "!" are not ready.
func slice(name string, addresses ...string) string {
	service, _, _ := strings.Cut(name, "-")
	var endpoints []string
	for _, a := range addresses {
		address, unready := strings.CutPrefix(a, "!")
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], conditions: {ready: %t}}", address, !unready))
	}
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, namespace: demo, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: grpc, port: 9090, protocol: TCP}]
endpoints: [%s]
`, name, service, strings.Join(endpoints, ", "))
}

// TestEndToEnd: a gRPC client follows the Services, the EndpointSlices and the
// ServiceEntries of a cluster. The plane has no more rights than the manifests
// give it, and no call fails while endpoints are replaced.
func TestEndToEnd(t *testing.T) {
	c := newCluster(t)
	c.apply(greeter)
	c.apply(slice("greeter-1", "10.1.0.1"))
	const one, two, three, four, orders = "10.1.0.1:9090", "10.1.0.2:9090", "10.1.0.3:9090", "10.1.0.4:9090", "10.1.0.9:9090"
	b := startBackends(t, one, two, three, four, orders)
	p, xds := startPlane(t, c.serviceAccount())
	if errs := p.configs.Errors(); len(errs) > 0 {
		t.Errorf("the manifests do not allow enough: %v", errs)
	}

	greetings := call(t, b.dial(t, xds, "greeter.demo.svc.cluster.local:80"))
	greetings.expect(one)
	call(t, b.dial(t, xds, "orders.example.com:80")).expect(orders)

	// A rolling update: first the new endpoint becomes ready, then the old one is removed.
	c.apply(slice("greeter-1", "10.1.0.1", "!10.1.0.2"))
	c.apply(slice("greeter-1", "10.1.0.1", "10.1.0.2"))
	greetings.expect(one, two)
	c.apply(slice("greeter-2", "10.1.0.3"))
	c.apply(slice("greeter-1", "!10.1.0.1", "10.1.0.2"))
	greetings.expect(two, three)
	c.apply(slice("greeter-2", "10.1.0.3", "10.1.0.4"))
	c.apply(slice("greeter-1"))
	greetings.expect(three, four)
	for range 5 {
		c.apply(slice("greeter-1", "10.1.0.1", "10.1.0.2"))
		c.apply(slice("greeter-2"))
		greetings.expect(one, two)
		c.apply(slice("greeter-2", "10.1.0.3", "10.1.0.4"))
		c.apply(slice("greeter-1"))
		greetings.expect(three, four)
	}

	c.expectCondition("orders", "Accepted", "True", "")
	c.expectCondition("orders", "ServicesMade", "True", "1 service: orders.example.com")
}

// expectCondition waits for a condition of a ServiceEntry, which the plane writes with
// the rights of the manifests.
func (c *cluster) expectCondition(name, condition, status, message string) {
	c.t.Helper()
	entry := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": map[string]any{"name": name, "namespace": "demo"},
	}}
	resource := c.resource(entry)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := resource.Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions") // none at first
		for _, each := range conditions {
			if m, _ := each.(map[string]any); m["type"] == condition && m["status"] == status && strings.Contains(fmt.Sprint(m["message"]), message) {
				return
			}
		}
		select {
		case <-again.C:
		case <-deadline.C:
			c.t.Fatalf("the status is %v, want %s=%s", got.Object["status"], condition, status)
		}
	}
}

// TestReadiness: the plane lives without the API server, and is ready when it has
// read all of it. Then the text of its readiness has the policies that cannot be read.
func TestReadiness(t *testing.T) {
	c := newCluster(t)
	c.apply("apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: default}\nspec: {rules: [{when: [{key: later, values: [a]}]}]}\n")
	front := c.server.Front(t)
	front.Refuse(true)
	p, err := newPlane(clientConfig(front.Config()), settings{listen: "127.0.0.1:0", probes: "127.0.0.1:0", domain: "cluster.local", log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	probing := make(chan string, 1)
	started := make(chan struct{})
	p.probing = func(address string) { probing <- address }
	p.started = func(string) { close(started) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	probes := "http://" + <-probing
	alive, _ := probe(t, probes+"/healthz")
	if ready, text := probe(t, probes+"/readyz"); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
		t.Errorf("without the API server: alive %d, ready %d: %s", alive, ready, text)
	}
	front.Refuse(false)
	<-started
	if ready, text := probe(t, probes+"/readyz"); ready != http.StatusOK || !strings.Contains(text, "AuthorizationPolicy default/p: ") {
		t.Errorf("with everything read: ready %d: %s", ready, text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func probe(t *testing.T, url string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
