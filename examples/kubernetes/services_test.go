// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestHeadless: gRPC clients choose among the endpoints of a Service without a
// cluster IP themselves.
func TestHeadless(t *testing.T) {
	c := newCluster(t)
	c.apply(greeter)
	c.apply(`
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: demo}
spec:
  clusterIP: None
  ports: [{name: grpc, port: 80, targetPort: 9090}]
`)
	const one, two, three = "10.1.0.1:9090", "10.1.0.2:9090", "10.1.0.3:9090"
	c.apply(slice("peers-1", "10.1.0.1", "10.1.0.2"))
	b := startBackends(t, one, two, three)
	_, xds := startPlane(t, c.serviceAccount())
	peers := call(t, b.dial(t, xds, "peers.demo.svc.cluster.local:80"))
	peers.expect(one, two)
	c.apply(slice("peers-1", "10.1.0.2", "10.1.0.3"))
	peers.expect(two, three)
}

// TestVirtualService: a VirtualService leads the calls of a Service to the service of
// a ServiceEntry.
func TestVirtualService(t *testing.T) {
	c := newCluster(t)
	c.apply(greeter)
	c.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: greeter, namespace: demo}
spec:
  hosts: [greeter.demo.svc.cluster.local]
  http: [{route: [{destination: {host: orders.example.com}}]}]
`)
	c.apply(slice("greeter-1", "10.1.0.1"))
	const greeting, orders = "10.1.0.1:9090", "10.1.0.9:9090"
	b := startBackends(t, greeting, orders)
	_, xds := startPlane(t, c.serviceAccount())
	call(t, b.dial(t, xds, "greeter.demo.svc.cluster.local:80")).expect(orders)
}
