// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const sharedEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shared, namespace: demo}
spec:
  hosts: [shared.demo.svc.cluster.local]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.2, ports: {grpc: 9090}}]
`

// TestOneHost: a Service and a ServiceEntry of one host in one namespace are one
// service to clients, with the endpoints of both, as in Istio; no call fails when
// either comes or goes, and as long as there are both the conflict is shown, in the
// status of the ServiceEntry, too.
func TestOneHost(t *testing.T) {
	c := newCluster(t)
	c.apply(strings.ReplaceAll(greeter, "greeter", "shared"))
	c.apply(slice("shared-1", "10.1.0.1"))
	const one, two = "10.1.0.1:9090", "10.1.0.2:9090"
	b := startBackends(t, one, two)
	p, xds := startPlane(t, c.serviceAccount())
	conflicts := func(want ...string) {
		t.Helper()
		var got []string
		for _, conflict := range p.registries.Conflicts() {
			got = append(got, conflict.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("conflicts %q, want %q", got, want)
		}
	}
	calls := call(t, b.dial(t, xds, "shared.demo.svc.cluster.local:80"))
	calls.expect(one)
	conflicts()
	c.apply(sharedEntry)
	calls.expect(one, two)
	const conflict = "shared.demo.svc.cluster.local: defined by Kubernetes demo/shared and External demo/shared"
	conflicts(conflict)
	c.expectCondition("shared", "Conflicted", "True", conflict)
	c.remove("networking.istio.io/v1", "ServiceEntry", "shared")
	calls.expect(one)
	conflicts()
	c.apply(sharedEntry)
	calls.expect(one, two)
	c.expectCondition("shared", "Conflicted", "True", conflict)
	c.apply(slice("shared-1"))
	calls.expect(two)
	c.remove("v1", "Service", "shared")
	c.expectCondition("shared", "Conflicted", "False", "")
	calls.expect(two)
	c.remove("networking.istio.io/v1", "ServiceEntry", "shared")
}

// remove deletes an object of the namespace demo.
func (c *cluster) remove(apiVersion, kind, name string) {
	c.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "demo"},
	}}
	if err := c.resource(object).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
